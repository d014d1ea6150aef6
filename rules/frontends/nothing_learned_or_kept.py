"""Settings of front ends with which a run learns nothing, evaluates nothing, or overwrites what it starts from."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import Constraint, ConstraintSet, refuse
from preflight.lint.expressions import Expression, Handles, all_of, any_of
from preflight.source.finding import Severity

UNCHECKED = "no check rejects this value, but the run is not the one that was intended"
VERL, NEMO_RL = ConstraintSet("verl", why=UNCHECKED), ConstraintSet("nemo-rl", why=UNCHECKED)
SLIME, MS_SWIFT = ConstraintSet("slime", why=UNCHECKED), ConstraintSet("ms-swift", why=UNCHECKED)
PRIMUS = ConstraintSet("primus", why=UNCHECKED)
a = Handles(megatron_names() | names("verl") | names("nemo-rl") | names("slime") | names("ms-swift"))

WIDE = 0.1
"""250 times the largest clipping range, 4e-4, of most published runs that clip the ratio of a sequence."""
MANY = 100
"""A run with fewer rollouts is a trial."""
STEPS = 100
"""Three times the most optimizer steps that a published run takes on the samples of one rollout, 32."""
PPO = a.entry == "verl.trainer.main_ppo"
PREFERS = a.rlhf_type.is_in("dpo", "kto")


def wide_clip(sequences: Expression, limit: Expression, upstream: str) -> Constraint:
    """A clipping range of token ratios for the ratio of a sequence."""
    return refuse(
        "sequence-ratio-never-clipped",
        all_of(sequences, limit.is_set, limit >= WIDE),
        message=(
            "the clipping range {limit} is that of a token's ratio, but the run clips the ratio of a sequence, for which "
            "the GSPO paper and most published runs use 1e-4 to 4e-4"
        ),
        why="the mean ratio over the tokens of a sequence hardly ever leaves such a wide range, so nothing is clipped",
        shows={"limit": limit},
        upstream=upstream,
        severity=Severity.WARNING,
        at=(limit,),
    )


def no_strength(prefers: Expression, beta: Expression, upstream: str) -> Constraint:
    """A beta of 0 for a loss that learns from preferences."""
    return refuse(
        "preferences-without-weight",
        all_of(prefers, beta.is_set, beta == 0),
        message="with a beta of 0, the preference loss is the same for every pair of responses, so no preference is learned",
        why="the loss is a function of beta times the difference of the log-probabilities; most published runs use 0.05 to 0.5",
        upstream=upstream,
        severity=Severity.WARNING,
        at=(beta,),
    )


def many_steps(trains: Expression, steps: Expression, at: tuple[Expression, ...], upstream: str) -> Constraint:
    """Optimizer steps on one rollout, most of which train on samples of another policy."""
    return refuse(
        "many-steps-on-a-rollout",
        all_of(trains, steps >= STEPS),
        message="the optimizer takes {steps} steps on the samples of each rollout, but published runs take 1 to 32",
        why=(
            "the policy that is trained moves away from the one that generated the samples, so the later steps are mostly "
            "clipped. A digit of the mini-batch may be missing"
        ),
        shows={"steps": steps},
        upstream=upstream,
        severity=Severity.WARNING,
        at=at,
    )


def over_base(bases: tuple[Expression, ...], upstream: str) -> Constraint:
    """Checkpoints written into the folder of the weights that the run starts from."""
    return refuse(
        "saved-over-base",
        all_of(a.save.is_set, any_of(*(all_of(base.is_set, a.save == base) for base in bases))),
        message="the checkpoints are written to {save}, the folder of the weights that the run starts from",
        why=(
            "the folder then names the checkpoint that was written last, so the next start, or another run, takes trained "
            "weights for the original ones"
        ),
        upstream=upstream,
        severity=Severity.WARNING,
        at=(a.save, *bases),
    )


VERL.add(
    many_steps(
        all_of(PPO, a.ppo_mini_batch_size > 0),
        a.train_batch_size // a.ppo_mini_batch_size,
        (a.ppo_mini_batch_size, a.train_batch_size),
        "verl/workers/engine_workers.py",
    ),
    refuse(
        "warm-up-whole-run",
        all_of(
            any_of(PPO, a.entry == "verl.trainer.sft_trainer"),
            a.optim_warmup_steps <= 0,
            a.optim_warmup_ratio.is_set,
            a.optim_warmup_ratio >= 1,
        ),
        message="lr_warmup_steps_ratio {optim_warmup_ratio} is a fraction of the run and must be below 1",
        why="the run fails when the schedule is created, after the models are built; the value may be meant in percent",
        upstream="megatron/core/optimizer_param_scheduler.py:160",
        at=(a.optim_warmup_ratio,),
    ),
    wide_clip(all_of(PPO, a.policy_loss_mode == "gspo"), a.clip_ratio_high, "verl/trainer/ppo/core_algos.py:1593"),
    refuse(
        "checkpoint-after-each-step",
        all_of(
            PPO,
            a.save_freq == 1,
            a.max_actor_ckpt_to_keep.is_none,
            any_of(a.total_training_steps.is_none, a.total_training_steps > MANY),
        ),
        message="trainer.save_freq 1 saves the model and the optimizer after each step and keeps them all",
        why="published runs save every 5 to 500 steps; the disk fills up, and the run ends",
        upstream="verl/trainer/ppo/ray_trainer.py",
        severity=Severity.WARNING,
        at=(a.save_freq,),
    ),
)
NEMO_RL.add(
    no_strength(a.megatron_enabled, a.preference_beta, "nemo_rl/algorithms/loss/loss_functions.py:792"),
    refuse(
        "adapters-scaled-by-zero",
        all_of(a.megatron_enabled, a.peft_enabled, a.lora_alpha == 0),
        message="policy.megatron_cfg.peft.alpha 0 multiplies the output of the adapters by 0, so the model does not change",
        why="the run takes as long as any other, but the trained adapters have no effect",
        upstream="src/megatron/bridge/peft/lora.py",
        severity=Severity.WARNING,
        at=(a.lora_alpha,),
    ),
    refuse(
        "warm-up-cut-short",
        all_of(
            a.megatron_enabled,
            a.lr_decay_iters.is_set,
            a.lr_warmup_iters.is_set,
            a.lr_warmup_iters > 0,
            a.lr_warmup_iters >= a.lr_decay_iters,
        ),
        message=(
            "lr_warmup_iters {lr_warmup_iters} is not below lr_decay_iters {lr_decay_iters}, so Megatron-Bridge cuts the "
            "warm-up one sample before the end of the schedule"
        ),
        why="the learning rate rises until the end of the schedule and never stays at its maximum",
        versions=">=0.6",
        upstream="src/megatron/bridge/training/config.py:1495",
        severity=Severity.WARNING,
        at=(a.lr_warmup_iters, a.lr_decay_iters),
    ),
)
SLIME.add(
    many_steps(
        a.rollout_batch_size.is_set,
        a.num_steps_per_rollout,
        (a.num_steps_per_rollout,),
        "slime/utils/arguments.py",
    ),
    refuse(
        "dropout-left-on",
        all_of(
            a.rollout_batch_size.is_set,
            a.attention_dropout.given,
            a.attention_dropout == 0,
            ~a.hidden_dropout.given,
            a.hidden_dropout > 0,
        ),
        message="--attention-dropout is 0, but --hidden-dropout is not given and defaults to {hidden_dropout}",
        why=(
            "dropout changes the log-probabilities at random, so the ratio of the new policy to the old one is noise. "
            "Published runs turn both off"
        ),
        upstream="scripts/run-qwen3-4B.sh",
        severity=Severity.WARNING,
        at=(a.attention_dropout,),
        after=("megatron/dropout-left-on",),
    ),
    refuse(
        "attention-dropout-left-on",
        all_of(
            a.rollout_batch_size.is_set,
            a.hidden_dropout.given,
            a.hidden_dropout == 0,
            ~a.attention_dropout.given,
            a.attention_dropout > 0,
        ),
        message="--hidden-dropout is 0, but --attention-dropout is not given and defaults to {attention_dropout}",
        why=(
            "dropout changes the log-probabilities at random, so the ratio of the new policy to the old one is noise. "
            "Published runs turn both off"
        ),
        upstream="scripts/run-qwen3-4B.sh",
        severity=Severity.WARNING,
        at=(a.hidden_dropout,),
        after=("megatron/attention-dropout-left-on",),
    ),
    refuse(
        "kl-coefficient-without-loss",
        all_of(a.rollout_batch_size.is_set, ~a.use_kl_loss, a.kl_loss_coef > 0),
        message="--kl-loss-coef {kl_loss_coef} has no effect without --use-kl-loss",
        why="the loss has no KL term, so nothing holds the policy near the reference model",
        upstream="slime/backends/megatron_utils/loss.py:1053",
        severity=Severity.WARNING,
        at=(a.kl_loss_coef,),
    ),
    refuse(
        "checkpoint-after-each-step",
        all_of(~a.debug_rollout_only, a.save.is_set, a.save_interval == 1, a.num_rollout >= MANY),
        message="--save-interval 1 saves the model and the optimizer after each of {num_rollout} rollouts",
        why="published runs save every 20 rollouts or less often; checkpoints are not deleted, so the disk fills up",
        upstream="slime/utils/misc.py",
        severity=Severity.WARNING,
        at=(a.save_interval,),
    ),
    over_base((a.ref_load, a.hf_checkpoint), "slime/utils/arguments.py:1717"),
)
MS_SWIFT.add(
    wide_clip(
        all_of(a.rlhf_type == "grpo", a.importance_sampling_level == "sequence"),
        a.epsilon,
        "swift/megatron/trainers/grpo_trainer.py:1015",
    ),
    refuse(
        "upper-sequence-ratio-never-clipped",
        all_of(
            a.rlhf_type == "grpo",
            a.importance_sampling_level == "sequence",
            a.epsilon < WIDE,
            a.epsilon_high.is_set,
            a.epsilon_high >= WIDE,
        ),
        message=(
            "--epsilon_high {epsilon_high} is the range of a token's ratio, but --importance_sampling_level sequence "
            "clips the ratio of a sequence, for which most published runs use 1e-4 to 4e-4"
        ),
        why="the mean ratio over the tokens of a sequence hardly ever rises that far, so gains are not clipped",
        upstream="swift/megatron/trainers/grpo_trainer.py",
        severity=Severity.WARNING,
        at=(a.epsilon_high, a.importance_sampling_level),
    ),
    no_strength(all_of(PREFERS, a.loss_type != "ipo"), a.beta, "swift/megatron/trainers/dpo_trainer.py"),
    refuse(
        "evaluation-without-data",
        all_of(
            a.eval_interval.given,
            a.split_dataset_ratio.given,
            a.split_dataset_ratio == 0,
            a.val_dataset.length == 0,
            a.cached_val_dataset.length == 0,
            a.cached_dataset.length == 0,
        ),
        message="--eval_steps {eval_interval} has no effect with --split_dataset_ratio 0 and without --val_dataset: nothing is "
        "held out to evaluate on",
        why="the loss on unseen data is never measured, so overfitting stays unnoticed",
        upstream="swift/megatron/arguments/megatron_args.py:1076",
        severity=Severity.WARNING,
        at=(a.split_dataset_ratio, a.eval_interval),
    ),
    refuse(
        "checkpoint-after-each-step",
        all_of(
            a.save_interval.given,
            a.save_interval == 1,
            a.save_strategy != "epoch",
            a.tuner_type != "lora",
            a.save_total_limit.is_none,
            any_of(a.train_iters.is_none, a.train_iters >= STEPS),
        ),
        message="--save_steps 1 writes a checkpoint after each step and keeps them all",
        why="published runs save every 5 to 2000 steps; writing takes longer than training, and the disk fills up",
        upstream="swift/megatron/callbacks/default_flow.py",
        severity=Severity.WARNING,
        at=(a.save_interval,),
        after=("megatron/checkpoint-after-each-step",),
    ),
)
PRIMUS.add(
    refuse(
        "data-not-read",
        all_of(
            ~a.skip_train,
            a.mock_data,
            any_of(a.data_path.is_set, a.train_data_path.is_set),
        ),
        message="mock_data is true, so Primus drops the data paths and trains on generated tokens",
        why="the run looks like any other, but the trained weights are worthless",
        upstream="primus/backends/megatron/patches/args/mock_data_patches.py:33",
        severity=Severity.WARNING,
        at=(a.mock_data, a.data_path, a.train_data_path),
    ),
)
