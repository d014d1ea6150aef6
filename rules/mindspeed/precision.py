"""Checks of FP8, the transformer implementation, activation swapping and compression, and modes of the whole run."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import CORE, LLM, a, clash
from preflight.source.typing_without_import import Any

MINDSPEED = ConstraintSet("mindspeed")
BASIC = "megatron_basic/transformer_engine_basic.py"
CORE_ONLY = "mindspeed-llm"
QAD_ON = a.qad_enable.written == True


def _basic(core: int, llm: int) -> dict[str, Any]:
    """The two copies of one check."""
    places = {"mindspeed": f"{CORE}{BASIC}:{core}", "mindspeed-llm": f"{LLM}{BASIC}:{llm}"}
    return {"upstream": places, "also": tuple(places.values())}


MINDSPEED.add(
    refuse(
        "fp8-local",
        a.fp8 & (a.transformer_impl == "local"),
        **_basic(87, 54),
        message="FP8 needs --transformer-impl transformer_engine, not local",
        why="the local layers do not support FP8, so the run fails at launch",
        fixes=(put(a.transformer_impl, "transformer_engine"), drop(a.fp8)),
    ),
    refuse(
        "legacy-transformer-engine",
        a.use_legacy_models & (a.transformer_impl == "transformer_engine"),
        **_basic(95, 62),
        message="--use-legacy-models does not work with --transformer-impl transformer_engine, which is the default",
        why="only core models can use the layers of Transformer Engine, so the run fails at launch",
        fixes=(put(a.transformer_impl, "local"), drop(a.use_legacy_models)),
    ),
    refuse(
        "hif8-recipe",
        (a.fp8 == "hif8") & (a.fp8_recipe != "tensorwise"),
        **_basic(98, 65),
        at=(a.fp8_recipe, a.fp8),
        message="--fp8-format hif8 needs --fp8-recipe tensorwise, not {fp8_recipe}",
        why="the format supports only one scale per tensor, so the run fails at launch",
        fixes=(put(a.fp8_recipe, "tensorwise"),),
    ),
    refuse(
        "fp8-reuse-alone",
        a.fp8_reuse_quantized_weight & ~a.fp8,
        **_basic(106, 73),
        at=(a.fp8_reuse_quantized_weight,),
        message="--fp8-reuse-quantized-weight needs --fp8-format",
        why="without FP8, no weights are quantized, so the run fails at launch",
        fixes=(drop(a.fp8_reuse_quantized_weight),),
    ),
    refuse(
        "fp8-grouped-recipe",
        a.fp8
        & a.moe_grouped_gemm
        & a.use_gmm_fp8
        & ~a.fp8_recipe.is_in("mxfp8", "mxfp8-32x32", "tensorwise", "delayed"),
        severity=Severity.WARNING,
        upstream={"mindspeed": f"{CORE}{BASIC}:101", "mindspeed-llm": f"{LLM}{BASIC}:68"},
        at=(a.fp8_recipe,),
        message="grouped matrix products stay in bf16 with the {fp8_recipe} recipe",
        why="the experts do most of the computation but do not benefit from FP8",
        fixes=(put(a.fp8_recipe, "mxfp8"),),
    ),
    refuse(
        "op-tflops-mla",
        a.op_cal_tflops & a.multi_latent_attention,
        unless_framework=CORE_ONLY,
        at=(a.op_cal_tflops,),
        message="--op-cal-tflops does not work with multi-head latent attention",
        why="the operators of latent attention cannot be counted, so the run fails at launch",
        fixes=(drop(a.op_cal_tflops),),
    ),
    refuse(
        "auto-settings-checkpoints",
        a.auto_settings & (a.load.is_set | a.save.is_set),
        unless_framework=CORE_ONLY,
        message="--auto-settings does not work with --load or --save",
        why=("the search runs trial jobs with other layouts and cannot use checkpoints, so the run fails at launch"),
        fixes=(drop(also=(a.load, a.save), title="remove --load and --save"), drop(a.auto_settings)),
    ),
    refuse(
        "auto-settings-ranks",
        a.auto_settings & (a.auto_settings_ranks < 16),
        severity=Severity.WARNING,
        unless_framework=CORE_ONLY,
        at=(a.auto_settings_ranks, a.auto_settings),
        message="--auto-settings is documented only for 16 ranks or more, not {auto_settings_ranks}",
        why="the search is not designed for fewer ranks, but nothing checks this",
        versions=">=2.3",
    ),
    clash(
        "swap-attention-lora",
        a.swap_attention,
        a.lora_target_modules,
        at=(a.swap_attention, a.lora_target_modules),
        message="--swap-attention does not work with LoRA (--lora-target-modules)",
        why="frozen layers do not keep activations to swap, so the run fails at launch",
        fixes=(drop(a.swap_attention, also=(a.swap_modules,)),),
    ),
    refuse(
        "swap-attention-flash",
        a.swap_attention & ~a.use_flash_attn,
        severity=Severity.WARNING,
        at=(a.swap_attention,),
        message="--swap-attention is documented only for flash attention (--use-flash-attn)",
        why="no validator checks this",
        fixes=(put(a.use_flash_attn),),
    ),
    clash(
        "compress-dense-recompute",
        a.compress_dense != "disable",
        a.recompute_activation_function,
        unless_framework=CORE_ONLY,
        message="--compress-dense does not work with --recompute-activation-function",
        at=(a.compress_dense, a.recompute_activation_function),
        why="the activation would be both compressed and dropped, so the run fails at launch",
        fixes=(drop(a.recompute_activation_function), drop(a.compress_dense)),
    ),
    refuse(
        "fsdp2-recompute-twice",
        a.use_torch_fsdp2 & a.fsdp2_config_path.is_set & a.recompute_granularity.written.is_set,
        severity=Severity.WARNING,
        at=(a.recompute_granularity, a.fsdp2_config_path),
        fixes=(drop(a.recompute_granularity, also=(a.recompute_method, a.recompute_num_layers)),),
        message="recomputation is set by --recompute-granularity and may be set by the FSDP2 config as well",
        why="the documentation allows only one of the two, but no validator checks this",
    ),
    refuse(
        "recompute-norm-legacy",
        a.recompute_norm & a.use_legacy_models,
        severity=Severity.WARNING,
        message="--recompute-norm has no effect for legacy models",
        why="only core models have the hook, but no validator checks this",
        fixes=(drop(a.recompute_norm),),
    ),
    refuse(
        "qad-teacher",
        QAD_ON & (a.qad_teacher_load.is_none | (a.qad_teacher_load == "")),
        at=(a.qad_enable,),
        unless_framework=CORE_ONLY,
        message="--qad-enable needs --qad-teacher-load",
        why="distillation needs a teacher model, so the run fails at launch",
        fixes=(drop(a.qad_enable),),
    ),
    refuse(
        "qad-temperature",
        QAD_ON & (a.kl_temperature <= 0),
        at=(a.kl_temperature,),
        unless_framework=CORE_ONLY,
        fixes=(drop(a.kl_temperature),),
        message="--kl-temperature must be positive, not {kl_temperature}",
        why="logits are divided by the temperature, so it must be positive; otherwise, the run fails at launch",
    ),
    refuse(
        "qad-weight",
        QAD_ON & (a.kl_loss_weight < 0),
        at=(a.kl_loss_weight,),
        unless_framework=CORE_ONLY,
        fixes=(drop(a.kl_loss_weight),),
        message="--kl-loss-weight is {kl_loss_weight}; it must not be negative",
        why="the loss would push the student away from the teacher, so the run fails at launch",
    ),
    refuse(
        "qad-experts",
        QAD_ON & a.num_experts.is_set,
        at=(a.qad_enable, a.num_experts),
        unless_framework=CORE_ONLY,
        message="--qad-enable does not work with mixture-of-experts models",
        why="the teacher and the student would route tokens differently, so the run fails at launch",
        fixes=(drop(a.qad_enable),),
    ),
    refuse(
        "qad-pipeline",
        QAD_ON & (a.pipeline_model_parallel_size > 1),
        at=(a.qad_enable, a.pipeline_model_parallel_size),
        unless_framework=CORE_ONLY,
        layout=True,
        message="--qad-enable needs a pipeline-parallel size of 1, not {pipeline_model_parallel_size}",
        why="the loss needs the logits on every rank, so the run fails at launch",
        fixes=(drop(a.qad_enable),),
    ),
)
