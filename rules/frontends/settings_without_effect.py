"""Settings of front ends that no code reads in this combination, or with which the run trains nothing."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import Constraint, ConstraintSet, refuse
from preflight.lint.expressions import Expression, Handles, all_of, any_of
from preflight.source.finding import Severity

UNCHECKED = "no check rejects this value, but the run is not the one that was intended"
LATE = "the inference engine rejects the first request"
VERL, NEMO_RL = ConstraintSet("verl", why=UNCHECKED), ConstraintSet("nemo-rl", why=UNCHECKED)
SLIME, MS_SWIFT = ConstraintSet("slime", why=UNCHECKED), ConstraintSet("ms-swift", why=UNCHECKED)
a = Handles(megatron_names() | names("verl") | names("nemo-rl") | names("slime") | names("ms-swift"))

WIDE, NONE = 1, 10
"""More than twice the widest range in which a published run clips the ratios of tokens, 0.4, and the narrowest with
which one switches clipping off."""
TUNING = 5e-4
"""Five times the highest learning rate of a published run that fine-tunes all weights, 1e-4."""
UNVALIDATED = all_of(a.val_at_start.is_set, ~a.val_at_start)
"""A run of NeMo RL that does not only validate."""
PPO, SFT = a.entry == "verl.trainer.main_ppo", a.entry == "verl.trainer.sft_trainer"


def nothing(
    ends: Expression, message: str, at: tuple[Expression, ...], upstream: str, name: str = "trains-nothing"
) -> Constraint:
    """A run of no steps."""
    return refuse(
        name,
        ends,
        message=message,
        why="the loop over the data ends before its first step, and the run ends without an error",
        upstream=upstream,
        severity=Severity.WARNING,
        at=at,
    )


def no_share(generates: Expression, share: Expression, upstream: str) -> Constraint:
    """A top-p that engines reject."""
    return refuse(
        "top-p-out-of-range",
        all_of(generates, share.is_set, any_of(share > 1, share <= 0)),
        message="top-p is {share}, but it must be above 0 and at most 1; it may be meant in percent",
        why=LATE,
        shows={"share": share},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(share,),
    )


def repelled(trains: Expression, coefficient: Expression, upstream: str) -> Constraint:
    """A KL coefficient that rewards distance."""
    return refuse(
        "reference-repels",
        all_of(trains, coefficient.is_set, coefficient < 0),
        message="the KL coefficient is {coefficient}; below 0, it rewards every distance from the reference model",
        why="the loss falls without limit as the policy moves away from the reference model",
        shows={"coefficient": coefficient},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(coefficient,),
    )


def unclipped(trains: Expression, low: Expression, high: Expression, upstream: str) -> Constraint:
    """A range of token ratios that is hardly ever left, though its low end clips."""
    return refuse(
        "token-ratio-never-clipped",
        all_of(trains, low.is_set, low < WIDE, high.is_set, high > WIDE, high < NONE),
        message="the upper end of the clipping range is {high}, but published runs use 0.2 to 0.4; a digit may be wrong",
        why="the ratios of tokens hardly ever leave such a range, so nothing limits the step",
        shows={"high": high},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(high,),
    )


VERL.add(
    refuse(
        "moments-not-passed-on",
        all_of(
            any_of(PPO, SFT),
            a.optimizer == "adam",
            a.optim_betas.given,
            a.optim_betas != [0.9, 0.999],
            ~any_of(a.adam_beta1.given, a.adam_beta2.given),
        ),
        message="optim.betas {optim_betas} has no effect: verl does not pass it on to Megatron, which uses 0.9 and 0.999",
        why="the moving averages of Adam have other lengths than intended; override_optimizer_config.adam_beta2 sets them",
        upstream="verl/utils/megatron/optimizer.py:125",
        severity=Severity.WARNING,
        at=(a.optim_betas,),
    ),
    refuse(
        "clip-ratio-not-read",
        all_of(
            PPO,
            a.clip_ratio.given,
            a.policy_loss_mode.is_in("vanilla", "gspo"),
            a.clip_ratio_low.is_set,
            a.clip_ratio_high.is_set,
            ~any_of(a.clip_ratio_low.given, a.clip_ratio_high.given),
            a.clip_ratio != a.clip_ratio_low,
            a.clip_ratio != a.clip_ratio_high,
        ),
        message=(
            "clip_ratio {clip_ratio} has no effect: clip_ratio_low {clip_ratio_low} and clip_ratio_high {clip_ratio_high} "
            "take precedence"
        ),
        why="both limits are 0.2 by default, and clip_ratio only counts if one of them is null",
        upstream="verl/trainer/ppo/core_algos.py:1321",
        severity=Severity.WARNING,
        at=(a.clip_ratio,),
    ),
    unclipped(
        all_of(PPO, a.policy_loss_mode.is_in("vanilla", "gspo")),
        a.clip_ratio_low,
        a.clip_ratio_high,
        "verl/trainer/ppo/core_algos.py:1350",
    ),
    refuse(
        "identical-validation-samples",
        all_of(
            PPO,
            ~a.val_only,
            any_of(a.val_before_train, a.test_freq > 0),
            ~a.multi_turn_enable,
            a.val_n > 1,
            a.val_temperature == 0,
        ),
        message="validation generates {val_n} samples of each prompt at temperature 0, which are identical",
        why=(
            "the averages and the best of these samples equal the first one, and validation takes several times as long; "
            "val_kwargs.temperature is 0 unless it is set"
        ),
        upstream="verl/experimental/agent_loop/agent_loop.py:619",
        severity=Severity.WARNING,
        at=(a.val_n, a.val_temperature),
    ),
    refuse(
        "discount-above-one",
        all_of(PPO, a.adv_estimator == "gae", any_of(a.gamma > 1, a.gae_lambda > 1)),
        message="gamma {gamma} and lam {gae_lambda} of the advantages must not be above 1; they may be meant in percent",
        why="later rewards count more than earlier ones by a factor that grows with the length, so advantages overflow",
        upstream="verl/trainer/ppo/core_algos.py:255",
        severity=Severity.WARNING,
        at=(a.gamma, a.gae_lambda),
    ),
    refuse(
        "reward-function-without-file",
        all_of(
            PPO,
            a.reward_function_name.given,
            a.reward_function_name.is_set,
            a.reward_function_name != "compute_score",
            a.reward_function_path.is_none,
        ),
        message="custom_reward_function.name {reward_function_name} has no effect without custom_reward_function.path",
        why="the reward is that of the data source, and a data source without one stops the run",
        upstream="verl/trainer/ppo/reward.py:71",
        severity=Severity.WARNING,
        at=(a.reward_function_name,),
    ),
    nothing(
        all_of(any_of(all_of(PPO, ~a.val_only, ~a.val_before_train), SFT), a.total_epochs <= 0),
        "with trainer.total_epochs {total_epochs}, the run trains nothing",
        (a.total_epochs,),
        "verl/trainer/ppo/ray_trainer.py:1440",
    ),
    no_share(all_of(PPO, ~a.val_only), a.rollout_top_p, "verl/experimental/agent_loop/agent_loop.py"),
    refuse(
        "validation-top-p-out-of-range",
        all_of(
            PPO,
            any_of(a.val_before_train, a.test_freq > 0),
            any_of(a.rollout_val_do_sample, a.rollout_mode == "async"),
            any_of(a.val_top_p > 1, a.val_top_p <= 0),
            a.val_top_p.is_set,
        ),
        message="val_kwargs.top_p is {val_top_p}, but it must be above 0 and at most 1; it may be meant in percent",
        why=LATE,
        upstream="verl/experimental/agent_loop/agent_loop.py:620",
        severity=Severity.WARNING,
        at=(a.val_top_p,),
    ),
    repelled(all_of(PPO, a.use_kl_loss), a.actor_kl_coef, "verl/workers/utils/losses.py"),
    refuse(
        "fine-tuning-rate-too-high",
        all_of(SFT, a.lora_rank == 0, a.optimizer == "adam", a.lr.given, a.lr >= TUNING),
        message=(
            "optim.lr {lr} is unusually high for fine-tuning all weights, which usually takes about 1e-5; the exponent "
            "may be wrong"
        ),
        why="the model loses what it knows within a few steps",
        upstream="verl/workers/config/optimizer.py",
        severity=Severity.WARNING,
        at=(a.lr,),
    ),
)
NEMO_RL.add(
    nothing(
        all_of(a.megatron_enabled, UNVALIDATED, a.max_num_steps <= 0),
        "with max_num_steps {max_num_steps}, the run trains nothing",
        (a.max_num_steps,),
        "nemo_rl/algorithms/grpo.py",
    ),
    nothing(
        all_of(a.megatron_enabled, UNVALIDATED, a.max_num_epochs <= 0),
        "with max_num_epochs {max_num_epochs}, the run trains nothing",
        (a.max_num_epochs,),
        "nemo_rl/algorithms/grpo.py",
        "no-epochs",
    ),
    repelled(
        a.num_generations_per_prompt.is_set,
        a.reference_policy_kl_penalty,
        "nemo_rl/algorithms/loss/loss_functions.py",
    ),
    unclipped(
        all_of(a.num_generations_per_prompt.is_set, ~a.use_cispo, ~a.disable_ppo_ratio, ~a.force_on_policy_ratio),
        a.ratio_clip_min,
        a.ratio_clip_max,
        "nemo_rl/algorithms/loss/loss_functions.py",
    ),
)
SLIME.add(
    refuse(
        "memory-share-of-engine",
        all_of(
            a.rollout_batch_size.is_set,
            ~a.debug_train_only,
            ~a.rollout_external_engine_addrs.given,
            a.sglang_mem_fraction_static.is_set,
            any_of(a.sglang_mem_fraction_static >= 1, a.sglang_mem_fraction_static <= 0),
        ),
        message=(
            "--sglang-mem-fraction-static is {sglang_mem_fraction_static}, but it must be between 0 and 1; it may be meant "
            "in percent"
        ),
        why="SGLang finds no memory for its cache and stops at startup",
        upstream="slime/backends/sglang_utils/sglang_engine.py",
        at=(a.sglang_mem_fraction_static,),
        after=("slime/engine-without-memory",),
    ),
    no_share(
        all_of(a.rollout_batch_size.is_set, ~a.debug_train_only, ~a.rollout_function_path.given),
        a.rollout_top_p,
        "slime/rollout/sglang_rollout.py",
    ),
    refuse(
        "evaluation-top-p-out-of-range",
        all_of(
            a.rollout_batch_size.is_set,
            ~a.debug_train_only,
            ~any_of(a.rollout_function_path.given, a.eval_function_path.given),
            a.eval_config.is_none,
            a.eval_interval.is_set,
            a.eval_top_p.is_set,
            any_of(a.eval_top_p > 1, a.eval_top_p <= 0),
        ),
        message="--eval-top-p is {eval_top_p}, but it must be above 0 and at most 1; it may be meant in percent",
        why=LATE,
        upstream="slime/rollout/sglang_rollout.py",
        severity=Severity.WARNING,
        at=(a.eval_top_p,),
    ),
    unclipped(
        all_of(a.rollout_batch_size.is_set, a.advantage_estimator.is_in("grpo", "ppo", "reinforce_plus_plus")),
        a.eps_clip,
        a.eps_clip_high,
        "slime/backends/megatron_utils/loss.py:981",
    ),
    nothing(
        all_of(a.rollout_batch_size.is_set, a.num_rollout.is_set, a.num_rollout < 0),
        "with --num-rollout {num_rollout}, the run trains nothing",
        (a.num_rollout,),
        "train.py:49",
    ),
    repelled(
        all_of(a.rollout_batch_size.is_set, a.use_kl_loss), a.kl_loss_coef, "slime/backends/megatron_utils/loss.py"
    ),
)
MS_SWIFT.add(
    refuse(
        "divergence-out-of-range",
        all_of(a.rlhf_type == "gkd", a.beta.is_set, any_of(a.beta > 1, a.beta < 0)),
        message="--beta {beta} weighs the two directions of the divergence, so it must be from 0 to 1",
        why="the loss contains the logarithms of beta and of 1 - beta, so it is NaN from the first step on",
        upstream="swift/rlhf_trainers/gkd_loss.py:129",
        severity=Severity.WARNING,
        at=(a.beta,),
    ),
    no_share(
        any_of(a.rlhf_type == "grpo", all_of(a.rlhf_type == "gkd", a.lmbda > 0)),
        a.top_p,
        "swift/megatron/trainers/rollout_mixin.py",
    ),
    repelled(a.rlhf_type == "grpo", a.beta, "swift/megatron/trainers/grpo_trainer.py"),
    unclipped(
        all_of(
            a.rlhf_type == "grpo", any_of(a.loss_type.is_none, a.loss_type.is_in("grpo", "dapo", "bnpo", "dr_grpo"))
        ),
        a.epsilon,
        a.epsilon_high,
        "swift/megatron/trainers/grpo_trainer.py",
    ),
    nothing(
        all_of(a.micro_batch_size.is_set, a.train_iters.is_none, a.num_train_epochs.is_set, a.num_train_epochs <= 0),
        "with --num_train_epochs {num_train_epochs}, the run trains nothing",
        (a.num_train_epochs,),
        "swift/megatron/trainers/base.py",
    ),
)
