"""Removed options, which Megatron still parses only to report that they were removed."""

from preflight.lint.constraint import REMOVE, Change, ConstraintSet, Repair, conflicts, drop, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

GONE = "the option exists only to report that it was removed, so " + REFUSED
MEGATRON = ConstraintSet("megatron", why=GONE)

MEGATRON.add(
    refuse(
        "xavier-initialisation",
        a.init_method_xavier_uniform,
        message=(
            "--init-method-xavier-uniform makes every run fail, because it is passed to the model's configuration "
            "under a name that was removed"
        ),
        why=(
            "TransformerConfig has no field scaled_init_method, so creating the config raises a TypeError, and "
            "the run fails at startup"
        ),
        fixes=(drop(a.init_method_xavier_uniform),),
        unless_framework="mindspeed",
    ),
    refuse(
        "old-batch-size",
        a.batch_size.is_set,
        message=(
            "--batch-size was removed; use --micro-batch-size, the number of samples that each rank processes at once"
        ),
        fixes=(Repair((Change(a.batch_size, REMOVE), Change(a.micro_batch_size, a.batch_size))),),
    ),
    refuse(
        "old-warmup",
        a.warmup.is_set,
        message="--warmup was removed; use --lr-warmup-fraction or --lr-warmup-iters",
        fixes=(drop(a.warmup),),
    ),
    refuse(
        "old-model-parallel-size",
        a.model_parallel_size.is_set,
        message="--model-parallel-size was removed; use --tensor-model-parallel-size",
        fixes=(
            Repair(
                (Change(a.model_parallel_size, REMOVE), Change(a.tensor_model_parallel_size, a.model_parallel_size))
            ),
        ),
    ),
    refuse(
        "old-checkpoint-activations",
        a.checkpoint_activations,
        message="--checkpoint-activations was removed; use --recompute-activations or --recompute-granularity",
        why="the run exits immediately, with exit code 0",
        fixes=(
            Repair(
                (
                    Change(a.checkpoint_activations, REMOVE),
                    Change(a.recompute_granularity, "full", True),
                    Change(a.recompute_method, "uniform", True),
                    Change(a.recompute_num_layers, 1, True),
                )
            ),
            Repair((Change(a.checkpoint_activations, REMOVE), Change(a.recompute_activations, True)), offered=True),
        ),
    ),
    refuse(
        "old-graph-flag-with-implementation",
        all_of(
            any_of(a.enable_cuda_graph, a.external_cuda_graph),
            a.cuda_graph_impl.written.is_set,
            a.cuda_graph_impl.written != "none",
        ),
        message=(
            "--enable-cuda-graph and --external-cuda-graph are older names of --cuda-graph-impl, which is also given"
        ),
        why=REFUSED,
        at=(a.enable_cuda_graph, a.external_cuda_graph, a.cuda_graph_impl),
        fixes=(drop(a.enable_cuda_graph, safety=Safety.SAFE), drop(a.external_cuda_graph, safety=Safety.SAFE)),
    ),
    conflicts(
        "old-graph-flags-together",
        a.enable_cuda_graph,
        a.external_cuda_graph,
        message=(
            "--enable-cuda-graph and --external-cuda-graph are both given, but they choose different implementations"
        ),
        why=REFUSED,
    ),
    conflicts(
        "old-graph-scope-with-modules",
        a.cuda_graph_scope_deprecated.is_set,
        a.cuda_graph_modules.given,
        message="--cuda-graph-scope is the older name of --cuda-graph-modules, but both are given",
        why=REFUSED,
        at=(a.cuda_graph_scope_deprecated, a.cuda_graph_modules),
        fixes=(drop(a.cuda_graph_scope_deprecated),),
    ),
    refuse(
        "old-no-position-embedding",
        all_of(~a.add_position_embedding, a.position_embedding_type != "rope"),
        message="--no-position-embedding was removed; use --position-embedding-type none",
        at=(a.add_position_embedding,),
        fixes=(drop(a.add_position_embedding),),
    ),
    refuse(
        "old-encoder-shards",
        all_of(
            a.encoder_tensor_model_parallel_size > 1, a.num_attention_heads % a.encoder_tensor_model_parallel_size != 0
        ),
        message=(
            "{num_attention_heads} heads are not divisible by the tensor-parallel size "
            "{encoder_tensor_model_parallel_size} of the encoder"
        ),
        why=REFUSED,
        at=(a.encoder_tensor_model_parallel_size,),
    ),
)
