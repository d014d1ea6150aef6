"""Checks of data, checkpoints in other formats, prompts and logging in MindSpeed-LLM."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import a

MINDSPEED_LLM = ConstraintSet(
    "mindspeed-llm", why="the tokenizer is created right after the arguments are read, and the run fails there"
)
MINDSPEED_LLM.add(
    refuse(
        "deepseek4-context-algo",
        a.spec.has("mindspeed_llm.tasks.models.spec.deepseek4_spec")
        & (a.context_parallel_size > 1)
        & (a.context_parallel_algo != "kvallgather_cp_algo"),
        at=(a.context_parallel_algo, a.context_parallel_size),
        message="DeepSeek-V4 with context parallelism needs kvallgather_cp_algo, not {context_parallel_algo}",
        why=(
            "DeepSeek-V4's compressed attention needs the keys of all ranks and supports only kvallgather_cp_algo, "
            "so the run fails at launch"
        ),
        fixes=(put(a.context_parallel_algo, "kvallgather_cp_algo"),),
    ),
    refuse(
        "xavier-initialisation",
        a.init_method_xavier_uniform,
        upstream={"mindspeed-llm": "megatron/training/arguments.py:1046"},
        message=(
            "--init-method-xavier-uniform makes every run fail, because it is passed to the model's configuration "
            "under a name that was removed"
        ),
        why=(
            "TransformerConfig has no field scaled_init_method. MindSpeed accepts unknown fields, but "
            "MindSpeed-LLM does not, so the run fails at launch"
        ),
        fixes=(drop(a.init_method_xavier_uniform),),
    ),
    refuse(
        "neat-pack",
        a.neat_pack & ~a.reset_attention_mask,
        at=(a.neat_pack,),
        message="--neat-pack needs --reset-attention-mask",
        fixes=(put(a.reset_attention_mask), drop(a.neat_pack)),
        why=(
            "without --reset-attention-mask, packed samples would attend to each other, so the run fails at "
            "launch. --reset-position-ids is not a substitute"
        ),
    ),
    refuse(
        "hf-convert-format",
        a.enable_hf2mg_convert & (a.ckpt_format == "torch_dist"),
        at=(a.ckpt_format, a.enable_hf2mg_convert),
        message="--enable-hf2mg-convert needs --ckpt-format torch; torch_dist is the default",
        why="converted weights can only be written in the old format, so the run fails at launch",
        fixes=(put(a.ckpt_format, "torch"),),
    ),
    refuse(
        "hf-convert-load",
        a.enable_hf2mg_convert & a.load.is_none,
        at=(a.enable_hf2mg_convert,),
        message="--enable-hf2mg-convert needs --load, the directory of the weights",
        why="without --load, there are no weights to convert, so the run fails at launch",
        fixes=(drop(a.enable_hf2mg_convert),),
    ),
    refuse(
        "hf-convert-save",
        a.enable_mg2hf_convert & a.save.is_none,
        at=(a.enable_mg2hf_convert,),
        message="--enable-mg2hf-convert needs --save, the directory to write to",
        why="the converted weights need a directory, so the run fails at launch",
        fixes=(drop(a.enable_mg2hf_convert),),
    ),
    refuse(
        "hf-convert-lora",
        a.enable_mg2hf_convert & (a.lora_target_modules.length > 0),
        message="--enable-mg2hf-convert does not work with LoRA (--lora-target-modules)",
        why="adapters cannot be converted, so the run fails at launch",
        fixes=(drop(a.enable_mg2hf_convert),),
    ),
    refuse(
        "prompt-type-template",
        a.prompt_type.is_set & a.hf_chat_template,
        message="--prompt-type does not work with --hf-chat-template",
        why="both options define the prompt format, but only one of them may do so, so the run fails at launch",
        fixes=(drop(a.hf_chat_template), drop(a.prompt_type)),
    ),
    in_range(
        "history-turns",
        a.history_turns,
        low=0,
        message="--history-turns is {history_turns}; it must not be negative",
        why="a number of turns cannot be negative, so the run fails at launch",
        fixes=(drop(a.history_turns),),
    ),
    refuse(
        "tokenizer-path-missing",
        (a.tokenizer_type == "PretrainedFromHF")
        & a.tokenizer_name_or_path.is_none
        & ~a.use_checkpoint_args
        & a.entry_is_known,
        at=(a.tokenizer_type,),
        message="--tokenizer-type PretrainedFromHF needs --tokenizer-name-or-path, the folder of the model",
    ),
    refuse(
        "tokenizer-type-missing",
        a.tokenizer_type.is_none & a.tokenizer_name_or_path.is_set & ~a.use_checkpoint_args & a.entry_is_known,
        at=(a.tokenizer_name_or_path,),
        upstream="megatron/training/tokenizer/tokenizer.py:100",
        message=(
            "--tokenizer-name-or-path needs --tokenizer-type PretrainedFromHF, but no type is set, and there is "
            "no default"
        ),
        fixes=(put(a.tokenizer_type, "PretrainedFromHF"),),
    ),
    refuse(
        "wandb-name",
        (a.wandb_exp_name != "") & a.wandb_exp_name.is_set & ~a.use_wandb,
        at=(a.wandb_exp_name,),
        message="--wandb-exp-name needs --use-wandb",
        why="the run fails at launch",
        fixes=(put(a.use_wandb), drop(a.wandb_exp_name)),
    ),
    in_range(
        "profile-step-start",
        a.profile_step_start,
        low=1,
        message="--profile-step-start {profile_step_start} must be at least 1",
        why="the first step cannot be profiled. The run fails at launch, even without --profile",
        fixes=(put(a.profile_step_start, 1),),
    ),
)
