"""Everyday slips in graph-mode configs: heads and experts that do not fit each other, a schedule that grows."""

from preflight.lint.expressions import all_of
from preflight.lint.shapes import ConstraintSet, divides, refuse
from preflight.rules.mindformers.names import a, legacy, mcore, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers")
heads, groups = a["model.model_config.num_heads"], a["model.model_config.n_kv_heads"]
core_experts, chosen = a["model.model_config.num_experts"], a["model.model_config.num_experts_per_tok"]
end, rate = a["lr_schedule.lr_end"], a["lr_schedule.learning_rate"]

MINDFORMERS.add(
    divides(
        "heads-over-key-value-heads",
        groups,
        heads,
        when=all_of(legacy, a["shape.family"] == "llama", groups > 0, heads > 0),
        message="{model.model_config.num_heads} attention heads do not divide into {model.model_config.n_kv_heads} key-value heads",
        why="every key-value head serves as many heads; attention refuses the sizes when the graph is compiled",
        upstream="mindformers/models/llama/llama_transformer.py:147",
        at=(groups, heads),
    ),
    refuse(
        "more-experts-per-token-than-experts",
        all_of(mcore, core_experts.written > 0, chosen.written > core_experts.written),
        message="every token goes to {model.model_config.num_experts_per_tok} experts, there are {model.model_config.num_experts}",
        why="the router takes the largest of fewer scores; the first step dies",
        upstream="mindformers/parallel_core/training_graph/transformer/moe/router.py:90",
        at=(chosen, core_experts),
    ),
    refuse(
        "learning-rate-ends-higher",
        all_of(training, a["lr_schedule.type"].is_in("CosineWithWarmUpLR", "LinearWithWarmUpLR", "PolynomialWithWarmUpLR"), end > rate),
        message="the schedule ends at lr_end {lr_schedule.lr_end}, above learning_rate {lr_schedule.learning_rate}: it grows after the warm-up",
        why="the schedule decays towards lr_end; nothing refuses one that is higher",
        severity=Severity.WARNING,
        at=(end, rate),
    ),
)
