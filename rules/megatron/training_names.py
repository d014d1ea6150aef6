"""Names that the topic files over Megatron's training arguments share:
places upstream and conditions of several checks."""

from __future__ import annotations

from preflight.lint.expressions import Expression, any_of
from preflight.rules.megatron.core_names import a

ARGUMENTS = "megatron/training/arguments.py"
CONFIG_ARGUMENTS = "megatron/training/argument_utils.py"
DETERMINISM = "megatron/training/determinism.py"
BATCHES = "megatron/core/num_microbatches_calculator.py"
SCHEDULER = "megatron/core/optimizer_param_scheduler.py"
TRAINING = "megatron/training/training.py"
OPTIMIZER = "megatron/core/optimizer/optimizer_config.py"
DDP = "megatron/core/distributed/distributed_data_parallel_config.py"
REFUSED = "the run is refused at start-up, on every rank"


# The optimizer as upstream sees it before it switches anything.
distributed_at_first: Expression = a.use_distributed_optimizer.written
gather_at_first: Expression = any_of(a.overlap_param_gather, a.overlap_param_gather.written)
weights_sharded: Expression = any_of(a.gtp_weight_remat_size > 1, a.expert_gtp_weight_remat_size > 1)
separate_data: Expression = any_of(a.train_data_path.is_set, a.valid_data_path.is_set, a.test_data_path.is_set)
