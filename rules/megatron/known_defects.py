"""Known defects in Megatron releases that make a run train incorrectly without an error."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron")
ISSUES = "https://github.com/NVIDIA/Megatron-LM"
TENSOR = a.tensor_model_parallel_size
DELTA_NET = a.experimental_attention_variant.is_in("gdn", "gated_delta_net")

FIRST, LAST = a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers
PIPELINE, LAYERS = a.pipeline_model_parallel_size, a.num_layers
LEGACY = any_of(a.use_legacy_models, a.pipeline_model_parallel_split_rank.is_set)
BY_ENDS = all_of(a.hybrid_layer_pattern.is_none, a.pipeline_model_parallel_layout.is_none)
OVERFULL = any_of(
    all_of(FIRST.is_set, FIRST > LAYERS),
    all_of(LAST.is_set, LAST > LAYERS),
    all_of(FIRST.is_set, LAST.is_set, FIRST + LAST > LAYERS),
)

MEGATRON.add(
    refuse(
        "layers-lost-without-pipeline",
        all_of(BY_ENDS, PIPELINE == 1, FIRST.is_set, LAST.is_set, LAYERS != FIRST + LAST),
        message=(
            "without a pipeline, one stage is both the first and the last, so the model is built with "
            "{decoder_last_pipeline_num_layers} layers, not {num_layers}"
        ),
        why=(
            "the check assumes -1 intermediate stages and therefore accepts the split, and the run silently "
            "trains a smaller model"
        ),
        severity=Severity.WARNING,
        versions=">=0.13",
        at=(LAST, FIRST),
        fixes=(drop(FIRST, also=(LAST,)),),
    ),
    refuse(
        "layers-lost-over-stages",
        all_of(
            FIRST.is_none, LAST.is_none, a.num_layers_per_virtual_pipeline_stage.is_none, ~LEGACY, LAYERS % PIPELINE > 0
        ),
        message=(
            "{num_layers} layers are not divisible by {pipeline_model_parallel_size} pipeline stages, so this release "
            "builds {built} of them and omits the rest"
        ),
        why=(
            "every stage builds its share of the layers, rounded down, so the run silently trains a smaller model. "
            "Since 0.10, Megatron rejects such a run"
        ),
        severity=Severity.WARNING,
        versions=">=0.8,<0.10",
        upstream="megatron/core/transformer/transformer_block.py",
        shows={"built": LAYERS // PIPELINE * PIPELINE},
        at=(LAYERS, PIPELINE),
        layout=True,
        unless_framework="mindspeed",
    ),
    refuse(
        "ends-hold-more-than-the-model",
        all_of(BY_ENDS, PIPELINE > 1, OVERFULL),
        message="the first and last stages together have more layers than the {num_layers} layers of the model",
        why=(
            "the intermediate stages get a negative number of layers and build none, so the trained model does "
            "not have --num-layers layers"
        ),
        severity=Severity.WARNING,
        at=(FIRST, LAST, LAYERS),
        layout=True,
        after=("megatron/uneven-pipeline",),
    ),
    refuse(
        "delta-net-norm-drifts",
        all_of(DELTA_NET, TENSOR > 1, ~a.sequence_parallel),
        message=(
            "with a tensor-parallel size of {tensor_model_parallel_size} and without --sequence-parallel, the output "
            "norms of the gated delta net drift apart between ranks"
        ),
        why=(
            "a reported defect in this release: the gradient is not summed over tensor-parallel ranks "
            f"({ISSUES}/issues/7452)"
        ),
        severity=Severity.WARNING,
        upstream=f"{ISSUES}/issues/7452#gdn",
        versions=">=0.13",
        at=(a.experimental_attention_variant, TENSOR),
        fixes=(put(a.sequence_parallel),),
    ),
    refuse(
        "sharded-checkpoint-names-layers-locally",
        all_of(a.use_megatron_fsdp, a.ckpt_format == "fsdp_dtensor", a.pipeline_model_parallel_size > 1, a.save.is_set),
        message=(
            "fsdp_dtensor checkpoints name layers by pipeline stage, so load the checkpoints of this run only with a "
            "pipeline-parallel size of {pipeline_model_parallel_size}"
        ),
        why=f"loading with a different pipeline-parallel size succeeds but puts layers in the wrong place ({ISSUES}/issues/7452)",
        severity=Severity.NOTE,
        upstream=f"{ISSUES}/issues/7452#mfsdp-ckpt",
        versions=">=0.13",
        at=(a.pipeline_model_parallel_size, a.ckpt_format),
    ),
)
