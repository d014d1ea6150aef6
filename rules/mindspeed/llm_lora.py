"""Checks of low-rank adapters in MindSpeed-LLM."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
LORA = a.lora_target_modules.length > 0

MINDSPEED_LLM.add(
    refuse(
        "lora-dispatcher",
        a.num_experts.is_set & LORA & (a.moe_token_dispatcher_type != "alltoall_seq"),
        at=(a.moe_token_dispatcher_type, a.lora_target_modules),
        message=(
            "LoRA with a mixture of experts needs --moe-token-dispatcher-type alltoall_seq, not "
            "{moe_token_dispatcher_type}"
        ),
        why="only the alltoall_seq dispatcher propagates the gradients of the adapters, so the run fails at launch",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall_seq"),),
    ),
    refuse(
        "lora-tp-extend-ep",
        LORA & a.moe_tp_extend_ep,
        at=(a.moe_tp_extend_ep, a.lora_target_modules),
        fixes=(drop(a.moe_tp_extend_ep),),
        message="LoRA does not work with --moe-tp-extend-ep",
        why="adapters are split like their layers, but the flag changes that split, so the run fails at launch",
    ),
    refuse(
        "lora-rank-not-positive",
        LORA & (a.lora_r <= 0),
        at=(a.lora_r,),
        message="--lora-r is {lora_r}; the rank of the adapters must be at least 1",
        why="every process fails when peft adds the adapters to the model",
        upstream="https://github.com/huggingface/peft/blob/v0.7.1/src/peft/tuners/lora/layer.py",
    ),
    refuse(
        "lora-scaled-by-zero",
        LORA & (a.lora_alpha == 0),
        at=(a.lora_alpha,),
        message="--lora-alpha 0 multiplies the output of the adapters by 0, so the model does not change",
        why="the run takes as long as any other, but the trained adapters have no effect",
        severity=Severity.WARNING,
        upstream="https://github.com/huggingface/peft/blob/v0.7.1/src/peft/tuners/lora/layer.py#scaling",
    ),
    refuse(
        "lora-scaled-too-much",
        LORA & (a.lora_r > 0) & (a.lora_alpha >= a.lora_r * 64),
        at=(a.lora_alpha, a.lora_r),
        message="--lora-alpha {lora_alpha} with --lora-r {lora_r} multiplies the output of the adapters by "
        "{scale}; 1 to 2 is usual",
        shows={"scale": a.lora_alpha // a.lora_r},
        why="the first updates of the adapters already change every layer by a multiple of its output",
        severity=Severity.WARNING,
        upstream="https://arxiv.org/abs/2106.09685#section-4.1",
    ),
    refuse(
        "lora-without-base",
        LORA & ~a.skip_train & a.load.is_none & a.lora_load.is_none,
        at=(a.lora_target_modules,),
        message="LoRA is used without --load, so the adapters are trained on random weights, which are frozen",
        why="only the adapters are trained, so the base model keeps its random initial weights",
        severity=Severity.WARNING,
        upstream="mindspeed_llm/features_manager/finetune/lora.py",
    ),
    refuse(
        "lora-fusion-gather",
        a.lora_fusion & a.overlap_param_gather,
        severity=Severity.WARNING,
        fixes=(drop(a.overlap_param_gather),),
        message="--lora-fusion does not work with --overlap-param-gather",
        why="the documentation excludes the combination, but no validator checks for it",
    ),
)
