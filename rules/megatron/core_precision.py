"""Checks of FP8 and FP4: recipes, layers kept in BF16, and gathered parameters."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
FP8 = a.fp8.is_set
KEPT = all_of(FP8, a.first_last_layers_bf16)
PER_STAGE = a.num_layers // a.pipeline_model_parallel_size

MEGATRON.add(
    refuse(
        "bf16-ends-with-delayed-fp8",
        all_of(KEPT, a.fp8_recipe == "delayed"),
        message="the first and last layers cannot stay in bf16 under the delayed fp8 recipe, which is the default",
        why="delayed scaling needs one history for all layers, so Megatron rejects the model configuration",
        at=(a.fp8_recipe, a.first_last_layers_bf16),
        fixes=(put(a.fp8_recipe, "tensorwise"), drop(a.first_last_layers_bf16)),
    ),
    refuse(
        "bf16-layers-at-start",
        all_of(KEPT, any_of(a.num_layers_at_start_in_bf16 < 0, a.num_layers_at_start_in_bf16 > PER_STAGE)),
        message=(
            "--num-layers-at-start-in-bf16 {num_layers_at_start_in_bf16} must be from 0 to {stage}, the number of "
            "layers of a pipeline stage"
        ),
        shows={"stage": PER_STAGE},
        at=(a.num_layers_at_start_in_bf16,),
        fixes=(put(a.num_layers_at_start_in_bf16, PER_STAGE),),
    ),
    refuse(
        "bf16-layers-at-end",
        all_of(KEPT, any_of(a.num_layers_at_end_in_bf16 < 0, a.num_layers_at_end_in_bf16 > PER_STAGE)),
        message=(
            "--num-layers-at-end-in-bf16 {num_layers_at_end_in_bf16} must be from 0 to {stage}, the number of layers "
            "of a pipeline stage"
        ),
        shows={"stage": PER_STAGE},
        at=(a.num_layers_at_end_in_bf16,),
        fixes=(put(a.num_layers_at_end_in_bf16, PER_STAGE),),
    ),
    requires(
        "custom-fp8-without-factory",
        all_of(FP8, a.fp8_recipe == "custom"),
        a.fp8_quantizer_factory.is_set,
        message="the custom fp8 recipe needs --fp8-quantizer-factory with the import path of a factory",
        at=(a.fp8_recipe,),
    ),
    refuse(
        "fp8-gather-without-fp8",
        all_of(a.fp8_param_gather, a.fp8.is_none),
        message="--fp8-param-gather keeps parameters in fp8, but no --fp8-format is given",
        at=(a.fp8_param_gather,),
        fixes=(drop(a.fp8_param_gather, safety=Safety.SAFE), put(a.fp8, "hybrid")),
    ),
    refuse(
        "fp8-gather-with-mxfp8",
        all_of(FP8, a.fp8_recipe == "mxfp8", a.fp8_param_gather),
        message="parameters cannot be gathered in fp8 with the mxfp8 recipe",
        at=(a.fp8_param_gather, a.fp8_recipe),
        fixes=(drop(a.fp8_param_gather),),
    ),
    refuse(
        "fp8-output-without-fp8",
        all_of(a.fp8_output_proj, a.fp8.is_none),
        message="--fp8-output-proj runs the output layer in fp8, but no --fp8-format is given",
        at=(a.fp8_output_proj,),
        fixes=(drop(a.fp8_output_proj, safety=Safety.SAFE),),
    ),
    refuse(
        "fp8-output-recipe",
        all_of(a.fp8_output_proj, FP8, a.fp8_recipe != "mxfp8"),
        message="the output layer can run in fp8 only with the mxfp8 recipe, not {fp8_recipe}",
        at=(a.fp8_recipe, a.fp8_output_proj),
        fixes=(drop(a.fp8_output_proj),),
    ),
    requires(
        "custom-fp4-without-factory",
        all_of(a.fp4.is_set, a.fp4_recipe == "custom"),
        a.fp4_quantizer_factory.is_set,
        message="the custom fp4 recipe needs --fp4-quantizer-factory with the import path of a factory",
        at=(a.fp4_recipe,),
    ),
)
