"""Mixtures of experts: communication hidden behind computation, and memory saved with it."""

from __future__ import annotations

from preflight.lint.shapes import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import CORE, a, clash, needs

MINDSPEED = ConstraintSet("mindspeed")
GATHER, TOALL, MC2 = f"{CORE}moe/moe_allgather_overlap.py", f"{CORE}moe/moe_alltoall_overlap.py", f"{CORE}moe/moe_alltoall_mc2.py"
ALLGATHER, ALLTOALL, FUSED = a.moe_allgather_overlap_comm, a.moe_alltoall_overlap_comm, a.moe_alltoall_mc2
DISPATCHER, GROUPED, ASYNC = a.moe_token_dispatcher_type, a.moe_grouped_gemm, a.moe_permutation_async_comm
SEQ, PLAIN = DISPATCHER == "alltoall_seq", DISPATCHER == "alltoall"
SAME = "both replace the same layers; dies at launch"
SPLIT = "the overlap is written for layers split in that way; dies at launch"

MINDSPEED.add(
    clash("allgather-overlap-mc2", ALLGATHER, a.use_ascend_mc2, upstream=f"{GATHER}:23", why=SAME),
    refuse(
        "allgather-overlap-dispatcher",
        ALLGATHER & (DISPATCHER != "allgather"),
        upstream=f"{GATHER}:25",
        at=(DISPATCHER, ALLGATHER),
        why=SPLIT,
        message="--moe-allgather-overlap-comm needs --moe-token-dispatcher-type allgather, not {moe_token_dispatcher_type}",
        fixes=(drop(ALLGATHER), put(DISPATCHER, "allgather")),
    ),
    needs("allgather-overlap-async", ALLGATHER, ASYNC, upstream=f"{GATHER}:28", at=(ALLGATHER,), why=SPLIT),
    needs("allgather-overlap-grouped-gemm", ALLGATHER, GROUPED, upstream=f"{GATHER}:30", at=(ALLGATHER,), why=SPLIT),
    clash("alltoall-overlap-mc2", ALLTOALL, a.use_ascend_mc2, upstream=f"{TOALL}:23", why=SAME),
    refuse(
        "alltoall-overlap-dispatcher",
        ALLTOALL & ~(SEQ | PLAIN),
        upstream=f"{TOALL}:25",
        at=(DISPATCHER, ALLTOALL),
        why=SPLIT,
        message="--moe-alltoall-overlap-comm needs --moe-token-dispatcher-type alltoall or alltoall_seq, not {moe_token_dispatcher_type}",
        fixes=(put(DISPATCHER, "alltoall"), drop(ALLTOALL)),
    ),
    refuse(
        "alltoall-overlap-expert-parallel",
        ALLTOALL & (a.expert_model_parallel_size == 1),
        upstream=f"{TOALL}:28",
        at=(ALLTOALL, a.expert_model_parallel_size),
        layout=True,
        message="--moe-alltoall-overlap-comm needs expert parallelism, the size is 1",
        why="without it there is no exchange to hide; dies at launch",
        fixes=(drop(ALLTOALL),),
        versions=">=26.1",
        since="26.1",
    ),
    refuse(
        "alltoall-overlap-grouped-gemm",
        ALLTOALL & PLAIN & ~GROUPED,
        upstream=f"{TOALL}:32",
        at=(ALLTOALL,),
        why=SPLIT,
        fixes=(put(GROUPED), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm needs --moe-grouped-gemm",
    ),
    refuse(
        "alltoall-overlap-tp-extend-ep",
        ALLTOALL & PLAIN & a.moe_tp_extend_ep,
        upstream=f"{TOALL}:34",
        at=(DISPATCHER, a.moe_tp_extend_ep),
        why=SPLIT,
        message="--moe-alltoall-overlap-comm with --moe-tp-extend-ep needs --moe-token-dispatcher-type alltoall_seq, not alltoall",
        since="2.2",
        fixes=(put(DISPATCHER, "alltoall_seq"), drop(a.moe_tp_extend_ep)),
    ),
    refuse(
        "alltoall-seq-overlap-async",
        ALLTOALL & SEQ & ~ASYNC,
        upstream=f"{TOALL}:41",
        at=(ALLTOALL,),
        why=SPLIT,
        fixes=(put(ASYNC), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm with the alltoall_seq dispatcher needs --moe-permutation-async-comm",
    ),
    refuse(
        "alltoall-seq-overlap-grouped-gemm",
        ALLTOALL & SEQ & ~GROUPED,
        upstream=f"{TOALL}:43",
        at=(ALLTOALL,),
        why=SPLIT,
        fixes=(put(GROUPED), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm with the alltoall_seq dispatcher needs --moe-grouped-gemm",
    ),
    refuse(
        "alltoall-seq-overlap-tensor",
        ALLTOALL & SEQ & ~a.moe_tp_extend_ep & (a.tensor_model_parallel_size > 1),
        upstream=f"{TOALL}:45",
        why=SPLIT,
        at=(ALLTOALL, a.tensor_model_parallel_size),
        fixes=(put(a.moe_tp_extend_ep), drop(ALLTOALL)),
        message="--moe-alltoall-overlap-comm with the alltoall_seq dispatcher at tensor parallel {tensor_model_parallel_size} needs --moe-tp-extend-ep",
    ),
    clash("alltoall-mc2-mc2", FUSED, a.use_ascend_mc2, upstream=f"{MC2}:22", why=SAME, versions=">=26"),
    clash("alltoall-mc2-alltoall-overlap", FUSED, ALLTOALL, upstream=f"{MC2}:23", why=SAME, versions=">=26"),
    clash("alltoall-mc2-allgather-overlap", FUSED, ALLGATHER, upstream=f"{MC2}:24", why=SAME, versions=">=26"),
    clash("alltoall-mc2-fb-overlap", FUSED, a.moe_fb_overlap, upstream=f"{MC2}:25", why=SAME, versions=">=26"),
    clash("alltoall-mc2-tp-extend-ep", FUSED, a.moe_tp_extend_ep, upstream=f"{MC2}:26", why=SAME, versions=">=26"),
)
