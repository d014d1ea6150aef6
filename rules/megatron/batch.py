"""Checks of batch sizes: micro-batch, global batch, evaluation batch, and reinforcement-learning batches."""

from preflight.lint.constraint import ConstraintSet, conflicts, divides, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
PER_RANK = a.micro_batch_size * a.data_parallel_size * a.gtp_weight_remat_size
PER_EVALUATION = a.eval_micro_batch_size * a.data_parallel_size * a.gtp_weight_remat_size
PROMPTS = a.grpo_prompts_per_step * a.grpo_group_size
ROLLOUTS = PROMPTS * a.grpo_iterations
STEPS = ROLLOUTS // a.global_batch_size

MEGATRON.add(
    refuse(
        "micro-batch-not-positive",
        a.micro_batch_size <= 0,
        message="--micro-batch-size is {micro_batch_size}; it must be at least 1",
    ),
    conflicts(
        "batch-schedule-with-global-batch",
        a.step_batch_size_schedule.is_set,
        a.global_batch_size.given,
        message="--global-batch-size does not work with --step-batch-size-schedule, which sets every batch size",
        at=(a.global_batch_size, a.step_batch_size_schedule),
        fixes=(drop(a.global_batch_size), drop(a.step_batch_size_schedule)),
    ),
    refuse(
        "global-batch-not-positive",
        all_of(a.global_batch_size <= 0, a.micro_batch_size > 0),
        message="the global batch is {global_batch_size}; it must be at least 1",
        at=(a.global_batch_size,),
    ),
    conflicts(
        "batch-schedule-with-decrease",
        a.step_batch_size_schedule.is_set,
        a.decrease_batch_size_if_needed,
        message="--decrease-batch-size-if-needed cannot round the sizes of a --step-batch-size-schedule",
        at=(a.decrease_batch_size_if_needed, a.step_batch_size_schedule),
        fixes=(drop(a.decrease_batch_size_if_needed, safety=Safety.SAFE),),
    ),
    refuse(
        "eval-batch-not-divisible",
        all_of(
            any_of(a.eval_global_batch_size.given, a.eval_micro_batch_size.given, a.decrease_batch_size_if_needed),
            any_of(a.eval_micro_batch_size == 0, a.eval_global_batch_size % PER_EVALUATION != 0),
        ),
        message=(
            "--eval-global-batch-size {eval_global_batch_size} is not a multiple of {per_step} (micro-batch size "
            "{eval_micro_batch_size} × data-parallel size {data_parallel_size})"
        ),
        why="the check also applies to runs that never evaluate, so " + REFUSED,
        shows={"per_step": PER_EVALUATION},
        at=(a.eval_global_batch_size, a.eval_micro_batch_size, a.global_batch_size),
        fixes=(
            put(
                a.eval_global_batch_size,
                (a.eval_global_batch_size // PER_EVALUATION + 1) * PER_EVALUATION,
                safety=Safety.SAFE,
            ),
        ),
        after=("batch-not-divisible",),
    ),
    refuse(
        "no-micro-batch",
        all_of(
            a.decrease_batch_size_if_needed,
            a.step_batch_size_schedule.is_none,
            a.global_batch_size > 0,
            a.global_batch_size < PER_RANK,
        ),
        message=(
            "--global-batch-size {global_batch_size} rounds down to 0; it must be at least {per_step}, which is one "
            "micro-batch per data-parallel rank"
        ),
        shows={"per_step": PER_RANK},
        at=(a.global_batch_size, a.decrease_batch_size_if_needed),
        fixes=(put(a.global_batch_size, PER_RANK),),
    ),
    divides(
        "rollouts-over-global-batch",
        a.global_batch_size,
        ROLLOUTS,
        when=a.perform_rl_step,
        message="{rollouts} rollouts per collection are not divisible by a global batch of {global_batch_size}",
        shows={"rollouts": ROLLOUTS},
        at=(a.global_batch_size, a.grpo_group_size, a.grpo_prompts_per_step, a.grpo_iterations),
    ),
    divides(
        "exit-interval-over-rollouts",
        STEPS,
        a.exit_interval,
        when=all_of(a.perform_rl_step, a.exit_interval.is_set, ROLLOUTS % a.global_batch_size == 0),
        message=(
            "--exit-interval {exit_interval} is not a multiple of {steps}, the number of steps per collection of "
            "rollouts"
        ),
        shows={"steps": STEPS},
        at=(a.exit_interval,),
        fixes=(put(a.exit_interval, (a.exit_interval // STEPS + 1) * STEPS),),
    ),
    divides(
        "save-interval-over-rollouts",
        STEPS,
        a.save_interval,
        when=all_of(a.perform_rl_step, a.save_interval.is_set, ROLLOUTS % a.global_batch_size == 0),
        message=(
            "--save-interval {save_interval} is not a multiple of {steps}, the number of steps per collection of "
            "rollouts"
        ),
        shows={"steps": STEPS},
        at=(a.save_interval,),
        fixes=(put(a.save_interval, (a.save_interval // STEPS + 1) * STEPS),),
    ),
    refuse(
        "packing-micro-batch",
        all_of(a.perform_rl_step, a.rl_use_sequence_packing, a.micro_batch_size != 1),
        message="sequence packing of rollouts needs micro-batches of 1, not {micro_batch_size}",
        at=(a.micro_batch_size, a.rl_use_sequence_packing),
        fixes=(put(a.micro_batch_size, 1),),
    ),
)
