"""Checks of weights that are sharded beyond tensor parallelism (GTP)."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, weights_sharded
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
SHARDS = (a.tensor_parallel_num_weight_shards, a.expert_tensor_parallel_num_weight_shards)
MXFP8 = all_of(weights_sharded, a.fp8_recipe == "mxfp8")

MEGATRON.add(
    requires(
        "weight-shards-in-fp4",
        all_of(weights_sharded, a.fp4.is_set),
        a.fp4_param_gather,
        message="sharded weights in fp4 need --fp4-param-gather",
        why="the weights must be gathered in fp4, so " + REFUSED,
        at=(a.fp4, *SHARDS),
    ),
    conflicts(
        "weight-shards-with-averaging",
        weights_sharded,
        a.ddp_average_in_collective,
        message="sharded weights need summed gradients, but --ddp-average-in-collective averages them",
        at=(a.ddp_average_in_collective, *SHARDS),
        fixes=(drop(a.ddp_average_in_collective, safety=Safety.SAFE),),
    ),
    requires(
        "weight-shards-in-mxfp8",
        MXFP8,
        a.fp8_param_gather,
        message="sharded weights with the mxfp8 recipe need --fp8-param-gather",
        why="only the fp8 shards are kept, so the weights must be gathered in fp8; otherwise, " + REFUSED,
        at=(a.fp8_recipe, *SHARDS),
    ),
    requires(
        "weight-shards-without-reused-buffer",
        all_of(MXFP8, a.fp8_param_gather),
        a.reuse_grad_buf_for_mxfp8_param_ag,
        message="sharded weights with the mxfp8 recipe need --reuse-grad-buf-for-mxfp8-param-ag",
        why="mxfp8 weights do not fit in the weight buffer, so " + REFUSED,
        at=(a.fp8_recipe, *SHARDS),
    ),
    conflicts(
        "symmetric-buffers-without-registration",
        all_of(weights_sharded, any_of(a.gtp_remat_nccl_ub, a.gtp_expert_remat_nccl_ub)),
        a.disable_symmetric_registration,
        message="--gtp-remat-nccl-ub and --gtp-expert-remat-nccl-ub do not work with --disable-symmetric-registration",
        at=(a.disable_symmetric_registration, a.gtp_remat_nccl_ub, a.gtp_expert_remat_nccl_ub),
        fixes=(drop(a.disable_symmetric_registration, safety=Safety.SAFE),),
    ),
)
