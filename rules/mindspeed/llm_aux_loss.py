"""Checks of the load-balancing loss over all ranks in MindSpeed-LLM, and of the prediction layers in 2.1."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

LOSS, MTP = a.use_global_aux_loss, a.mtp_num_layers.is_set & (a.mtp_num_layers != 0)
HIDDEN = "the loss cannot include what the overlap computes, so the run fails at launch"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "global-aux-loss-pipeline",
        LOSS & (a.pipeline_model_parallel_size > 1),
        message="--use-global-aux-loss needs a pipeline-parallel size of 1, not {pipeline_model_parallel_size}",
        why="the loss can only be gathered within one stage, so the run fails at launch",
        fixes=(drop(LOSS),),
    ),
    clash("global-aux-loss-alltoall-overlap", LOSS, a.moe_alltoall_overlap_comm, why=HIDDEN),
    clash("global-aux-loss-allgather-overlap", LOSS, a.moe_allgather_overlap_comm, why=HIDDEN),
    clash("global-aux-loss-fb-overlap", LOSS, a.moe_fb_overlap, why=HIDDEN),
    needs(
        "mtp-legacy-models",
        MTP,
        a.use_mcore_models,
        message="--mtp-num-layers needs --use-mcore-models",
        at=(a.mtp_num_layers,),
        why="legacy models do not support prediction layers, so the run fails at launch",
    ),
    refuse(
        "mtp-position-kind",
        MTP & (a.position_embedding_type != "rope") & (a.position_embedding_type != "none"),
        message="--mtp-num-layers needs --position-embedding-type rope or none, not {position_embedding_type}",
        why="prediction layers do not support other position embeddings, so the run fails at launch",
        fixes=(put(a.position_embedding_type, "rope"), drop(a.mtp_num_layers)),
    ),
    clash(
        "availability-distributed-checkpoint",
        a.enable_high_availability,
        a.use_dist_ckpt.given,
        at=(a.use_dist_ckpt, a.enable_high_availability),
        message="--enable-high-availability does not work with --use-dist-ckpt",
        why="states can only be saved and restored in the old format, so the run fails at launch",
    ),
)
