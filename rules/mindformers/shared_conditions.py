"""Handles and conditions that the constraints of graph-mode MindFormers share."""

from preflight.dialects.mindformers.graph_kind_checks import at as at
from preflight.dialects.mindformers.release_tables import known_names
from preflight.lint.expressions import Expression, Handles, all_of, any_of

a = Handles(known_names())

legacy: Expression = a["kind"] == "legacy"
mcore: Expression = a["kind"] == "mcore"
training: Expression = a["training"]
semi: Expression = a["parallel_mode"] == "semi_auto_parallel"
automatic: Expression = a["parallel_mode"].is_in("semi_auto_parallel", "auto_parallel")

data = a["parallel_config.data_parallel"]
tensor = a["parallel_config.model_parallel"]
context = a["parallel_config.context_parallel"]
expert = a["parallel_config.expert_parallel"]
pipeline = a["parallel_config.pipeline_stage"]
micro = a["parallel_config.micro_batch_num"]
sequence_parallel = a["parallel_config.use_seq_parallel"]
scheduler = a["parallel.pipeline_config.pipeline_scheduler"]

flash = a["model.model_config.use_flash_attention"]
"""Flash attention as the first checks see it: the setting in the file, without the default of mcore."""

empty_checkpoint: Expression = all_of(
    any_of(a["load_checkpoint"].is_none, a["load_checkpoint"] == ""),
    any_of(
        a["model.model_config.checkpoint_name_or_path"].written.is_none,
        a["model.model_config.checkpoint_name_or_path"].written == "",
    ),
)
no_directory: Expression = any_of(
    a["pretrained_model_dir"].is_none, a["pretrained_model_dir"] == "", a["pretrained_model_dir"].has("path/to")
)

CHECKS = "mindformers/tools/check_rules.py"
TRAINER = "mindformers/trainer/base_trainer.py"
RUN = "mindformers/trainer/trainer.py"
VALIDATORS = "mindformers/core/context/validators.py"
CONFIG = "mindformers/parallel_core/transformer_config.py"
SINCE_TEMPLATE = ">=1.5"
MCORE = ">=1.7"
NEW = ">=2.0"
