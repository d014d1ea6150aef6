"""Older names of MindSpeed-LLM's arguments."""

from __future__ import annotations

from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.run.version_ranges import matches

LLM = "mindspeed_llm/features_manager/"

RENAMED = {
    "deprecated_use_deter_comp": ("npu_deterministic", 60),
    "deprecated_use_mc2": ("use_ascend_mc2", 65),
    "deprecated_cp_attention_mask_type": ("attention_mask_type", 70),
    "deprecated_moe_intermediate_size": ("moe_ffn_hidden_size", 75),
    "deprecated_n_group": ("moe_router_num_groups", 80),
    "deprecated_topk_group": ("moe_router_group_topk", 85),
    "deprecated_routed_scaling_factor": ("moe_router_topk_scaling_factor", 92),
    "deprecated_qk_rope_head_dim": ("qk_pos_emb_head_dim", 97),
    "deprecated_qk_nope_head_dim": ("qk_head_dim", 102),
    "deprecated_multi_head_latent_attention": ("multi_latent_attention", 107),
    "deprecated_rope_scaling_beta_fast": ("beta_fast", 112),
    "deprecated_rope_scaling_beta_slow": ("beta_slow", 117),
}
"""Older names of MindSpeed-LLM's arguments, and where it copies them."""


@derives(*(name for name, _ in RENAMED.values()))
def older_names(run: Run) -> None:
    """An argument given only by its older name gets the value of that name."""
    for old, (name, line) in RENAMED.items():
        if run.written.get(old) is not None and run.written.get(name) is None:
            source = "deprecated_topk_group" if name == "moe_router_topk_scaling_factor" and before(run, "26") else old
            run.derive(
                name, getattr(run, source), f"under its older name, {LLM}arguments/deprecated_args.py:{line}", of=old
            )
        alone = old.removeprefix("deprecated_")
        if run.written.get(alone) is not None and name not in run.table.defaults:
            run.derive(name, getattr(run, alone), "under the name that the release uses", of=alone)


def before(run: Run, release: str) -> bool:
    """Whether a run is of MindSpeed-LLM before a release."""
    return "mindspeed-llm" in run.versions and matches(run.versions["mindspeed-llm"], f"<{release}")
