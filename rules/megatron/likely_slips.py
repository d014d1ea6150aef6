"""Values that pass every check but probably make the run train or save something unintended."""

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.rules.megatron.option_names import SCHEDULER, TRAINING, a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
DECAYS = ~a.lr_decay_style.is_in("constant", "WSD", "inverse-square-root")
TRIAL = 1_000
"""Runs with fewer iterations are trials: their options are often copied from the long run."""
FEW = 10
"""Runs with fewer iterations only measure the step time, or come from a script that evaluates and does not train."""
LONG = 10_000
"""Runs with more iterations are not shortened trials."""
SHORTENED = 20
"""The schedule of a long run is this many times as long as the run if the run was shortened."""
BEYOND = 10
"""The longest interval in published files that are not trials, as a multiple of the length of the run."""
NEVER = 1_000
"""An interval this many times as long as the run is written so that only the end is saved."""
EARLY = 5
"""A run this many times as long as its decay has lost a digit in the decay; for published runs the ratio is less than
2."""
WIDE = 4_096
"""The hidden size of networks with 7B parameters and more, if they are dense."""
EPSILON = (a.layernorm_epsilon, a.norm_epsilon)
"""The names of the option in different releases."""
MOST_MINUTES = 1_000
"""For a timeout in minutes; the longest in a published script is 600."""
ADAM = "https://arxiv.org/abs/1412.6980v9#section-4"
WEIGHTS = "megatron/training/arguments.py"

MEGATRON.add(
    refuse(
        "adam-betas-swapped",
        all_of(
            TRAINS,
            a.optimizer == "adam",
            a.adam_beta1.given,
            a.adam_beta2.given,
            a.adam_beta1 > a.adam_beta2,
            a.adam_beta1 < 1,
        ),
        message=(
            "--adam-beta1 {adam_beta1} is above --adam-beta2 {adam_beta2}, so gradients are averaged over more steps "
            "than their squares"
        ),
        why=(
            "the error bound of Adam requires the opposite order, and every published recipe follows it. The two "
            "values may be swapped"
        ),
        severity=Severity.WARNING,
        at=(a.adam_beta1, a.adam_beta2),
        upstream=ADAM,
    ),
    refuse(
        "weight-decay-above-ten",
        all_of(TRAINS, a.weight_decay >= 10),
        message="--weight-decay {weight_decay} is a factor, not a percentage; at a learning rate of 1e-3, weights "
        "halve in a few steps",
        severity=Severity.WARNING,
        at=(a.weight_decay,),
        upstream="https://arxiv.org/abs/1711.05101",
    ),
    refuse(
        "learning-rate-zero",
        all_of(TRAINS, a.lr.given, a.lr == 0),
        message="--lr is 0, so no weight changes",
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream=SCHEDULER,
    ),
    refuse(
        "learning-rate-far-too-high",
        all_of(TRAINS, a.optimizer == "adam", a.lr >= 0.05, a.lr <= 1),
        message=(
            "--lr {lr} is at least 50 times the usual rate with Adam (1e-3 or less); a digit of the exponent may be "
            "missing"
        ),
        why="the loss diverges at the end of the warm-up or earlier",
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream="https://arxiv.org/abs/1412.6980v9#section-6",
    ),
    refuse(
        "learning-rate-too-high-for-size",
        all_of(
            TRAINS,
            a.optimizer == "adam",
            a.entry.is_in("pretrain_gpt.py", "pretrain_mamba.py", "pretrain_hybrid.py", ""),
            a.hidden_size >= WIDE,
            a.lr >= 0.005,
            a.lr < 0.05,
            ~a.finetune,
            ~a.use_mup.given,
        ),
        message="--lr {lr} is several times the rate of published runs with Adam and a hidden size of {hidden_size}; a "
        "digit of the exponent may be missing",
        why=(
            "published wide networks use learning rates of 1e-4 to 2e-3. With several times as much, the loss diverges "
            "after the warm-up or earlier"
        ),
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream="https://arxiv.org/abs/2005.14165",
    ),
    refuse(
        "fine-tuning-rate-too-high",
        all_of(
            TRAINS,
            a.entry.is_in("pretrain_gpt.py", ""),
            a.options_are_complete,
            a.optimizer == "adam",
            a.finetune,
            a.load.given,
            ~a.freeze_all_layers,
            ~a.freeze_base_for_mtp,
            a.hidden_size >= WIDE,
            a.lr >= 0.005,
            a.lr < 0.05,
        ),
        message="--lr {lr} makes Adam move every weight by about this much per step, so with --finetune the loaded "
        "weights are lost in a few steps; a digit of the exponent may be missing",
        why="published fine-tuning uses 1e-6 to 1e-4, and adapters up to 1e-3",
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream="https://arxiv.org/abs/2106.09685",
    ),
    refuse(
        "warmup-most-of-decay",
        all_of(
            TRAINS,
            a.lr_decay_steps > a.global_batch_size * TRIAL,
            a.lr_warmup_steps * 2 >= a.lr_decay_steps,
            a.lr_warmup_steps < a.lr_decay_steps,
        ),
        message=(
            "the warm-up takes {warmup} of the {decay} iterations of the learning-rate schedule, which is at least half"
        ),
        shows={"warmup": a.lr_warmup_steps // a.global_batch_size, "decay": a.lr_decay_steps // a.global_batch_size},
        why=(
            "published runs warm up for 0.1% to 10% of the schedule. The value may have an extra digit, or may be in "
            "the unit of the other option"
        ),
        severity=Severity.WARNING,
        at=(a.lr_warmup_iters, a.lr_warmup_samples, a.lr_warmup_fraction, a.lr_decay_iters, a.lr_decay_samples),
        upstream=SCHEDULER,
    ),
    refuse(
        "learning-rate-flat",
        all_of(TRAINS, ~a.lr_decay_style.is_in("constant", "WSD"), a.min_lr.given, a.lr > 0, a.min_lr == a.lr),
        message="--min-lr equals --lr {lr}, so --lr-decay-style {lr_decay_style} never lowers the learning rate",
        severity=Severity.WARNING,
        at=(a.min_lr, a.lr),
        upstream=SCHEDULER,
    ),
    refuse(
        "decay-beyond-run",
        all_of(
            TRAINS,
            DECAYS,
            a.lr_decay_iters.given,
            a.lr_decay_iters > a.train_iters,
            any_of(a.train_iters >= LONG, all_of(a.train_iters >= TRIAL, a.lr_decay_iters < a.train_iters * SHORTENED)),
        ),
        message=(
            "the run ends at iteration {train_iters}, but the learning rate reaches its minimum only at {lr_decay_iters}"
        ),
        why="the run ends while the learning rate is high, and the weights are worse than those of a completed decay",
        severity=Severity.WARNING,
        at=(a.lr_decay_iters, a.train_iters),
        upstream=SCHEDULER,
    ),
    refuse(
        "constant-phase-beyond-run",
        all_of(
            TRAINS,
            a.lr_decay_style == "WSD",
            a.lr_decay_iters.given,
            a.lr_wsd_decay_iters.given,
            a.lr_decay_iters - a.lr_wsd_decay_iters >= a.train_iters,
            a.train_iters >= TRIAL,
            a.lr_decay_iters < a.train_iters * SHORTENED,
        ),
        message=(
            "the decay covers the last {lr_wsd_decay_iters} of --lr-decay-iters {lr_decay_iters}, but the run ends at "
            "iteration {train_iters}, so the learning rate never falls"
        ),
        why="the annealing starts at --lr-decay-iters minus --lr-wsd-decay-iters, counted from the first iteration",
        severity=Severity.WARNING,
        at=(a.lr_decay_iters, a.lr_wsd_decay_iters, a.train_iters),
        upstream=SCHEDULER,
    ),
    refuse(
        "decay-beyond-run-in-samples",
        all_of(
            TRAINS,
            DECAYS,
            a.lr_decay_samples.given,
            a.lr_decay_samples > a.train_samples,
            a.lr_decay_samples < a.train_samples * SHORTENED,
            a.train_samples >= a.global_batch_size * TRIAL,
        ),
        message=(
            "the run ends at sample {train_samples}, but the learning rate reaches its minimum only at {lr_decay_samples}"
        ),
        why="the run ends while the learning rate is high, and the weights are worse than those of a completed decay",
        severity=Severity.WARNING,
        at=(a.lr_decay_samples, a.train_samples),
        upstream=SCHEDULER,
    ),
    refuse(
        "decay-far-too-early",
        all_of(
            TRAINS,
            DECAYS,
            any_of(
                all_of(
                    a.lr_decay_iters.given,
                    a.train_iters >= TRIAL,
                    a.lr_decay_iters > 0,
                    a.lr_decay_iters * EARLY <= a.train_iters,
                ),
                all_of(
                    a.lr_decay_samples.given,
                    a.train_samples >= a.global_batch_size * TRIAL,
                    a.lr_decay_samples > 0,
                    a.lr_decay_samples * EARLY <= a.train_samples,
                ),
            ),
        ),
        message="the learning rate is at its minimum after the first fifth of the run, or earlier",
        why="most of the run trains at the lowest learning rate. The length of the decay may lack a digit",
        severity=Severity.WARNING,
        at=(a.lr_decay_iters, a.lr_decay_samples, a.train_iters, a.train_samples),
        upstream=SCHEDULER,
        after=("megatron/warmup-over-decay",),
    ),
    refuse(
        "wsd-options-without-wsd",
        all_of(
            TRAINS,
            a.lr_decay_style != "WSD",
            any_of(a.lr_wsd_decay_iters.given, a.lr_wsd_decay_samples.given, a.lr_wsd_decay_style.given),
        ),
        message="--lr-decay-style is {lr_decay_style}, so the options of the WSD schedule have no effect",
        why="the learning rate decreases from the start and has no stable phase",
        severity=Severity.WARNING,
        at=(a.lr_wsd_decay_iters, a.lr_wsd_decay_samples, a.lr_wsd_decay_style, a.lr_decay_style),
        upstream=SCHEDULER,
    ),
    refuse(
        "wsd-decay-over-run",
        all_of(TRAINS, a.lr_decay_style == "WSD", a.lr_wsd_decay_iters.given, a.lr_wsd_decay_iters >= a.train_iters),
        message=(
            "the learning rate decays over the last {lr_wsd_decay_iters} iterations, but the run has only "
            "{train_iters}, so there is no stable phase"
        ),
        severity=Severity.WARNING,
        at=(a.lr_wsd_decay_iters, a.train_iters),
        upstream=SCHEDULER,
    ),
    refuse(
        "save-interval-beyond-run",
        all_of(
            TRAINS,
            a.save.given,
            a.save_interval > a.train_iters,
            any_of(a.train_iters >= LONG, all_of(a.train_iters >= TRIAL, a.save_interval > a.train_iters * BEYOND)),
            a.save_interval < a.train_iters * NEVER,
            a.non_persistent_save_interval.is_none,
        ),
        message=(
            "--save-interval {save_interval} exceeds the {train_iters} training iterations, so nothing is saved "
            "before the end"
        ),
        why="if the run ends early for any reason, all of its training is lost",
        severity=Severity.WARNING,
        at=(a.save_interval, a.train_iters),
        upstream=TRAINING,
    ),
    refuse(
        "log-interval-beyond-run",
        all_of(TRAINS, a.log_interval.given, a.log_interval > a.train_iters, a.train_iters >= FEW),
        message=(
            "--log-interval {log_interval} exceeds the {train_iters} training iterations, so at most the loss of the "
            "first iteration is printed"
        ),
        severity=Severity.WARNING,
        at=(a.log_interval, a.train_iters),
        upstream=TRAINING,
    ),
    refuse(
        "timeout-of-a-day",
        all_of(
            TRAINS,
            any_of(a.train_iters > 0, a.train_samples > 0),
            a.distributed_timeout_minutes.given,
            a.distributed_timeout_minutes > MOST_MINUTES,
        ),
        message=(
            "--distributed-timeout-minutes {distributed_timeout_minutes} is in minutes, so a hanging rank blocks "
            "the job for most of a day or longer"
        ),
        why="a hanging collective is noticed only after the timeout, and until then all devices wait",
        severity=Severity.WARNING,
        at=(a.distributed_timeout_minutes,),
        upstream="megatron/training/initialize.py",
    ),
    refuse(
        "dropout-of-everything",
        all_of(TRAINS, any_of(a.hidden_dropout == 1, a.attention_dropout == 1)),
        message=(
            "a dropout of 1 drops every value (--hidden-dropout {hidden_dropout}, --attention-dropout "
            "{attention_dropout})"
        ),
        severity=Severity.WARNING,
        at=(a.hidden_dropout, a.attention_dropout),
        upstream="https://pytorch.org/docs/2.9/generated/torch.nn.Dropout.html",
    ),
    refuse(
        "norm-epsilon-too-large",
        any_of(*(epsilon >= 1e-4 for epsilon in EPSILON), *(epsilon <= 0 for epsilon in EPSILON)),
        message=(
            "the epsilon of the norms is {epsilon}, which is not between 0 and 1e-4; usual values are 1e-5 and 1e-6, "
            "so the exponent or a sign may be wrong"
        ),
        shows={"epsilon": EPSILON},
        why=(
            "epsilon is added to the variance, so a large value shrinks every activation, and 0 can lead to a "
            "division by zero"
        ),
        severity=Severity.WARNING,
        at=EPSILON,
        upstream=WEIGHTS,
    ),
    refuse(
        "adam-epsilon-too-large",
        all_of(TRAINS, a.optimizer == "adam", a.adam_eps >= 1e-3),
        message="--adam-eps is {adam_eps}, but published runs use 1e-15 to 1e-5; the exponent may be wrong",
        why="epsilon outweighs the average of the gradients, and weights move by far less than the learning rate",
        severity=Severity.WARNING,
        at=(a.adam_eps,),
        upstream="megatron/core/optimizer/__init__.py:524",
    ),
    refuse(
        "balance-coefficient-without-loss",
        all_of(
            TRAINS,
            a.num_experts > 1,
            a.moe_router_load_balancing_type.given,
            a.moe_router_load_balancing_type == "none",
            a.moe_aux_loss_coeff.given,
            a.moe_aux_loss_coeff > 0,
            ~a.moe_router_enable_expert_bias,
        ),
        message=(
            "--moe-aux-loss-coeff {moe_aux_loss_coeff} has no effect with --moe-router-load-balancing-type none, so "
            "nothing balances the experts"
        ),
        why=(
            "tokens concentrate on a few experts, which becomes visible only in the curves of a run that has trained "
            "for days"
        ),
        severity=Severity.WARNING,
        at=(a.moe_router_load_balancing_type, a.moe_aux_loss_coeff),
        upstream="megatron/core/transformer/moe/router.py",
    ),
    refuse(
        "fine-tuned-in-place",
        all_of(TRAINS, a.finetune, a.load.given, a.load == a.save, a.train_iters >= TRIAL),
        message="--load and --save are both {load} with --finetune, so every restart begins at iteration 0 with the "
        "weights that were saved last",
        why="with --finetune, the iteration and the optimizer state of the checkpoint are not read",
        severity=Severity.WARNING,
        at=(a.save, a.load),
        upstream="megatron/training/checkpointing.py",
    ),
    refuse(
        "trains-in-float32",
        all_of(
            TRAINS,
            a.entry.is_in("pretrain_gpt.py", ""),
            a.options_are_complete,
            ~a.bf16,
            ~a.fp16,
            ~a.deterministic_mode,
            any_of(
                a.train_iters >= LONG,
                a.train_samples >= a.global_batch_size * LONG,
                all_of(
                    a.hidden_size >= WIDE // 2,
                    any_of(a.train_iters >= TRIAL, a.train_samples >= a.global_batch_size * TRIAL),
                ),
            ),
        ),
        message="neither --bf16 nor --fp16 is given, so the run trains in float32",
        why="float32 needs twice the memory for activations and is several times slower. A line may be missing",
        severity=Severity.WARNING,
        at=(a.train_iters, a.train_samples),
        upstream=WEIGHTS,
        after=("megatron/quantized-over-float32",),
    ),
    refuse(
        "balance-loss-outweighs",
        all_of(
            TRAINS,
            a.num_experts > 1,
            any_of(a.moe_aux_loss_coeff >= 0.1, a.moe_z_loss_coeff >= 0.1),
        ),
        message=(
            "--moe-aux-loss-coeff or --moe-z-loss-coeff is at least 0.1, so the router losses compete with the "
            "language-model loss"
        ),
        why=(
            "published runs use 1e-4 to 0.02 for --moe-aux-loss-coeff and 1e-3 for --moe-z-loss-coeff. With the "
            "given values, the router is trained mainly to balance the experts"
        ),
        severity=Severity.WARNING,
        at=(a.moe_aux_loss_coeff, a.moe_z_loss_coeff),
        upstream="https://arxiv.org/abs/2101.03961",
        after=("megatron/balance-coefficient-without-loss", "megatron/sinkhorn-with-auxiliary-loss"),
    ),
    refuse(
        "prediction-loss-outweighs",
        all_of(TRAINS, a.mtp_num_layers > 0, a.mtp_loss_scaling_factor > 1),
        message=(
            "--mtp-loss-scaling-factor {mtp_loss_scaling_factor} makes the loss of the additional tokens outweigh the "
            "loss of the next token"
        ),
        why="published runs use 0.1 and 0.3",
        severity=Severity.WARNING,
        at=(a.mtp_loss_scaling_factor,),
        upstream="https://arxiv.org/abs/2412.19437",
    ),
    refuse(
        "clip-grad-negative",
        all_of(TRAINS, a.clip_grad < 0),
        message="--clip-grad {clip_grad} is negative, so gradients are not clipped",
        why="gradients are clipped only if the limit is greater than 0. The sign may be a typo; 0 turns clipping off",
        severity=Severity.WARNING,
        at=(a.clip_grad,),
        upstream="megatron/core/optimizer/optimizer.py",
    ),
)
