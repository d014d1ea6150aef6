"""Changes that MindSpeed and MindSpeed-LLM make before and after Megatron's own validation."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron.derivation_namespace import Run, Step, derives
from preflight.dialects.megatron.mindspeed_renamed_arguments import before, older_names
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

CORE, LLM = "mindspeed/features_manager/", "mindspeed_llm/features_manager/"
RING, ULYSSES = "megatron_cp_algo", "ulysses_cp_algo"


OWN = ">=2.1"
"""Releases whose features change arguments; those that MindSpeed-LLM 2.0 and 2.1 call (2.0.0-llm) change none."""


class Change(NamedTuple):
    """An argument that becomes `after` if a condition holds. stack: only if this framework takes part, at one of its
    `versions`."""

    name: str
    after: object
    when: Callable[[Run], object]
    cause: str
    place: str
    stack: str = "mindspeed"
    versions: str = ""


def _context(run: Run, *algorithms: str) -> bool:
    return run.context_parallel_size > 1 and run.context_parallel_algo in algorithms


def general_mask(run: Run) -> bool:
    """Whether attention needs a mask other than a plain causal one."""
    general = run.attention_mask_type == "general" and not run.reset_attention_mask
    alibi = run.position_embedding_type == "alibi" and not run.use_flash_attn
    return bool(general or alibi or run.tokenizer_padding_side == "left")


CHANGES = (
    Change(
        "use_flash_attn",
        True,
        lambda r: _context(r, RING, "hybrid_cp_algo"),
        "context parallelism needs it",
        CORE + "context_parallel/context_parallel_feature.py:51",
    ),
    Change(
        "use_flash_attn",
        True,
        lambda r: _context(r, ULYSSES),
        "context parallelism needs it",
        CORE + "context_parallel/ulysses_context_parallel.py:34",
    ),
    Change(
        "context_parallel_algo",
        ULYSSES,
        lambda r: r.tp_2d and not r.use_flash_attn and r.context_parallel_algo == RING,
        "--tp-2d without --use-flash-attn",
        CORE + "tensor_parallel/tp_2d.py:38",
        versions=OWN,
    ),
    Change(
        "recompute_in_advance",
        False,
        lambda r: r.num_layers_per_virtual_pipeline_stage not in (None, 1),
        "a virtual stage has more than one layer",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:114",
        versions=OWN,
    ),
    Change(
        "enable_gloo_process_groups",
        False,
        lambda r: r.disable_gloo_group,
        "--disable-gloo-group",
        CORE + "disable_gloo_group/disable_gloo_group_feature.py:41",
        versions=OWN,
    ),
    Change(
        "moe_permute_fusion",
        True,
        lambda r: r.use_fused_moe_token_permute_and_unpermute,
        "its older name is given",
        CORE + "fusions/fused_moe_permute.py:41",
        versions=OWN,
    ),
    Change(
        "use_fused_moe_token_permute_and_unpermute",
        True,
        lambda r: r.moe_permute_fusion,
        "the newer name is given",
        CORE + "fusions/fused_moe_permute.py:43",
        versions=OWN,
    ),
    Change(
        "recompute_granularity",
        "full",
        lambda r: r.recompute_in_bubble and not r.swap_attention,
        "--recompute-in-bubble",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:70",
    ),
    Change(
        "recompute_method",
        "block",
        lambda r: r.recompute_in_bubble and not r.swap_attention,
        "--recompute-in-bubble",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:72",
    ),
    Change(
        "overlap_param_gather_with_optimizer_step",
        False,
        lambda r: r.optimizer == "muon",
        "Muon does not support it",
        CORE + "optimizer/muon_optimizer_feature.py:129",
        versions=OWN,
    ),
    Change(
        "create_attention_mask_in_dataloader",
        False,
        lambda r: True,
        "attention creates its own mask",
        CORE + "transformer/flash_attention/generate_mask_feature.py:31",
    ),
    Change(
        "create_attention_mask_in_dataloader",
        True,
        general_mask,
        "the mask type is general",
        LLM + "megatron_basic/training_basic.py:33",
        "mindspeed-llm",
        ">=26",
    ),
    Change(
        "log_throughput",
        False,
        lambda r: r.no_pad_to_seq_lengths,
        "--no-pad-to-seq-lengths",
        LLM + "finetune/finetune.py:34",
        "mindspeed-llm",
    ),
    Change(
        "kv_head_repeat_before_uly_alltoall",
        False,
        lambda r: r.context_parallel_size <= 1,
        "there is no context parallelism",
        LLM + "context_parallel/ulysses_context_parallel.py:24",
        "mindspeed-llm",
    ),
    Change(
        "output_layer_slice_num",
        1,
        lambda r: True,
        "MindSpeed-LLM does not support it",
        "mindspeed_llm/training/arguments.py:175",
        "mindspeed-llm",
        ">=2.2",
    ),
    Change(
        "shape_order",
        "TND",
        lambda r: r.reset_attention_mask,
        "--reset-attention-mask",
        LLM + "megatron_basic/training_basic.py:20",
        "mindspeed-llm",
        ">=2.3",
    ),
    Change(
        "shape_order",
        "TND",
        lambda r: r.reset_position_ids,
        "--reset-position-ids",
        LLM + "megatron_basic/training_basic.py:20",
        "mindspeed-llm",
        "<2.3",
    ),
    Change(
        "variable_seq_lengths",
        True,
        lambda r: r.no_pad_to_seq_lengths,
        "--no-pad-to-seq-lengths",
        LLM + "finetune/finetune.py:43",
        "mindspeed-llm",
    ),
    Change(
        "variable_seq_lengths",
        True,
        lambda r: r.reset_attention_mask and r.attention_mask_type == "causal" and _context(r, RING),
        "ring attention pads samples",
        LLM + "finetune/finetune.py:47",
        "mindspeed-llm",
        ">=2.3",
    ),
)


def inflates(run: Run) -> bool:
    """Whether MindSpeed-LLM uses only the ranks that one copy of the model needs: disaggregated training, since 26.1
    (vtp_feature.py:39)."""
    return bool(run.layerwise_disaggregated_training) and not before(run, "26.1")


@derives("attention_mask_type")
def context_mask(run: Run) -> None:
    """Before 2.2 MindSpeed-LLM uses the mask of context parallelism for all runs."""
    if before(run, "2.2"):
        place = "mindspeed_llm/training/arguments.py:1324"
        run.switch("attention_mask_type", run.cp_attention_mask_type, "--cp-attention-mask-type wins", place)


@derives("moe_shared_expert_intermediate_size")
def shared_experts(run: Run) -> None:
    """The number of shared experts becomes a size."""
    if run.n_shared_experts and run.moe_shared_expert_intermediate_size is None:
        size = run.moe_ffn_hidden_size if run.moe_ffn_hidden_size is not None else run.ffn_hidden_size
        run.derive(
            "moe_shared_expert_intermediate_size",
            run.n_shared_experts * size,
            "shared experts × their size",
            of="n_shared_experts",
        )


@derives("variable_seq_lengths")
def variable_lengths(run: Run) -> None:
    """MindSpeed restores switches that Megatron turned off; MindSpeed-LLM stopped doing so in 2.3."""
    given = run.written.get("variable_seq_lengths")
    if given is not None and matches(run.versions.get("mindspeed-llm", ""), "<2.3"):
        run.effective.pop("variable_seq_lengths", None)
        run.switches[:] = [switch for switch in run.switches if switch.name != "variable_seq_lengths"]


@derives("create_attention_mask_in_dataloader")
def loader_mask(run: Run) -> None:
    """Before 26.0, patch releases of MindSpeed-LLM differ in when the loader creates the mask."""
    if before(run, "26") and (run.attention_mask_type == "general" or general_mask(run)):
        run.lose("create_attention_mask_in_dataloader", "patch releases have different values")


@derives("virtual_pipeline_model_parallel_size", "overlap_p2p_comm")
def single_virtual_stage(run: Run) -> None:
    """A single virtual stage counts as none, except if expert communication overlaps."""
    if run.virtual_pipeline_model_parallel_size == 1 and not run.moe_fb_overlap and not before(run, "2.2"):
        place = CORE + "megatron_basic/megatron_basic.py:20"
        run.switch("virtual_pipeline_model_parallel_size", None, "one virtual stage means no virtual stages", place)
        run.switch("overlap_p2p_comm", False, "one virtual stage means no virtual stages", place)


@derives("recompute_num_layers")
def bubble(run: Run) -> None:
    """Recomputing in bubbles recomputes every layer of a chunk."""
    if run.recompute_in_bubble:
        each = (
            run.num_layers // run.pipeline_model_parallel_size
            if run.enable_recompute_layers_per_pp_rank
            else run.num_layers_per_virtual_pipeline_stage
        )
        run.derive("recompute_num_layers", each, "--recompute-in-bubble")


@derives("use_layer_wise_distributed_optimizer", "use_distributed_optimizer", "optimizer")
def muon(run: Run) -> None:
    """Muon shards its states layer by layer."""
    if run.optimizer in ("muon", "dist_muon"):
        layer_wise = run.optimizer == "dist_muon" or bool(run.use_distributed_optimizer)
        run.switch("optimizer", "muon", "dist_muon is its older name", CORE + "optimizer/muon_optimizer_feature.py:113")
        run.switch(
            "use_distributed_optimizer",
            False,
            "states are sharded layer by layer",
            CORE + "optimizer/muon_optimizer_feature.py:118",
        )
        run.derive("use_layer_wise_distributed_optimizer", layer_wise, of="optimizer")


def _step(change: Change) -> tuple[Step, tuple[str, ...]]:
    @derives(change.name)
    def step(run: Run) -> None:
        before = run.value(change.name)
        release = run.versions.get(change.stack)
        if release is None or not matches(release, change.versions) or (before.known and before.raw == change.after):
            return
        if change.when(run):
            run.switch(change.name, change.after, change.cause, change.place)

    return step


BEFORE = (older_names,)
AFTER = (
    context_mask,
    shared_experts,
    variable_lengths,
    single_virtual_stage,
    bubble,
    muon,
    *(_step(change) for change in CHANGES),
    loader_mask,
)
