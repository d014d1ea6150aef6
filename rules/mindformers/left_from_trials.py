"""Settings of debugging sessions and trials that are left in a training config of MindFormers."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, mcore, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="no check covers this value, and the run is not the one intended")
WINDOW = 100
"""Ten times the longest window in published files, 9 steps."""
GRAPHS = a["context.save_graphs"]
CLIPS, LIMIT = a["runner_wrapper.use_clip_grad"], a["runner_wrapper.max_grad_norm"]
START, STOP = a["profile_start_step"], a["profile_stop_step"]
COEFFICIENT = a["model.model_config.moe_aux_loss_coeff"]
CLIPPING = ("MFTrainOneStepCell", "MFPipelineWithLossScaleCell")
"""Wrappers that build ClipGradNorm in every run (mindformers/wrapper/wrapper.py:254, 909)."""
SHARE = a["lr_schedule.warmup_ratio"]
SCHEDULES = (
    *("ConstantWarmUpLR", "LinearWithWarmUpLR", "CosineWithWarmUpLR", "CosineWithRestartsAndWarmUpLR"),
    *("PolynomialWithWarmUpLR", "ConstantWithCoolDownLR", "WarmUpStableDecayLR"),
)
"""The schedules that turn a ratio into a number of steps."""

MINDFORMERS.add(
    refuse(
        "graphs-saved",
        all_of(training, any_of(GRAPHS.is_in(True), GRAPHS >= 1)),
        message="save_graphs {context.save_graphs} writes the intermediate graphs of the compilation to disk",
        why="the setting is meant for debugging: compilation takes longer, and each device writes many files",
        severity=Severity.WARNING,
        at=(GRAPHS,),
        fixes=(put(GRAPHS, False),),
        upstream="mindformers/core/config_args.py:164",
    ),
    refuse(
        "profiler-over-many-steps",
        all_of(training, a["profile"], STOP.given, STOP - START >= WINDOW),
        message=(
            "the profiler records steps {profile_start_step} to {profile_stop_step}, but published configs record at most 9"
        ),
        why="profiled steps are slower, and each one writes files on every device that is profiled",
        severity=Severity.WARNING,
        at=(STOP, START, a["profile"]),
        upstream="mindformers/trainer/trainer.py:1127",
    ),
    refuse(
        "clipping-off",
        all_of(training, a["run_mode"] == "train", CLIPS.given, ~CLIPS),
        message="use_clip_grad False turns gradient clipping off, but every published pre-training config uses True",
        why="one batch with a large gradient can undo many steps",
        severity=Severity.WARNING,
        at=(CLIPS,),
        fixes=(put(CLIPS, True),),
        upstream="mindformers/wrapper/wrapper.py:324",
    ),
    refuse(
        "clipping-to-zero",
        all_of(training, a["runner_wrapper.type"].is_in(*CLIPPING), LIMIT.given, LIMIT <= 0),
        message="max_grad_norm must be greater than 0, not {runner_wrapper.max_grad_norm}",
        why="the wrapper raises a ValueError when it is built, even if use_clip_grad is False",
        at=(LIMIT,),
        upstream="mindformers/core/clip_grad.py:81",
    ),
    refuse(
        "balance-loss-outweighs",
        all_of(training, mcore, COEFFICIENT >= 1),
        message="moe_aux_loss_coeff {model.model_config.moe_aux_loss_coeff} makes the router's loss outweigh the loss of "
        "the language model",
        why="published configs use 1e-4 to 0.02. With this value, the router is trained mainly to balance the experts",
        severity=Severity.WARNING,
        at=(COEFFICIENT,),
        upstream="mindformers/parallel_core/training_graph/transformer/moe/router.py",
    ),
    refuse(
        "warm-up-ratio-out-of-range",
        all_of(
            training,
            a["lr_schedule.type"].is_in(*SCHEDULES),
            a["lr_schedule.warmup_epochs"].is_none,
            any_of(SHARE > 1, SHARE < 0),
        ),
        message="lr_schedule.warmup_ratio {lr_schedule.warmup_ratio} is a fraction of the run and must be from 0 to 1",
        why="the schedule raises an error when it is built; the value may be meant in percent or in steps",
        at=(SHARE,),
        versions=">=1.6",
        upstream="mindformers/core/lr/lr_schedule.py:48",
    ),
)
