"""Checks of high availability, elastic or disaggregated training, and asynchronous saving in MindSpeed-LLM."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

REPAIR = "states are repaired from replicas, but no replicas exist with this setting, so the run fails at launch"
MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why=REPAIR)
ON, ELASTIC, SPLIT = a.enable_high_availability, a.enable_elastic_training, a.layerwise_disaggregated_training
REGROUP = "ranks that leave can only be replaced by data-parallel ranks, so the run fails at launch"
LORA = a.lora_target_modules.length > 0

MINDSPEED_LLM.add(
    needs(
        "hbm-repair-availability",
        a.enable_hbmfault_repair,
        ON,
        at=(a.enable_hbmfault_repair,),
        why="the option is part of high availability and cannot work without it, so the run fails at launch",
    ),
    refuse(
        "availability-checkpoint-format",
        ON & (a.ckpt_format != "torch"),
        fixes=(put(a.ckpt_format, "torch"), drop(ON)),
        message="--enable-high-availability needs --ckpt-format torch, not {ckpt_format}; torch_dist is the default",
    ),
    clash("availability-swap-attention", ON, a.swap_attention, why=REPAIR),
    clash(
        "availability-gloo",
        ON,
        a.disable_gloo_group,
        why="ranks must agree on repairs over gloo, so the run fails at launch",
    ),
    clash("availability-swap-optimizer", ON, a.swap_optimizer, why=REPAIR),
    needs(
        "elastic-availability",
        ELASTIC,
        ON,
        at=(ELASTIC,),
        why="the option is part of high availability and cannot work without it, so the run fails at launch",
    ),
    needs("elastic-distributed-optimizer", ELASTIC, a.use_distributed_optimizer, at=(ELASTIC,), why=REGROUP),
    clash("elastic-custom-fsdp", ELASTIC, a.use_custom_fsdp, why=REGROUP),
    clash("elastic-reuse-fp32", ELASTIC, a.reuse_fp32_param, why=REGROUP),
    refuse(
        "elastic-layout",
        ELASTIC & ((a.expert_model_parallel_size > 1) | (a.context_parallel_size > 1)),
        at=(ELASTIC,),
        why=REGROUP,
        fixes=(drop(ELASTIC),),
        layout=True,
        message=(
            "--enable-elastic-training needs expert- and context-parallel sizes of 1, not "
            "{expert_model_parallel_size} and {context_parallel_size}"
        ),
    ),
    refuse(
        "availability-lora",
        ON & LORA,
        fixes=(drop(ON),),
        message="--enable-high-availability does not work with LoRA (--lora-target-modules)",
    ),
    refuse(
        "disaggregated-virtual-stages",
        SPLIT & (a.num_virtual_stages_per_pipeline_rank != 2),
        severity=Severity.WARNING,
        at=(a.num_virtual_stages_per_pipeline_rank, SPLIT),
        message="--layerwise-disaggregated-training needs --num-virtual-stages-per-pipeline-rank 2",
        why="the documentation requires this setting, but no validator checks it",
        fixes=(put(a.num_virtual_stages_per_pipeline_rank, 2),),
        versions=">=26",
    ),
    refuse(
        "disaggregated-experts",
        SPLIT & a.num_experts.is_set,
        severity=Severity.WARNING,
        fixes=(drop(SPLIT),),
        message="--layerwise-disaggregated-training does not support mixture-of-experts models",
        why="the documentation excludes these models, but no validator checks this",
        versions=">=26",
    ),
    refuse(
        "disaggregated-lora",
        SPLIT & LORA,
        severity=Severity.WARNING,
        fixes=(drop(SPLIT),),
        message="--layerwise-disaggregated-training does not support LoRA",
        why="the documentation excludes LoRA, but no validator checks this",
        versions=">=26",
    ),
    refuse(
        "async-save-lora",
        a.async_save & (LORA | a.stage.is_in("sft", "dpo")),
        severity=Severity.WARNING,
        at=(a.async_save,),
        fixes=(drop(a.async_save),),
        message="--async-save is documented only for pre-training, not for LoRA, SFT or DPO",
        why="no validator checks this",
        versions=">=26.1",
    ),
)
