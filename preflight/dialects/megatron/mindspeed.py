"""What MindSpeed and MindSpeed-LLM change before and after Megatron's own validation."""

from __future__ import annotations

from preflight.dialects.megatron.mindspeed_switches import CHANGES, CORE, Change, general_mask
from preflight.dialects.megatron.namespace import Run, Step, derives
from preflight.dialects.megatron.older_names import before, older_names
from preflight.run.versions import matches


def inflates(run: Run) -> bool:
    """Whether MindSpeed-LLM counts as many ranks as one copy of the model needs: disaggregated training,
    since 26.1 (vtp_feature.py:39)."""
    return bool(run.layerwise_disaggregated_training) and not before(run, "26.1")


@derives("attention_mask_type")
def context_mask(run: Run) -> None:
    """Before 2.2 MindSpeed-LLM takes the mask of context parallelism for all."""
    if before(run, "2.2"):
        place = "mindspeed_llm/training/arguments.py:1324"
        run.switch("attention_mask_type", run.cp_attention_mask_type, "--cp-attention-mask-type wins", place)


@derives("moe_shared_expert_intermediate_size")
def shared_experts(run: Run) -> None:
    """A number of shared experts is a size."""
    if run.n_shared_experts and run.moe_shared_expert_intermediate_size is None:
        size = run.moe_ffn_hidden_size if run.moe_ffn_hidden_size is not None else run.ffn_hidden_size
        run.derive(
            "moe_shared_expert_intermediate_size",
            run.n_shared_experts * size,
            "shared experts x their size",
            of="n_shared_experts",
        )


@derives("variable_seq_lengths")
def variable_lengths(run: Run) -> None:
    """MindSpeed gives back what Megatron has switched off; MindSpeed-LLM does not since 2.3."""
    given = run.written.get("variable_seq_lengths")
    if given is not None and matches(run.versions.get("mindspeed-llm", ""), "<2.3"):
        run.effective.pop("variable_seq_lengths", None)
        run.switches[:] = [switch for switch in run.switches if switch.name != "variable_seq_lengths"]


@derives("create_attention_mask_in_dataloader")
def loader_mask(run: Run) -> None:
    """Before 26.0 of MindSpeed-LLM its patch releases differ in when the loader makes the mask."""
    if before(run, "26") and (run.attention_mask_type == "general" or general_mask(run)):
        run.lose("create_attention_mask_in_dataloader", "patch releases differ in it")


@derives("virtual_pipeline_model_parallel_size", "overlap_p2p_comm")
def single_virtual_stage(run: Run) -> None:
    """One virtual stage is none, except where expert communication overlaps."""
    if run.virtual_pipeline_model_parallel_size == 1 and not run.moe_fb_overlap and not before(run, "2.2"):
        place = CORE + "megatron_basic/megatron_basic.py:20"
        run.switch("virtual_pipeline_model_parallel_size", None, "one virtual stage is none", place)
        run.switch("overlap_p2p_comm", False, "one virtual stage is none", place)


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
