"""Requirements of the Muon optimizer in graph mode."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of
from preflight.rules.mindformers.shared_conditions import a, automatic, data, legacy, mcore, training

MINDFORMERS = ConstraintSet("mindformers", why="the optimizer rejects these settings")
muon = all_of(training, a["optimizer.type"] == "Muon")
shard = a["parallel.parallel_optimizer_config.optimizer_weight_shard_size"]
sharded = all_of(muon, mcore, automatic, a["use_parallel"], a["parallel.enable_parallel_optimizer"])

MINDFORMERS.add(
    refuse(
        "muon-swap",
        all_of(muon, a["optimizer.swap"]),
        message="Muon does not support swap",
        at=(a["optimizer.swap"], a["optimizer.type"]),
        fixes=(put(a["optimizer.swap"], False),),
    ),
    refuse(
        "muon-legacy",
        all_of(muon, legacy),
        message="Muon works only with mcore networks, which need use_legacy False",
        why="the optimizer needs the transformer configuration of the network",
        at=(a["optimizer.type"], a["use_legacy"]),
    ),
    refuse(
        "muon-latent",
        all_of(muon, mcore, ~a["mcore.multi_latent_attention"]),
        message="Muon needs a network with multi_latent_attention",
        why="the optimizer does not support other kinds of attention",
        at=(a["optimizer.type"], a["mcore.multi_latent_attention"]),
    ),
    refuse(
        "muon-shard-size",
        all_of(sharded, shard.is_none),
        message="Muon with enable_parallel_optimizer needs parallel_optimizer_config.optimizer_weight_shard_size",
        why="the optimizer rejects the default of -1",
        at=(a["parallel.enable_parallel_optimizer"],),
    ),
    refuse(
        "muon-shard-data",
        all_of(sharded, shard > data),
        message=(
            "optimizer_weight_shard_size {parallel.parallel_optimizer_config.optimizer_weight_shard_size} is more than "
            "data_parallel {parallel_config.data_parallel}, which Muon does not support"
        ),
        at=(shard, data),
    ),
)
