"""Checks made by verl: how prompts divide across training ranks, micro-batches, and rollout engines."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of, nearest_divisor, other_divisor, two_divisors
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, after Ray has allocated its devices"
VERL = ConstraintSet("verl", why=DIES)
a = Handles(megatron_names() | names("verl"))
TRAINER = a.entry == "verl.trainer.main_ppo"
STATIC = ~a.use_dynamic_bsz
ACTOR = "verl/workers/config/actor.py"
ROLLOUT = "verl/workers/config/rollout.py"
LATE = "the first update of the actor fails, after the first rollout has been generated"
SAMPLES = a.ppo_mini_batch_size * a.rollout_n
EACH = SAMPLES // a.data_parallel_size
REPLICA = a.rollout_tensor_model_parallel_size * a.rollout_data_parallel_size
MINI_BATCHES = (a.train_batch_size, a.ppo_mini_batch_size, a.data_parallel_size)

VERL.add(
    divides(
        "mini-batch-over-ranks",
        a.data_parallel_size,
        SAMPLES,
        message=(
            "a mini-batch of {ppo_mini_batch_size} prompts × {rollout_n} samples is not divisible by "
            "{data_parallel_size} data-parallel ranks"
        ),
        why=LATE,
        upstream="verl/workers/engine_workers.py:266",
        when=a.world_size.is_set,
        at=(a.ppo_mini_batch_size, a.rollout_n),
        after=("device-count", "batch-not-divisible"),
        fixes=(
            put(a.ppo_mini_batch_size, nearest_divisor(*MINI_BATCHES), offered=two_divisors(*MINI_BATCHES)),
            put(a.ppo_mini_batch_size, other_divisor(*MINI_BATCHES), offered=True),
        ),
    ),
    divides(
        "micro-batches-of-a-rank",
        a.micro_batch_size,
        EACH,
        message=(
            "{each} samples of a mini-batch on a rank ({ppo_mini_batch_size} prompts × {rollout_n} samples / "
            "{data_parallel_size} ranks) are not a multiple of the micro-batch {micro_batch_size}"
        ),
        why=LATE,
        upstream="verl/workers/engine/utils.py:125",
        when=all_of(STATIC, a.micro_batch_size.is_set, SAMPLES % a.data_parallel_size == 0),
        shows={"each": EACH},
        at=(a.micro_batch_size, a.ppo_mini_batch_size, a.rollout_n),
        after=("device-count", "batch-not-divisible"),
        fixes=(put(a.micro_batch_size, nearest_divisor(EACH, a.micro_batch_size), safety=Safety.SAFE),),
    ),
    divides(
        "train-batch-over-ranks",
        a.data_parallel_size * a.micro_batch_size,
        a.train_batch_size * a.rollout_n,
        message=(
            "a batch of {train_batch_size} prompts × {rollout_n} samples is not a multiple of {data_parallel_size} "
            "data-parallel ranks × micro-batch size {micro_batch_size}"
        ),
        upstream="verl/utils/config.py:110",
        when=all_of(TRAINER, STATIC, a.micro_batch_size.is_set),
        at=(a.train_batch_size, a.micro_batch_size, a.rollout_n),
        after=("device-count", "verl/mini-batch-over-ranks", "verl/micro-batches-of-a-rank"),
    ),
    refuse(
        "mini-batch-above-train-batch",
        all_of(TRAINER, STATIC, a.train_batch_size < a.ppo_mini_batch_size),
        message="the mini-batch of {ppo_mini_batch_size} prompts is larger than the batch of {train_batch_size}",
        upstream=f"{ACTOR}:229",
        at=(a.ppo_mini_batch_size, a.train_batch_size),
        fixes=(put(a.ppo_mini_batch_size, a.train_batch_size),),
    ),
    divides(
        "train-batch-in-mini-batches",
        a.ppo_mini_batch_size,
        a.train_batch_size,
        when=all_of(TRAINER, a.world_size.is_set, a.gen_batch_size.is_none),
        message="a batch of {train_batch_size} prompts is not a multiple of the mini-batch {ppo_mini_batch_size}",
        why=LATE,
        upstream="verl/utils/tensordict_utils.py:588",
        at=(a.ppo_mini_batch_size, a.train_batch_size),
        after=("verl/mini-batch-above-train-batch", "verl/mini-batch-over-ranks"),
        fixes=(
            put(a.ppo_mini_batch_size, nearest_divisor(*MINI_BATCHES), offered=two_divisors(*MINI_BATCHES)),
            put(a.ppo_mini_batch_size, other_divisor(*MINI_BATCHES), offered=True),
        ),
    ),
    refuse(
        "adapters-scaled-by-zero",
        all_of(a.lora_rank > 0, a.lora_alpha == 0),
        message="lora.alpha 0 multiplies the output of the adapters by 0, so the model does not change",
        why="every step costs compute, but the policy stays as it was loaded",
        upstream="verl/workers/config/megatron_peft.py",
        severity=Severity.WARNING,
        at=(a.lora_alpha,),
    ),
    refuse(
        "no-micro-batch",
        all_of(TRAINER, STATIC, a.micro_batch_size.is_none, a.ppo_micro_batch_size.is_none, a.nnodes.is_set),
        message="neither ppo_micro_batch_size_per_gpu nor use_dynamic_bsz is given",
        upstream=f"{ACTOR}:211",
        at=(a.ppo_mini_batch_size, a.tensor_model_parallel_size, a.n_gpus_per_node),
        fixes=(put(a.micro_batch_size, 1, safety=Safety.SAFE),),
    ),
    refuse(
        "two-micro-batches",
        all_of(TRAINER, STATIC, a.micro_batch_size.is_set, a.ppo_micro_batch_size.is_set),
        message="only one of ppo_micro_batch_size and ppo_micro_batch_size_per_gpu may be given, but both are",
        upstream=f"{ACTOR}:205",
        at=(a.ppo_micro_batch_size, a.micro_batch_size),
    ),
    refuse(
        "no-log-prob-micro-batch",
        all_of(
            TRAINER,
            STATIC,
            any_of(
                all_of(
                    a.rollout_log_prob_micro_batch_size.is_none, a.rollout_log_prob_micro_batch_size_per_gpu.is_none
                ),
                all_of(
                    any_of(a.use_kl_loss, a.use_kl_in_reward),
                    a.ref_log_prob_micro_batch_size.is_none,
                    a.ref_log_prob_micro_batch_size_per_gpu.is_none,
                ),
            ),
            a.nnodes.is_set,
        ),
        message=(
            "without use_dynamic_bsz, the rollout and any reference model need log_prob_micro_batch_size_per_gpu, but "
            "one of them does not set it"
        ),
        upstream="verl/utils/config.py:141",
        at=(a.use_dynamic_bsz, a.micro_batch_size, a.ppo_mini_batch_size, a.n_gpus_per_node),
        after=("verl/no-micro-batch",),
    ),
    divides(
        "micro-batches-of-virtual-stages",
        a.microbatch_group_size_per_vp_stage,
        EACH // a.micro_batch_size,
        message=(
            "the {count} micro-batches of a rank are not a multiple of {microbatch_group_size_per_vp_stage}, which "
            "virtual pipeline stages need"
        ),
        why=LATE,
        upstream="verl/workers/engine/megatron/transformer_impl.py:906",
        when=all_of(
            STATIC,
            a.virtual_pipeline_model_parallel_size > 1,
            EACH % a.micro_batch_size == 0,
            SAMPLES % a.data_parallel_size == 0,
        ),
        shows={"count": EACH // a.micro_batch_size},
        at=(a.micro_batch_size, a.ppo_mini_batch_size, a.virtual_pipeline_model_parallel_size),
        after=("device-count",),
    ),
    refuse(
        "rollout-over-nodes",
        all_of(TRAINER, a.n_gpus_per_node < REPLICA, REPLICA % a.n_gpus_per_node != 0),
        message=(
            "a rollout engine needs tensor {rollout_tensor_model_parallel_size} × data {rollout_data_parallel_size} "
            "devices, which is not a multiple of the {n_gpus_per_node} devices per node"
        ),
        why="the run waits for devices that no node has, or it fails",
        upstream="verl/workers/rollout/replica.py:114",
        at=(a.rollout_tensor_model_parallel_size, a.rollout_data_parallel_size, a.n_gpus_per_node),
    ),
    refuse(
        "rollout-experts",
        all_of(
            a.rollout_name != "trtllm", a.rollout_expert_parallel_size > 1, a.rollout_expert_parallel_size != REPLICA
        ),
        message=(
            "the rollout's expert-parallel size {rollout_expert_parallel_size} must equal tensor "
            "{rollout_tensor_model_parallel_size} × data {rollout_data_parallel_size}"
        ),
        upstream=f"{ROLLOUT}:293",
        at=(a.rollout_expert_parallel_size, a.rollout_tensor_model_parallel_size, a.rollout_data_parallel_size),
        fixes=(put(a.rollout_expert_parallel_size, REPLICA, safety=Safety.SAFE),),
    ),
    refuse(
        "rollout-mode",
        a.rollout_mode == "sync",
        message="the rollout mode sync was removed",
        upstream=f"{ROLLOUT}:280",
        fixes=(put(a.rollout_mode, "async", safety=Safety.SAFE),),
    ),
    refuse(
        "no-bridge",
        ~a.engine_use_mbridge,
        message="use_mbridge is False, but there is no other way to convert weights",
        upstream="verl/workers/engine/megatron/transformer_impl.py:191",
        fixes=(put(a.engine_use_mbridge, True, offered=True),),  # before 0.8.0, False selects a different converter
    ),
    refuse(
        "tuning-batch-below-ranks",
        all_of(a.entry == "verl.trainer.sft_trainer", a.train_batch_size < a.data_parallel_size),
        message=(
            "a batch of {train_batch_size} samples leaves some of the {data_parallel_size} data-parallel ranks without a sample"
        ),
        why="the data loader rejects empty batches",
        upstream="verl/trainer/sft_trainer.py:241",
        at=(a.train_batch_size,),
        fixes=(put(a.train_batch_size, a.data_parallel_size),),
    ),
)
