"""Checks of how Megatron-Bridge splits layers across pipeline stages: by number, by stage sizes, or by a layout."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.megatron_bridge import DERIVED
from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.source.finding import Severity

PUBLISHED = (
    "the run fails when the network is built. If the config names a model, its published number of layers is used"
)
BRIDGE = ConstraintSet("megatron-bridge", why=PUBLISHED)
a = Handles(megatron_names() | names("megatron-bridge") | DERIVED)
CORE = "megatron/core/transformer/transformer_config.py"
VIRTUAL = a.num_virtual_stages_per_pipeline_rank
FIRST, LAST = a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers
DIES = "the run fails at startup, after the devices have been allocated"

BRIDGE.add(
    refuse(
        "layout-over-virtual-stages",
        all_of(VIRTUAL.is_set, a.layout_num_stages != a.pipeline_model_parallel_size * VIRTUAL),
        message=(
            "the pipeline layout has {layout_num_stages} stages, which differs from {pipeline_model_parallel_size} "
            "pipeline ranks × {num_virtual_stages_per_pipeline_rank} virtual stages"
        ),
        why=DIES,
        upstream=f"{CORE}:1971",
        at=(VIRTUAL, a.pipeline_model_parallel_layout, a.pipeline_model_parallel_size),
        after=("megatron/pipeline-layout",),
    ),
    refuse(
        "model-layers-over-stages",
        all_of(
            a.model_layers % a.pipeline_model_parallel_size != 0,
            a.pipeline_model_parallel_layout.is_none,
            FIRST.is_none,
            LAST.is_none,
            ~a.account_for_embedding_in_pipeline_split,
            ~a.account_for_loss_in_pipeline_split,
        ),
        message=(
            "the model's {model_layers} layers are not divisible by {pipeline_model_parallel_size} stages, and "
            "neither a layout nor the number of layers in the first or last stage is given"
        ),
        upstream="megatron/core/transformer/transformer_block.py:150",
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_size, a.num_layers),
    ),
    refuse(
        "model-layers-left-over",
        all_of(a.pipeline_model_parallel_size == 2, FIRST.is_set, LAST.is_set, a.model_layers != FIRST + LAST),
        message=(
            "the two stages have {decoder_first_pipeline_num_layers} and {decoder_last_pipeline_num_layers} layers, "
            "which do not add up to the model's {model_layers} layers"
        ),
        upstream=f"{CORE}:2036",
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_size, FIRST, LAST),
    ),
)
