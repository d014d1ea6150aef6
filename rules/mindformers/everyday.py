"""Everyday slips in graph-mode configs: a network that cannot train, a schedule that grows."""

from preflight.lint.expressions import all_of, any_of
from preflight.lint.shapes import ConstraintSet, refuse
from preflight.rules.mindformers.names import a, mcore, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers")
network = a["model.model_config.architectures"]
SERVED = ("Qwen2ForCausalLM", "Glm4ForCausalLM", "Glm4MoeForCausalLM", "TeleChat2ForCausalLM")
end, rate = a["lr_schedule.lr_end"], a["lr_schedule.learning_rate"]

MINDFORMERS.add(
    refuse(
        "network-only-for-inference",
        all_of(mcore, training, any_of(*(network.has(name) for name in SERVED))),
        message="architectures is {model.model_config.architectures}, a network that is only built for inference",
        why="it has no network to train; the trainer dies when it builds the model",
        upstream="mindformers/models/qwen2/modeling_qwen2.py:54",
        at=(network,),
        versions=">=1.7,<2",
    ),
    refuse(
        "learning-rate-ends-higher",
        all_of(
            training,
            a["lr_schedule.type"].is_in("CosineWithWarmUpLR", "LinearWithWarmUpLR", "PolynomialWithWarmUpLR"),
            end > rate,
        ),
        message=(
            "the schedule ends at lr_end {lr_schedule.lr_end}, above learning_rate {lr_schedule.learning_rate}: "
            "it grows after the warm-up"
        ),
        why="the schedule decays towards lr_end; nothing refuses one that is higher",
        severity=Severity.WARNING,
        at=(end, rate),
    ),
)
