"""Values that pass every check of graph-mode MindFormers, but probably make the run do something unintended."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of
from preflight.rules.mindformers.names import a, legacy, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="no check covers this value, and the run is not the one intended")
EPSILON = a["model.model_config.rms_norm_eps"]

MINDFORMERS.add(
    refuse(
        "only-strategy-saved",
        all_of(training, a["only_save_strategy"]),
        message=(
            "only_save_strategy True ends the run after the compilation, when the strategy is saved, so nothing is "
            "trained"
        ),
        why="the trainer exits with status 0 as soon as the network is compiled, so the job looks successful",
        severity=Severity.WARNING,
        at=(a["only_save_strategy"],),
        fixes=(put(a["only_save_strategy"], False),),
        upstream="mindformers/trainer/utils.py",
    ),
    refuse(
        "capacity-drops-tokens",
        all_of(legacy, training, a["moe_config.capacity_factor"] > 0, a["moe_config.capacity_factor"] < 1),
        message="capacity_factor {moe_config.capacity_factor} leaves room for only that fraction of the tokens; 1.0 or more is usual",
        why="tokens beyond the capacity of an expert skip the layer, even if they are perfectly balanced",
        severity=Severity.WARNING,
        at=(a["moe_config.capacity_factor"],),
        upstream="mindformers/modules/transformer/moe.py",
        after=("mindformers/capacity-factor",),
    ),
    refuse(
        "norm-epsilon-too-large",
        all_of(training, EPSILON >= 0.01),
        message="rms_norm_eps is {model.model_config.rms_norm_eps}, but usual values are 1e-5 and 1e-6; a digit of the "
        "exponent may be missing",
        why="epsilon is added to the mean square, so a large value shrinks every activation",
        severity=Severity.WARNING,
        at=(EPSILON,),
        upstream="https://arxiv.org/abs/1910.07467",
    ),
)
