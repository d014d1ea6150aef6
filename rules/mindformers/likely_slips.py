"""Values that pass every check of graph-mode MindFormers, but probably make the run do something unintended."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, legacy, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="no check covers this value, and the run is not the one intended")
EPSILON = (a["model.model_config.rms_norm_eps"], a["model.model_config.layernorm_epsilon"])
"""The names of the setting in different networks."""
CAPACITY = a["moe_config.capacity_factor"]
EXPERTS, CHOSEN = a["moe_config.expert_num"], a["moe_config.num_experts_chosen"]
VOCABULARY = a["model.model_config.vocab_size"]
IGNORED = a["model.model_config.ignore_token_id"]
ENDS = tuple(a[f"model.model_config.{name}"] for name in ("bos_token_id", "eos_token_id", "pad_token_id"))

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
        all_of(legacy, training, CAPACITY > 0, CAPACITY < 1),
        message="capacity_factor {moe_config.capacity_factor} leaves room for only that fraction of the tokens; 1.0 or more is usual",
        why="tokens beyond the capacity of an expert skip the layer, even if they are perfectly balanced",
        severity=Severity.WARNING,
        at=(CAPACITY,),
        upstream="mindformers/modules/transformer/moe.py",
        after=("mindformers/capacity-factor",),
    ),
    refuse(
        "capacity-beyond-all-tokens",
        all_of(legacy, training, EXPERTS > 1, CAPACITY * CHOSEN > EXPERTS),
        message="capacity_factor {moe_config.capacity_factor} with {moe_config.num_experts_chosen} of "
        "{moe_config.expert_num} experts per token gives each expert more room than there are tokens",
        why="the room is filled with zeros that are computed and communicated; the decimal point may be missing",
        severity=Severity.WARNING,
        at=(CAPACITY,),
        upstream="mindformers/modules/transformer/moe.py",
    ),
    refuse(
        "norm-epsilon-too-large",
        all_of(training, any_of(*(epsilon >= 1e-4 for epsilon in EPSILON))),
        message="the epsilon of the norms is {epsilon}, but usual values are 1e-5 and 1e-6; a digit of the "
        "exponent may be missing",
        why="epsilon is added to the mean square, so a large value shrinks every activation",
        severity=Severity.WARNING,
        shows={"epsilon": EPSILON},
        at=EPSILON,
        upstream="https://arxiv.org/abs/1910.07467",
    ),
    refuse(
        "special-token-beyond-vocabulary",
        all_of(training, any_of(*(token >= VOCABULARY for token in ENDS))),
        message="vocab_size is {model.model_config.vocab_size}, but the config has special tokens beyond it: "
        "bos {model.model_config.bos_token_id}, eos {model.model_config.eos_token_id}, "
        "pad {model.model_config.pad_token_id}",
        why="the embedding has no row for these tokens, so a sample that contains them gets arbitrary values or crashes the step",
        severity=Severity.WARNING,
        at=(VOCABULARY,),
        upstream="mindformers/models/llama/llama_layer.py",
    ),
    refuse(
        "ignored-token-without-sign",
        all_of(training, any_of(IGNORED == 100, all_of(IGNORED < 0, IGNORED != -100))),
        message="ignore_token_id is {model.model_config.ignore_token_id}, but labels to ignore are -100",
        why="labels of -100 count in the loss as if they were tokens",
        severity=Severity.WARNING,
        at=(IGNORED,),
        fixes=(put(IGNORED, -100),),
        upstream="mindformers/models/llama/llama.py:658",
    ),
)
