"""Environment variables that determine whether a run starts."""

from preflight.lint.constraint import Change, ConstraintSet, Repair, drop, put, refuse
from preflight.lint.expressions import Expression
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, env, weights_sharded

ORDER = "without this setting, sequence-parallel kernels may run in the wrong order and lose the overlap, so " + REFUSED
MEGATRON = ConstraintSet("megatron", why=ORDER)
DETERMINISTIC = a.deterministic_mode
CONNECTIONS = env("CUDA_DEVICE_MAX_CONNECTIONS")
ATTENTION = env("NVTE_ALLOW_NONDETERMINISTIC_ALGO")
CUBLAS = env("CUBLAS_WORKSPACE_CONFIG")
MAMBA, CONVOLUTION = env("MAMBA_DETERMINISTIC"), env("CAUSAL_CONV1D_DETERMINISTIC")
FLASH, FUSED, UNFUSED = env("NVTE_FLASH_ATTN"), env("NVTE_FUSED_ATTN"), env("NVTE_UNFUSED_ATTN")
BACKEND = a.attention_backend


def expects(chosen: Expression, flash: str, fused: str, unfused: str) -> Expression:
    """At least one of the variables has a different value from the one that the chosen backend sets."""
    wanted = zip((FLASH, FUSED, UNFUSED), (flash, fused, unfused), strict=True)
    return all_of(chosen, any_of(*(all_of(name.is_set, name != value) for name, value in wanted)))


SEGMENTS = env("PYTORCH_CUDA_ALLOC_CONF").has("expandable_segments:True")

MEGATRON.add(
    refuse(
        "one-connection-missing",
        all_of(
            any_of(a.tensor_model_parallel_size > 1, a.context_parallel_size > 1),
            a.device_architecture < 10,
            a.device_architecture != 0,
            ~any_of(a.use_torch_fsdp2, a.use_megatron_fsdp, a.use_custom_fsdp, a.overlap_moe_expert_parallel_comm),
            CONNECTIONS != "1",
        ),
        message="a tensor-parallel size of {tensor_model_parallel_size} and a context-parallel size of "
        "{context_parallel_size} need CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment",
        at=(a.tensor_model_parallel_size, a.context_parallel_size),
        fixes=(put(CONNECTIONS, 1),),
    ),
    refuse(
        "connection-variable-missing",
        all_of(a.tensor_model_parallel_size > 1, ~any_of(a.use_torch_fsdp2, a.use_custom_fsdp), CONNECTIONS != "1"),
        message=(
            "a tensor-parallel size of {tensor_model_parallel_size} needs CUDA_DEVICE_MAX_CONNECTIONS=1 in the "
            "environment"
        ),
        at=(a.tensor_model_parallel_size, a.context_parallel_size),
        fixes=(put(CONNECTIONS, 1),),
    ),
    refuse(
        "attention-variables",
        all_of(
            a.entry.is_in("pretrain_gpt.py", "pretrain_mamba.py", "pretrain_hybrid.py"),
            ~a.use_legacy_models,
            any_of(BACKEND.given, a.target_is_stated),  # releases before 0.11 have neither the option nor the check
            any_of(
                expects(BACKEND == "auto", "1", "1", "1"),
                expects(BACKEND == "flash", "1", "0", "0"),
                expects(BACKEND == "fused", "0", "1", "0"),
                expects(BACKEND == "unfused", "0", "0", "1"),
                expects(BACKEND == "local", "0", "0", "0"),
            ),
        ),
        message="--attention-backend {attention_backend} does not accept the values of NVTE_FLASH_ATTN, NVTE_FUSED_ATTN and "
        "NVTE_UNFUSED_ATTN in the environment",
        why=(
            "when the model is built, an assertion compares the variables with the values that the backend sets. "
            "Leave the variables unset"
        ),
        upstream="megatron/core/models/common/language_module/language_module.py:118",
        at=(BACKEND,),
        unless_framework="mindspeed",
    ),
    refuse(
        "nondeterministic-libraries",
        all_of(
            DETERMINISTIC,
            any_of(
                all_of(ATTENTION.is_set, ATTENTION != "0"), all_of(CUBLAS.is_set, ~CUBLAS.is_in(":4096:8", ":16:8"))
            ),
        ),
        message=(
            "--deterministic-mode needs NVTE_ALLOW_NONDETERMINISTIC_ALGO to be 0 or unset, and "
            "CUBLAS_WORKSPACE_CONFIG to be :4096:8, :16:8 or unset"
        ),
        why=REFUSED,
        at=(DETERMINISTIC,),
        fixes=(put(ATTENTION, 0), put(CUBLAS, ":4096:8"), Repair((Change(ATTENTION, 0), Change(CUBLAS, ":4096:8")))),
    ),
    refuse(
        "nondeterministic-attention",
        all_of(
            DETERMINISTIC,
            a.transformer_impl == "transformer_engine",
            BACKEND != "local",
            a.entry.is_in("pretrain_gpt.py", "pretrain_bert.py", "pretrain_t5.py"),
            a.spec.is_none,
            ~a.use_legacy_models,
            ATTENTION.is_set,
            ATTENTION != "0",
        ),
        message="--deterministic-mode needs NVTE_ALLOW_NONDETERMINISTIC_ALGO 0, but it is {attention}",
        why="creating the attention of Transformer Engine fails when the model is built",
        shows={"attention": ATTENTION},
        at=(DETERMINISTIC,),
        fixes=(put(ATTENTION, 0),),
        upstream="megatron/core/extensions/transformer_engine.py",
        after=("megatron/nondeterministic-libraries",),
        unless_framework="mindspeed",
    ),
    refuse(
        "nondeterministic-mamba",
        all_of(
            DETERMINISTIC,
            any_of(
                all_of(MAMBA.is_set, MAMBA.length > 0, ~MAMBA.starts_with("1")),
                all_of(CONVOLUTION.is_set, CONVOLUTION.length > 0, ~CONVOLUTION.starts_with("1")),
            ),
        ),
        message="--deterministic-mode needs MAMBA_DETERMINISTIC and CAUSAL_CONV1D_DETERMINISTIC to be 1 or unset",
        why=REFUSED,
        at=(DETERMINISTIC,),
        fixes=(put(MAMBA, 1), put(CONVOLUTION, 1), Repair((Change(MAMBA, 1), Change(CONVOLUTION, 1)))),
    ),
    refuse(
        "nondeterministic-features",
        all_of(DETERMINISTIC, a.tp_comm_overlap),
        message="--deterministic-mode does not work with --tp-comm-overlap",
        why="deterministic mode does not switch off the overlap automatically, so " + REFUSED,
        at=(a.tp_comm_overlap, DETERMINISTIC),
        fixes=(drop(a.tp_comm_overlap), drop(DETERMINISTIC)),
    ),
    refuse(
        "deterministic-with-flash",
        all_of(DETERMINISTIC, a.use_flash_attn),
        message="--deterministic-mode does not work with --use-flash-attn",
        why=REFUSED,
        at=(a.use_flash_attn, DETERMINISTIC),
        fixes=(drop(a.use_flash_attn),),
        unless_framework="mindspeed",
    ),
    refuse(
        "graph-priority-with-weight-shards",
        all_of(
            weights_sharded,
            a.device_architecture >= 10,
            a.cuda_graph_impl != "none",
            env("CUDA_GRAPHS_USE_NODE_PRIORITY") != "1",
        ),
        message="sharded weights with CUDA graphs need CUDA_GRAPHS_USE_NODE_PRIORITY=1 on this device",
        why="communication inside the graph would not be overlapped, so " + REFUSED,
        at=(a.cuda_graph_impl, a.tensor_parallel_num_weight_shards, a.expert_tensor_parallel_num_weight_shards),
        fixes=(put(env("CUDA_GRAPHS_USE_NODE_PRIORITY"), 1),),
    ),
    refuse(
        "activation-offload-variable",
        all_of(
            a.fine_grained_activation_offloading,
            a.transformer_impl == "transformer_engine",
            env("NVTE_CPU_OFFLOAD_V1") != "1",
        ),
        message=(
            "--fine-grained-activation-offloading needs NVTE_CPU_OFFLOAD_V1=1 with Transformer Engine 2.10 and newer"
        ),
        why="without the variable, the weights would be offloaded as well, so " + REFUSED,
        at=(a.fine_grained_activation_offloading,),
        fixes=(put(env("NVTE_CPU_OFFLOAD_V1"), 1), drop(a.fine_grained_activation_offloading)),
    ),
    refuse(
        "graph-with-expandable-segments",
        all_of(a.cuda_graph_impl == "transformer_engine", SEGMENTS, env("NCCL_GRAPH_REGISTER") != "0"),
        message="CUDA graphs with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True need NCCL_GRAPH_REGISTER=0",
        why="registered buffers would be moved, so " + REFUSED,
        at=(a.cuda_graph_impl,),
        fixes=(put(env("NCCL_GRAPH_REGISTER"), 0),),
    ),
    refuse(
        "connections-not-one",
        all_of(any_of(a.sequence_parallel, a.async_tensor_model_parallel_allreduce), CONNECTIONS != "1"),
        message="this release needs CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment of every run",
        fixes=(put(CONNECTIONS, 1),),
        unless_framework="mindspeed",
        always=True,
    ),
    refuse(
        "user-buffers-with-expandable-segments",
        all_of(a.nccl_ub, SEGMENTS),
        message="--use-nccl-ub does not work with expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF",
        why="buffers registered with NCCL must not be moved, so " + REFUSED,
        at=(a.nccl_ub,),
        fixes=(drop(a.nccl_ub),),
    ),
)
