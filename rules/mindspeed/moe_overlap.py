"""Checks of mixtures of experts: communication that overlaps with computation, and the related memory savings."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

SPLIT = "the overlap supports only expert layers that are split in the required way, so the run fails at launch"
MINDSPEED = ConstraintSet("mindspeed", why=SPLIT)
ALLGATHER, ALLTOALL, FUSED = a.moe_allgather_overlap_comm, a.moe_alltoall_overlap_comm, a.moe_alltoall_mc2
DISPATCHER, GROUPED, ASYNC = a.moe_token_dispatcher_type, a.moe_grouped_gemm, a.moe_permutation_async_comm
SEQ, PLAIN = DISPATCHER == "alltoall_seq", DISPATCHER == "alltoall"
SAME = "both options replace the same layers, but only one of them may do so, so the run fails at launch"

MINDSPEED.add(
    clash("allgather-overlap-mc2", ALLGATHER, a.use_ascend_mc2, why=SAME),
    refuse(
        "allgather-overlap-dispatcher",
        ALLGATHER & (DISPATCHER != "allgather"),
        at=(DISPATCHER, ALLGATHER),
        message=(
            "--moe-allgather-overlap-comm needs --moe-token-dispatcher-type allgather, not {moe_token_dispatcher_type}"
        ),
        fixes=(drop(ALLGATHER), put(DISPATCHER, "allgather")),
    ),
    needs("allgather-overlap-async", ALLGATHER, ASYNC, at=(ALLGATHER,), why=SPLIT),
    needs("allgather-overlap-grouped-gemm", ALLGATHER, GROUPED, at=(ALLGATHER,), why=SPLIT),
    clash("alltoall-overlap-mc2", ALLTOALL, a.use_ascend_mc2, why=SAME),
    refuse(
        "alltoall-overlap-dispatcher",
        ALLTOALL & ~(SEQ | PLAIN),
        at=(DISPATCHER, ALLTOALL),
        message=(
            "--moe-alltoall-overlap-comm needs --moe-token-dispatcher-type alltoall or alltoall_seq, "
            "not {moe_token_dispatcher_type}"
        ),
        fixes=(put(DISPATCHER, "alltoall"), drop(ALLTOALL)),
    ),
    refuse(
        "alltoall-overlap-expert-parallel",
        ALLTOALL & (a.expert_model_parallel_size == 1),
        layout=True,
        message="--moe-alltoall-overlap-comm needs expert parallelism, but the expert-parallel size is 1",
        why="without expert parallelism, there is no exchange to hide, so the run fails at launch",
        fixes=(drop(ALLTOALL),),
    ),
    refuse(
        "alltoall-overlap-grouped-gemm",
        ALLTOALL & PLAIN & ~GROUPED,
        at=(ALLTOALL,),
        fixes=(put(GROUPED), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm needs --moe-grouped-gemm",
    ),
    refuse(
        "alltoall-overlap-tp-extend-ep",
        ALLTOALL & PLAIN & a.moe_tp_extend_ep,
        at=(DISPATCHER, a.moe_tp_extend_ep),
        message=(
            "--moe-alltoall-overlap-comm with --moe-tp-extend-ep needs --moe-token-dispatcher-type alltoall_seq, "
            "not alltoall"
        ),
        fixes=(put(DISPATCHER, "alltoall_seq", offered=True), drop(a.moe_tp_extend_ep)),
    ),
    refuse(
        "alltoall-seq-overlap-async",
        ALLTOALL & SEQ & ~ASYNC,
        at=(ALLTOALL,),
        fixes=(put(ASYNC), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm with the alltoall_seq dispatcher needs --moe-permutation-async-comm",
    ),
    refuse(
        "alltoall-seq-overlap-grouped-gemm",
        ALLTOALL & SEQ & ~GROUPED,
        at=(ALLTOALL,),
        fixes=(put(GROUPED), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm with the alltoall_seq dispatcher needs --moe-grouped-gemm",
    ),
    refuse(
        "alltoall-seq-overlap-tensor",
        ALLTOALL & SEQ & ~a.moe_tp_extend_ep & (a.tensor_model_parallel_size > 1),
        at=(ALLTOALL, a.tensor_model_parallel_size),
        fixes=(put(a.moe_tp_extend_ep), drop(ALLTOALL)),
        message=(
            "--moe-alltoall-overlap-comm with the alltoall_seq dispatcher at a tensor-parallel size of "
            "{tensor_model_parallel_size} needs --moe-tp-extend-ep"
        ),
    ),
    clash("alltoall-mc2-mc2", FUSED, a.use_ascend_mc2, why=SAME),
    clash("alltoall-mc2-alltoall-overlap", FUSED, ALLTOALL, why=SAME),
    clash("alltoall-mc2-allgather-overlap", FUSED, ALLGATHER, why=SAME),
    clash("alltoall-mc2-fb-overlap", FUSED, a.moe_fb_overlap, why=SAME),
    clash("alltoall-mc2-tp-extend-ep", FUSED, a.moe_tp_extend_ep, why=SAME),
)
