"""Checks for graph-mode networks that cannot be trained, and for schedules with an increasing learning rate."""

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, mcore, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers")
network = a["model.model_config.architectures"]
SERVED = ("Qwen2ForCausalLM", "Glm4ForCausalLM", "Glm4MoeForCausalLM", "TeleChat2ForCausalLM")
FIRST = ("Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM")
end, rate = a["lr_schedule.lr_end"], a["lr_schedule.learning_rate"]
warm, total = a["lr_schedule.warmup_steps"], a["lr_schedule.total_steps"]
DECAYING = ("CosineWithWarmUpLR", "LinearWithWarmUpLR", "CosineWithRestartsAndWarmUpLR", "PolynomialWithWarmUpLR")

MINDFORMERS.add(
    refuse(
        "network-only-for-inference",
        all_of(mcore, training, any_of(*(network.has(name) for name in SERVED))),
        message="architectures is {model.model_config.architectures}, a network that is built only for inference",
        why="the architecture has no network for training, so the trainer crashes when it builds the model",
        at=(network,),
    ),
    refuse(
        "network-only-for-inference-first",
        all_of(mcore, training, any_of(*(network.has(name) for name in FIRST))),
        message="architectures is {model.model_config.architectures}, a network that is built only for inference",
        why=(
            "release 1.6, the first with mcore networks, cannot train this network, so the trainer crashes when it "
            "builds the model"
        ),
        at=(network,),
    ),
    refuse(
        "learning-rate-ends-higher",
        all_of(
            training,
            a["lr_schedule.type"] == "CosineWithWarmUpLR",
            end > rate,
        ),
        message=(
            "the schedule ends at lr_end {lr_schedule.lr_end}, above learning_rate {lr_schedule.learning_rate}, so "
            "the learning rate grows after the warm-up"
        ),
        why="the schedule decays towards lr_end, but no check rejects a higher value",
        severity=Severity.WARNING,
        at=(end, rate),
    ),
    refuse(
        "schedule-within-warmup",
        all_of(
            *(training, a["lr_schedule.type"].is_in(*DECAYING)),
            *(warm.given, total.given, warm > 0, total > 0, warm >= total, ~a["lr_schedule.warmup_ratio"].given),
        ),
        message=(
            "warmup_steps {lr_schedule.warmup_steps} is not below total_steps {lr_schedule.total_steps}, so the "
            "schedule ends within its warm-up"
        ),
        why=(
            "the learning rate never decays along the schedule. One of the two values may lack a digit or have an "
            "extra digit"
        ),
        severity=Severity.WARNING,
        at=(warm, total),
    ),
    refuse(
        "warmup-ratio-of-one",
        all_of(
            *(training, a["lr_schedule.type"].is_in(*DECAYING)),
            *(a["lr_schedule.warmup_ratio"].given, a["lr_schedule.warmup_ratio"] == 1),
        ),
        message="warmup_ratio {lr_schedule.warmup_ratio} makes the warm-up last the whole schedule",
        why="the learning rate only grows and never decays along the schedule. The ratio may lack a digit",
        severity=Severity.WARNING,
        at=(a["lr_schedule.warmup_ratio"],),
    ),
    refuse(
        "grouped-rate-missing",
        all_of(
            *(training, a["grouped_lr_schedule.grouped"].is_set, a["grouped_lr_schedule.default"].is_none),
            *(a["optimizer.type"].given, ~a["optimizer.learning_rate"].given),
        ),
        message=(
            "grouped_lr_schedule has no default, and the optimizer has no learning_rate; one of them must set the rate"
        ),
        why="parameters outside all groups have no learning rate, so the trainer fails at startup",
        at=(a["grouped_lr_schedule.grouped"],),
    ),
    refuse(
        "learning-rate-end",
        all_of(training, a["lr_schedule.type"].is_in("PolynomialWithWarmUpLR", "WarmUpStableDecayLR"), end >= rate),
        message="lr_end {lr_schedule.lr_end} must be below learning_rate {lr_schedule.learning_rate}",
        why="the schedule cannot be created",
        at=(end, rate),
    ),
)
