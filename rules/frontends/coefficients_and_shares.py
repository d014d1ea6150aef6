"""Coefficients, rates and shares that front ends accept, but with which the policy learns something else."""

from collections.abc import Mapping

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import Constraint, ConstraintSet, refuse
from preflight.lint.expressions import Expression, Handles, all_of, any_of
from preflight.source.finding import Severity

UNCHECKED = "no check rejects this value, but the run is not the one that was intended"
VERL, NEMO_RL = ConstraintSet("verl", why=UNCHECKED), ConstraintSet("nemo-rl", why=UNCHECKED)
SLIME, MS_SWIFT = ConstraintSet("slime", why=UNCHECKED), ConstraintSet("ms-swift", why=UNCHECKED)
a = Handles(megatron_names() | names("verl") | names("nemo-rl") | names("slime") | names("ms-swift"))

ENTROPY = 0.1
"""Ten times the largest entropy coefficient of a published run, 0.01."""
KL = 1
"""Twice the largest KL coefficient of a published run, 0.5."""
RATE = 1e-4
"""Ten times the highest learning rate of a published run that trains all weights with reinforcement learning, 1e-5."""
SCALE = 64
"""32 times the usual ratio of alpha to the rank of adapters, 1 to 2."""
STRENGTH = 5
"""Five times the largest beta of a published run that learns from preferences, 1."""
TUNING = 5e-4
"""50 times the usual learning rate of a run that fine-tunes all weights, 1e-5."""
ENGINE = 0.1
"""The smallest share that a published run gives to its engine."""
HOT = 3
"""Twice the highest temperature of a published run, 1.6."""
COLD = 0.3
"""Half the lowest temperature of a published run, 0.6."""
NARROW = 0.5
"""Far below the smallest top-p with which a published run samples what it trains on, 0.9."""
CRITIC = 1e-3
"""50 times the highest learning rate of a published critic, 2e-5."""
ALONE = 200
"""Ten times the longest time for which a published run trains the critic alone, 20 steps."""
MOST = 0.5
"""Published runs warm up for at most 0.3 of the run and hold out at most 0.02 of the data."""
OWN_REWARD = all_of(
    a.rollout_batch_size.is_set,
    a.custom_rm_path.is_none,
    a.custom_generate_function_path.is_none,
    ~a.rollout_function_path.given,
    ~a.debug_rollout_only,
)
TRAINER = a.entry == "verl.trainer.main_ppo"
REWARDED = a.rlhf_type == "grpo"
LOSS = a.checkpoint_metric.has("loss")
GAIN = any_of(a.checkpoint_metric.has("accuracy"), a.checkpoint_metric.has("reward"))


def entropy(trains: Expression, coefficient: Expression, upstream: str) -> Constraint:
    """An entropy bonus that outweighs the reward."""
    return refuse(
        "entropy-outweighs-reward",
        all_of(trains, coefficient >= ENTROPY),
        message="the entropy coefficient is {coefficient}, but published runs use 0 to 0.01",
        why=(
            "advantages are about 1 and the entropy is subtracted from the loss, so the policy gains more from random "
            "tokens than from rewards"
        ),
        shows={"coefficient": coefficient},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(coefficient,),
    )


def distance(trains: Expression, coefficient: Expression, upstream: str) -> Constraint:
    """A KL coefficient that holds the policy where it is."""
    return refuse(
        "reference-outweighs-reward",
        all_of(trains, coefficient >= KL),
        message="the KL coefficient is {coefficient}, but published runs use 0 to 0.5; a digit may be missing",
        why="the distance to the reference model outweighs the rewards, so the policy hardly changes",
        shows={"coefficient": coefficient},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(coefficient,),
    )


def rate(trains: Expression, upstream: str) -> Constraint:
    """A learning rate of pre-training or of adapters."""
    return refuse(
        "rate-of-pretraining",
        all_of(trains, a.lr >= RATE),
        message="the learning rate {lr} is typical of pre-training, but published reinforcement-learning runs that "
        "train all weights use about 1e-6",
        why="the policy moves away from its initial model within a few steps. The exponent may be wrong",
        upstream=upstream,
        severity=Severity.WARNING,
        at=(a.lr,),
    )


def scale(adapts: Expression, upstream: str) -> Constraint:
    """Adapters whose output is multiplied by far more than is usual."""
    return refuse(
        "adapters-scaled-too-much",
        all_of(adapts, a.lora_rank > 0, a.lora_alpha >= a.lora_rank * SCALE),
        message="alpha {lora_alpha} with rank {lora_rank} multiplies the output of the adapters by {scale}; 1 to 4 is usual",
        why="the first updates of the adapters already change every layer by a multiple of its output",
        shows={"scale": a.lora_alpha // a.lora_rank},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(a.lora_alpha, a.lora_rank),
    )


def clipping(trains: Expression, low: Expression, high: Expression, upstream: str) -> Constraint:
    """A clipping range whose ends are swapped, or one of which has lost a digit."""
    return refuse(
        "clip-range-reversed",
        all_of(trains, low.is_set, high.is_set, high < low),
        message="the upper end of the clipping range, {high}, is below the lower end, {low}",
        why=(
            "methods with two limits use a higher upper limit, so that unlikely tokens can gain probability. A digit "
            "may be wrong"
        ),
        shows={"high": high, "low": low},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(high, low),
    )


def warm_up(trains: Expression, share: Expression, upstream: str, after: str) -> Constraint:
    """A warm-up that takes most of the run."""
    return refuse(
        "warm-up-most-of-run",
        all_of(trains, share.is_set, share >= MOST, share <= 1),
        message="the warm-up takes a fraction of {share} of the run, but 0 to 0.1 is usual",
        why="most steps use a learning rate below the intended one. A zero after the decimal point may be missing",
        shows={"share": share},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(share,),
        after=(after,),
    )


def heat(trains: Expression, temperature: Expression, upstream: str) -> Constraint:
    """A temperature at which almost every token is as likely as any other."""
    return refuse(
        "rollouts-of-random-tokens",
        all_of(trains, temperature >= HOT),
        message=(
            "the rollouts sample at temperature {temperature}, but published runs use 0.6 to 1.6; the decimal point "
            "may be missing"
        ),
        why="logits are divided by the temperature, so the model writes random tokens and gets no rewards to learn from",
        shows={"temperature": temperature},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(temperature,),
    )


def cold(trains: Expression, temperature: Expression, upstream: str) -> Constraint:
    """A temperature at which the samples of a prompt hardly differ."""
    return refuse(
        "rollouts-nearly-greedy",
        all_of(trains, temperature > 0, temperature < COLD),
        message="the rollouts sample at temperature {temperature}, but published runs use 0.6 to 1.6; a digit may be wrong",
        why="the samples of a prompt hardly differ, so few have an advantage",
        shows={"temperature": temperature},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(temperature,),
    )


def share_of_engine(generates: Expression, share: Expression, upstream: str) -> Constraint:
    """A share of the device memory in which hardly any model fits."""
    return refuse(
        "engine-without-memory",
        all_of(generates, share.is_set, share > 0, share < ENGINE),
        message="the inference engine may use {share} of the device memory, but published runs allow 0.1 to 0.95; a "
        "digit may be wrong",
        why="the engine stops if no room is left for its cache next to the weights",
        shows={"share": share},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(share,),
    )


def nucleus(trains: Expression, share: Expression, upstream: str) -> Constraint:
    """A top-p with which the samples of a prompt hardly differ."""
    return refuse(
        "rollouts-of-few-tokens",
        all_of(trains, share.is_set, share > 0, share < NARROW),
        message="the rollouts sample with top-p {share}, but published runs use 0.9 to 1; a digit may be wrong",
        why="the samples of a prompt hardly differ, so few have an advantage, and the loss uses the probabilities of all tokens",
        shows={"share": share},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(share,),
    )


LOSSES: Mapping[str, str] = {"verl": "verl/workers/utils/losses.py", "slime": "slime/backends/megatron_utils/loss.py"}
NEMO_LOSS = "nemo_rl/algorithms/loss/loss_functions.py"
SWIFT_GRPO = "swift/megatron/trainers/grpo_trainer.py"

VERL.add(
    entropy(TRAINER, a.entropy_coeff, f"{LOSSES['verl']}:128"),
    distance(all_of(TRAINER, a.use_kl_loss), a.actor_kl_coef, f"{LOSSES['verl']}:140"),
    refuse(
        "penalty-outweighs-reward",
        all_of(TRAINER, a.use_kl_in_reward, a.reward_kl_coef >= KL),
        message="algorithm.kl_ctrl.kl_coef is {reward_kl_coef}, but published runs use 0 to 0.01; a digit may be missing",
        why="the distance to the reference model outweighs the rewards, so the policy hardly changes",
        upstream="verl/trainer/ppo/core_algos.py:181",
        severity=Severity.WARNING,
        at=(a.reward_kl_coef,),
    ),
    rate(all_of(TRAINER, a.lora_rank == 0, a.optimizer == "adam"), "verl/workers/config/optimizer.py:47"),
    scale(any_of(TRAINER, a.entry == "verl.trainer.sft_trainer"), "verl/workers/config/megatron_peft.py"),
    refuse(
        "critic-rate-too-high",
        all_of(TRAINER, a.adv_estimator == "gae", a.critic_lr >= CRITIC),
        message="critic.optim.lr is {critic_lr}, but published runs use about 1e-5; the exponent may be wrong",
        why="the critic loses what its model knows, so the advantages that the actor learns from are noise",
        upstream="verl/workers/config/critic.py",
        severity=Severity.WARNING,
        at=(a.critic_lr,),
    ),
    refuse(
        "actor-waits-for-critic",
        all_of(
            TRAINER,
            ~a.distillation_enabled,
            any_of(
                a.critic_warmup >= ALONE,
                all_of(a.total_training_steps > 0, a.critic_warmup > a.total_training_steps),
            ),
        ),
        message=(
            "trainer.critic_warmup is {critic_warmup}, so the actor does not change for that many steps; published "
            "runs use 0 to 20"
        ),
        why="until then, rollouts only train the critic, and a run without a critic trains nothing",
        upstream="verl/trainer/ppo/ray_trainer.py",
        severity=Severity.WARNING,
        at=(a.critic_warmup,),
    ),
    heat(TRAINER, a.rollout_temperature, "verl/experimental/agent_loop/agent_loop.py:605"),
    share_of_engine(
        TRAINER, a.rollout_gpu_memory_utilization, "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
    ),
    cold(
        all_of(TRAINER, ~a.distillation_enabled),
        a.rollout_temperature,
        "verl/experimental/agent_loop/agent_loop.py",
    ),
    nucleus(TRAINER, a.rollout_top_p, "verl/experimental/agent_loop/agent_loop.py:606"),
    clipping(TRAINER, a.clip_ratio_low, a.clip_ratio_high, "verl/trainer/ppo/core_algos.py:1322"),
    warm_up(
        all_of(any_of(TRAINER, a.entry == "verl.trainer.sft_trainer"), a.optim_warmup_steps <= 0),
        a.optim_warmup_ratio,
        "verl/utils/megatron/optimizer.py:249",
        "verl/warm-up-over-decay",
    ),
    refuse(
        "greedy-rollouts",
        all_of(TRAINER, ~a.rollout_val_do_sample, ~a.distillation_enabled, a.rollout_temperature <= 0),
        message="at rollout.temperature {rollout_temperature}, all samples of a prompt are identical",
        why="groups of identical samples have no advantage, and the actor divides its logits by the temperature",
        upstream="verl/workers/engine/megatron/transformer_impl.py:1191",
        severity=Severity.WARNING,
        at=(a.rollout_temperature,),
    ),
)
NEMO_RL.add(
    distance(a.num_generations_per_prompt.is_set, a.reference_policy_kl_penalty, f"{NEMO_LOSS}:432"),
    rate(
        all_of(a.megatron_enabled, a.num_generations_per_prompt.is_set, a.optimizer == "adam", ~a.peft_enabled),
        NEMO_LOSS,
    ),
    heat(
        a.num_generations_per_prompt.is_set,
        a.generation_temperature,
        "nemo_rl/models/generation/vllm/vllm_worker.py:508",
    ),
    share_of_engine(
        all_of(a.num_generations_per_prompt.is_set, a.generation_backend == "vllm"),
        a.generation_gpu_memory_utilization,
        "nemo_rl/models/generation/vllm/vllm_worker.py",
    ),
    cold(
        a.num_generations_per_prompt > 1,
        a.generation_temperature,
        "nemo_rl/models/generation/vllm/vllm_worker.py",
    ),
    nucleus(
        a.num_generations_per_prompt.is_set,
        a.generation_top_p,
        "nemo_rl/models/generation/vllm/vllm_worker.py:509",
    ),
    clipping(a.num_generations_per_prompt.is_set, a.ratio_clip_min, a.ratio_clip_max, f"{NEMO_LOSS}:475"),
    refuse(
        "greedy-rollouts",
        all_of(a.num_generations_per_prompt > 1, a.generation_temperature == 0),
        message="at policy.generation.temperature 0, all generations of a prompt are identical",
        why="groups of identical generations have no advantage, so the model learns nothing",
        upstream="nemo_rl/algorithms/advantage_estimator.py:72",
        severity=Severity.WARNING,
        at=(a.generation_temperature,),
    ),
    refuse(
        "worst-checkpoints-kept",
        all_of(
            a.checkpointing_enabled,
            any_of(
                all_of(a.checkpoint_higher_is_better.is_in(True), LOSS, ~GAIN),
                all_of(a.checkpoint_higher_is_better.is_in(False), GAIN, ~LOSS),
            ),
        ),
        message="checkpoints are ranked by {checkpoint_metric} with higher_is_better {checkpoint_higher_is_better}, so the "
        "worst checkpoints are kept",
        why="the best checkpoints are deleted (keep_top_k), and the last evaluation uses the worst one",
        upstream="nemo_rl/utils/checkpoint.py:350",
        severity=Severity.WARNING,
        at=(a.checkpoint_higher_is_better, a.checkpoint_metric),
    ),
)
LABELLED = ("deepscaler", "dapo", "math", "f1")
"""Rewards of slime that compare the response with a label."""
SLIME.add(
    refuse(
        "random-reward",
        all_of(OWN_REWARD, a.rm_type == "random"),
        message="--rm-type random draws each reward, 0 or 1, at random",
        why="the option is meant for testing the data flow, so the policy learns noise",
        upstream="slime/rollout/rm_hub/__init__.py:91",
        severity=Severity.WARNING,
        at=(a.rm_type,),
    ),
    refuse(
        "reward-without-labels",
        all_of(OWN_REWARD, a.rm_type.is_in(*LABELLED), a.label_key.is_none, a.prompt_data.is_set),
        message="--rm-type {rm_type} compares responses with labels, but --label-key is not given, so no sample has one",
        why="the first rollout fails, or all its rewards are 0",
        upstream="slime/utils/data.py:260",
        severity=Severity.WARNING,
        at=(a.rm_type,),
    ),
    nucleus(a.rollout_batch_size.is_set, a.rollout_top_p, "slime/rollout/sglang_rollout.py:97"),
    heat(a.rollout_batch_size.is_set, a.rollout_temperature, "slime/backends/megatron_utils/loss.py:500"),
    share_of_engine(
        all_of(a.rollout_batch_size.is_set, ~a.debug_train_only),
        a.sglang_mem_fraction_static,
        "slime/backends/sglang_utils/sglang_engine.py",
    ),
    cold(
        all_of(OWN_REWARD, a.n_samples_per_prompt > 1),
        a.rollout_temperature,
        "slime/backends/megatron_utils/loss.py",
    ),
    entropy(a.rollout_batch_size.is_set, a.entropy_coef, f"{LOSSES['slime']}:1114"),
    distance(all_of(a.rollout_batch_size.is_set, a.use_kl_loss), a.kl_loss_coef, f"{LOSSES['slime']}:1130"),
)
MS_SWIFT.add(
    scale(a.tuner_type != "full", "swift/megatron/utils/utils.py"),
    heat(REWARDED, a.temperature, "swift/megatron/trainers/rollout_mixin.py:142"),
    share_of_engine(
        all_of(REWARDED, a.use_vllm), a.vllm_gpu_memory_utilization, "swift/megatron/trainers/rollout_mixin.py"
    ),
    cold(REWARDED, a.temperature, "swift/megatron/trainers/rollout_mixin.py"),
    nucleus(REWARDED, a.top_p, "swift/megatron/trainers/rollout_mixin.py:143"),
    refuse(
        "balance-loss-outweighs",
        a.moe_aux_loss_coeff >= 1,
        message=(
            "--moe_aux_loss_coeff {moe_aux_loss_coeff} makes the router's loss outweigh the loss of the language model"
        ),
        why="published runs use 1e-6 to 0.02. With this value, the run balances the experts but learns nothing else",
        upstream="megatron/core/transformer/moe/router.py:259",
        severity=Severity.WARNING,
        at=(a.moe_aux_loss_coeff,),
        after=("megatron/balance-loss-outweighs",),
    ),
    distance(REWARDED, a.beta, f"{SWIFT_GRPO}:1104"),
    rate(
        all_of(a.rlhf_type.is_in("grpo", "dpo", "kto"), a.tuner_type == "full", a.optimizer == "adam"),
        "swift/megatron/utils/megatron_lm_utils.py:596",
    ),
    refuse(
        "beta-far-too-high",
        all_of(
            a.rlhf_type.is_in("dpo", "kto"),
            any_of(a.loss_type.is_none, a.loss_type.is_in("sigmoid", "kto")),
            a.beta >= STRENGTH,
        ),
        message=(
            "--beta is {beta}, but published runs with {rlhf_type} use 0.1 to 0.5; the decimal point may be missing"
        ),
        why="the model is held so close to the reference model that it hardly learns the preferences",
        upstream="swift/megatron/trainers/dpo_trainer.py:25",
        severity=Severity.WARNING,
        at=(a.beta,),
    ),
    refuse(
        "feedback-without-weight",
        all_of(a.rlhf_type == "kto", any_of(a.desirable_weight == 0, a.undesirable_weight == 0)),
        message=(
            "with --desirable_weight {desirable_weight} and --undesirable_weight {undesirable_weight}, kto does not "
            "learn from one of the two kinds of feedback"
        ),
        upstream="swift/megatron/trainers/kto_trainer.py:32",
        severity=Severity.WARNING,
        at=(a.desirable_weight, a.undesirable_weight),
    ),
    refuse(
        "fine-tuning-rate-too-high",
        all_of(a.entry == "sft", a.tuner_type == "full", a.optimizer == "adam", a.lr >= TUNING),
        message=(
            "--lr {lr} is unusually high for fine-tuning all weights, which usually takes about 1e-5; the exponent "
            "may be wrong"
        ),
        why="the model loses what it knows within a few steps",
        upstream="swift/megatron/arguments/megatron_args.py:529",
        severity=Severity.WARNING,
        at=(a.lr,),
        after=("megatron/fine-tuning-rate-too-high", "megatron/learning-rate-far-too-high"),
    ),
    warm_up(
        a.lr.is_set, a.lr_warmup_fraction, "swift/megatron/utils/megatron_lm_utils.py:589", "ms-swift/warm-up-whole-run"
    ),
    refuse(
        "most-data-held-out",
        all_of(a.split_dataset_ratio > MOST, a.split_dataset_ratio < 1),
        message="--split_dataset_ratio {split_dataset_ratio} is the share that is held out for validation, so only the "
        "rest is trained on",
        why="the run repeats a small part of the data and never trains on the rest",
        upstream="swift/dataset/dataset_meta.py:144",
        severity=Severity.WARNING,
        at=(a.split_dataset_ratio,),
    ),
)
