"""Checks of optimizers: moving averages, low precision, Muon, swapping, reused master weights, and buffers."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import CORE, LLM, a, clash, needs

MINDSPEED = ConstraintSet(
    "mindspeed", why="MindSpeed tries to reject the combination, but reads an argument that does not exist"
)
EMA = a.optimizer_selection == "fused_ema_adamw"
MUON_FILE = "optimizer/muon_optimizer_feature.py"
LOW, LOW_LLM = (
    f"{CORE}optimizer/low_precision_optimizer_feature.py",
    f"{LLM}low_precision/low_precision_optimizer_feature.py",
)
MUON = a.optimizer == "muon"  # the older name dist_muon has been replaced by muon
REUSE, SWAP, QUANT = a.reuse_fp32_param, a.swap_optimizer, a.quant_grads | a.quant_states.is_set
STATES = "both options manage the states of the optimizer, but only one of them may do so, so the run fails at launch"
SHARDED = a.use_distributed_optimizer | a.use_layer_wise_distributed_optimizer

MINDSPEED.add(
    in_range(
        "ema-decay",
        a.ema_decay,
        high=1,
        fixes=(drop(a.ema_decay),),
        message="--ema-decay {ema_decay} must lie between 0 and 1",
        why=(
            "a moving average is a weighted mean, so its weight must lie between 0 and 1. The run fails at "
            "launch, even if the averaging optimizer is not selected"
        ),
    ),
    refuse(
        "ema-decay-negative",
        EMA & (a.ema_decay < 0),
        at=(a.ema_decay,),
        fixes=(drop(a.ema_decay),),
        message="--ema-decay {ema_decay} must lie between 0 and 1",
        why=(
            "a moving average is a weighted mean, so its weight must lie between 0 and 1; otherwise, the run fails "
            "at launch"
        ),
    ),
    clash(
        "quantised-gradients-fusion",
        a.quant_grads,
        a.gradient_accumulation_fusion,
        at=(a.quant_grads,),
        unless_framework="mindspeed-llm",
        message="--quant-grads needs --no-gradient-accumulation-fusion",
        fixes=(
            put(a.gradient_accumulation_fusion, False, title="set --no-gradient-accumulation-fusion"),
            drop(a.quant_grads),
        ),
        why="fused matrix products can only accumulate into full-precision gradients, so the run fails at launch",
    ),
    refuse(
        "quantised-states-swap",
        SWAP & QUANT,
        upstream={"mindspeed": f"{LOW}:78", "mindspeed-llm": f"{LOW_LLM}:82"},
        message="--swap-optimizer does not work with quantized states or gradients",
        why=STATES,
        fixes=(drop(SWAP),),
    ),
    refuse(
        "muon-fp16",
        MUON & a.fp16,
        upstream={"mindspeed": f"{CORE}{MUON_FILE}:135", "mindspeed-llm": f"{LLM}{MUON_FILE}:134"},
        at=(a.fp16, a.optimizer),
        message="--optimizer muon does not work with --fp16",
        why="the orthogonalization of Muon overflows in half precision, so the run fails at launch",
        fixes=(drop(a.fp16), put(a.optimizer, "adam")),
    ),
    refuse(
        "muon-fsdp",
        MUON & (a.use_custom_fsdp | a.use_torch_fsdp2),
        upstream={"mindspeed": f"{CORE}{MUON_FILE}:137", "mindspeed-llm": f"{LLM}{MUON_FILE}:136"},
        message="--optimizer muon does not work with FSDP",
        why="Muon needs whole matrices, but FSDP shards them, so the run fails at launch",
        fixes=(put(a.optimizer, "adam"),),
    ),
    refuse(
        "muon-overlap-step",
        MUON & a.overlap_param_gather_with_optimizer_step.given,
        severity=Severity.WARNING,
        at=(a.overlap_param_gather_with_optimizer_step,),
        upstream={"mindspeed": f"{CORE}{MUON_FILE}:129", "mindspeed-llm": f"{LLM}{MUON_FILE}:128"},
        fixes=(drop(a.overlap_param_gather_with_optimizer_step),),
        message="--overlap-param-gather-with-optimizer-step is turned off by --optimizer muon",
        why="the parameters are gathered after the step, not during it",
    ),
    clash("swap-optimizer-reuse", SWAP, REUSE, why=STATES),
    refuse(
        "swap-optimizer-distributed",
        SWAP & ~SHARDED,
        at=(SWAP,),
        message="--swap-optimizer needs --use-distributed-optimizer",
        why="only the shards of the distributed optimizer can be swapped, so the run fails at launch",
        fixes=(put(a.use_distributed_optimizer), drop(SWAP)),
    ),
    refuse(
        "swap-optimizer-ema",
        SWAP & EMA,
        severity=Severity.WARNING,
        message="--swap-optimizer does not work with --optimizer-selection fused_ema_adamw",
        why="the documentation excludes the combination, but no validator checks for it",
        fixes=(drop(SWAP),),
    ),
    needs(
        "reuse-fp32-param-bf16",
        REUSE,
        a.bf16,
        at=(REUSE,),
        why="master weights can only be rebuilt from the bits of bf16 weights, so the run fails at launch",
        after=("megatron/grouped-gemm-without-bf16",),
    ),
    refuse(
        "reuse-fp32-param-legacy",
        REUSE & a.use_legacy_models & a.overlap_param_gather,
        at=(REUSE, a.overlap_param_gather),
        message="--reuse-fp32-param in legacy models does not work with --overlap-param-gather",
        why="with that overlap, weights are gathered before the master weights are rebuilt, so the run fails at launch",
        fixes=(drop(a.overlap_param_gather), drop(REUSE)),
    ),
    clash(
        "reuse-fp32-param-ema",
        REUSE,
        EMA,
        why=STATES,
        fixes=(drop(a.optimizer_selection), drop(REUSE)),
        message="--reuse-fp32-param does not work with --optimizer-selection fused_ema_adamw",
    ),
    refuse(
        "virtual-optimizer-ema",
        a.virtual_optimizer.is_set & EMA,
        severity=Severity.WARNING,
        fixes=(drop(a.virtual_optimizer),),
        message="--virtual-optimizer does not work with --optimizer-selection fused_ema_adamw",
    ),
    refuse(
        "compress-optimizer-ema",
        a.compress_optimizer & EMA,
        severity=Severity.WARNING,
        unless_framework="mindspeed-llm",
        message="--compress-optimizer does not work with --optimizer-selection fused_ema_adamw",
        fixes=(drop(a.compress_optimizer),),
    ),
    refuse(
        "bucket-order-overlap",
        a.reset_bucket_group_order & ~a.overlap_param_gather,
        at=(a.reset_bucket_group_order,),
        unless_framework="mindspeed-llm",
        fixes=(put(a.overlap_param_gather), drop(a.reset_bucket_group_order)),
        message="--reset-bucket-group-order needs --overlap-param-gather",
        why="the option changes the order of the overlapped gathers, so the run fails at launch without them",
    ),
    refuse(
        "buffer-pad",
        (a.param_and_grad_buffer_pad < 0) & a.param_and_grad_buffer_pad.is_set,
        unless_framework="mindspeed-llm",
        message="--param-and-grad-buffer-pad must be positive, not {param_and_grad_buffer_pad}",
        why="a number of bytes cannot be negative, so the run fails at launch",
        fixes=(drop(a.param_and_grad_buffer_pad),),
    ),
    refuse(
        "buffer-pad-zero",
        a.param_and_grad_buffer_pad == 0,
        severity=Severity.WARNING,
        unless_framework="mindspeed-llm",
        message="--param-and-grad-buffer-pad 0 has no effect",
        why="MindSpeed tries to reject 0, but 0 passes the check",
        fixes=(drop(a.param_and_grad_buffer_pad),),
    ),
    refuse(
        "fsdp2-config-alone",
        a.fsdp2_config_path.is_set & (a.fsdp2_config_path != "") & ~a.use_torch_fsdp2,
        at=(a.fsdp2_config_path,),
        message="--fsdp2-config-path needs --use-torch-fsdp2",
        why="without FSDP2, there is nothing to configure, so the run fails at launch",
        fixes=(put(a.use_torch_fsdp2), drop(a.fsdp2_config_path)),
    ),
)
