"""Checks made by FlagScale on its DualPipeV schedule, adapters, tokenizers, logging, and the way runs are started."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Severity

DIES = "every rank stops at startup, before the first step"
FLAGSCALE = ConstraintSet("flagscale", why=DIES)
a = Handles(megatron_names() | names("flagscale"))
MEGATRON = "flagscale/backends/Megatron-LM/megatron/training"
PATCH, TOKENIZER = f"{MEGATRON}/arguments.py.patch", f"{MEGATRON}/tokenizer/tokenizer.py.patch"
PIPE = a.pipeline_model_parallel_size
PATHS = (
    *("HFTokenizerFS", "Llama3TokenizerFS", "QwenTokenizerFS", "HFTokenizersTokenizerFS", "Qwen2TokenizerFS"),
    *("Qwen2VLTokenizer", "RWKVTokenizer"),
)

FLAGSCALE.add(
    refuse(
        "dualpipev-needs",
        all_of(a.use_dualpipev, any_of(PIPE < 2, a.expert_model_parallel_size < 2)),
        message=(
            "use_dualpipev needs pipeline- and expert-parallel sizes of at least 2, not "
            "{pipeline_model_parallel_size} and {expert_model_parallel_size}"
        ),
        upstream=f"{PATCH}:205",
        fixes=(drop(a.use_dualpipev),),
    ),
    refuse(
        "dualpipev-layers",
        all_of(
            a.use_dualpipev,
            a.decoder_first_pipeline_num_layers.is_none,
            a.decoder_last_pipeline_num_layers.is_none,
            a.num_layers % (PIPE * 2) != 0,
        ),
        message=(
            "{num_layers} layers are not divisible by 2 × {pipeline_model_parallel_size} stages, but use_dualpipev "
            "splits the layers of each stage in two"
        ),
        upstream=f"{PATCH}:232",
        at=(a.num_layers, PIPE, a.use_dualpipev),
        after=("layers-not-divisible", "flagscale/dualpipev-needs"),
        fixes=(drop(a.use_dualpipev),),
    ),
    refuse(
        "dualpipev-shared-embedding",
        all_of(a.use_dualpipev, ~a.untie_embeddings_and_output_weights),
        message="use_dualpipev needs untie_embeddings_and_output_weights",
        upstream=f"{PATCH}:255",
        at=(a.use_dualpipev,),
        fixes=(put(a.untie_embeddings_and_output_weights), drop(a.use_dualpipev)),
    ),
    refuse(
        "dualpipev-mtp",
        all_of(a.use_dualpipev, a.mtp_num_layers.is_set),
        message="use_dualpipev does not work with mtp_num_layers {mtp_num_layers}",
        upstream=f"{PATCH}:258",
        at=(a.mtp_num_layers, a.use_dualpipev),
        fixes=(drop(a.use_dualpipev),),
    ),
    conflicts(
        "dualpipev-shared-experts",
        a.use_dualpipev,
        a.moe_shared_expert_overlap,
        message="use_dualpipev does not work with moe_shared_expert_overlap",
        upstream=f"{PATCH}:239",
    ),
    refuse(
        "dualpipev-overlap",
        all_of(a.use_dualpipev, a.moe_fb_overlap, any_of(a.overlap_grad_reduce, a.overlap_param_gather)),
        message="moe_fb_overlap does not work with overlap_grad_reduce or overlap_param_gather",
        upstream=f"{PATCH}:244",
        at=(a.overlap_grad_reduce, a.overlap_param_gather, a.moe_fb_overlap),
        fixes=(drop(a.overlap_param_gather, also=(a.overlap_grad_reduce,)), drop(a.moe_fb_overlap)),
    ),
    refuse(
        "adapters-recompute",
        all_of(
            a.peft_type.is_set,
            any_of(a.recompute_granularity.is_set, a.recompute_method.is_set, a.recompute_num_layers.is_set),
        ),
        message="peft_type {peft_type} does not work with recomputation",
        upstream=f"{PATCH}:268",
        at=(a.recompute_granularity, a.recompute_method, a.recompute_num_layers, a.peft_type),
        fixes=(drop(a.recompute_granularity, also=(a.recompute_method, a.recompute_num_layers)),),
    ),
    refuse(
        "adapters-checkpoint",
        all_of(a.peft_type.is_set, a.ckpt_format != "torch"),
        message="peft_type {peft_type} needs ckpt_format torch, not {ckpt_format}",
        upstream=f"{PATCH}:269",
        at=(a.ckpt_format, a.peft_type),
        fixes=(put(a.ckpt_format, "torch"),),
    ),
    refuse(
        "tokenizer-without-path",
        all_of(a.tokenizer_type.is_in(*PATHS), a.tokenizer_path.is_none),
        message="tokenizer_type {tokenizer_type} needs tokenizer_path",
        upstream=f"{TOKENIZER}:38",
        at=(a.tokenizer_type,),
    ),
    refuse(
        "tokenizer-without-files",
        all_of(
            a.tokenizer_type == "AquilaTokenizerFS",
            any_of(a.vocab_file.is_none, a.merge_file.is_none, a.special_tokens_file.is_none),
        ),
        message="tokenizer_type AquilaTokenizerFS needs vocab_file, merge_file and special_tokens_file",
        upstream=f"{TOKENIZER}:32",
        at=(a.tokenizer_type,),
    ),
    refuse(
        "wandb-without-key",
        all_of(a.wandb_mode == "online", a.wandb_api_key == "", a.wandb_project != ""),
        message="wandb_mode online needs wandb_api_key",
        why="the ranks that write logs stop before the first step",
        upstream=f"{MEGATRON}/global_vars.py.patch:122",
        at=(a.wandb_mode, a.wandb_project),
        fixes=(put(a.wandb_mode, "offline"),),
    ),
    refuse(
        "nodes-without-hostfile",
        all_of(
            a.runner_nodes > 1,
            a.hostfile.is_none,
            any_of(a.runner_type.is_none, a.runner_type != "cloud"),
            any_of(a.action.is_none, a.action != "auto_tune"),
        ),
        message="nnodes {runner_nodes} has no effect without a hostfile, so the run uses one node",
        why="the run starts on a single node, with fewer devices than intended",
        upstream="flagscale/runner/runner_train.py:541",
        severity=Severity.WARNING,
        at=(a.runner_nodes,),
    ),
)
