"""Sizes that are not divisible by the tensor-parallel size, which no validator catches and which make the model build
fail."""

from preflight.lint.constraint import ConstraintSet, divides, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of, moe

DIED = "no earlier check catches this, so a layer rejects these sizes when the model is built"
MEGATRON = ConstraintSet("megatron", why=DIED)
LAYERS = "megatron/core/tensor_parallel/layers.py"
TENSOR = a.tensor_model_parallel_size
PLAIN = ~a.tp_2d  # MindSpeed splits differently with this option
DENSE = any_of(
    all_of(a.hybrid_layer_pattern.is_none, any_of(a.num_experts.is_none, a.moe_layer_pattern.has(False))),
    a.hybrid_layer_pattern.has("-"),
)
MAMBA = a.hybrid_layer_pattern.has("M")
INNER = 2 * a.hidden_size
HEADS_GIVEN = a.mamba_num_heads.is_set
WRONG_TENSOR = ("device-count", "heads-not-divisible")  # a wrong tensor parallel size is a single mistake

MEGATRON.add(
    divides(
        "ffn-over-tensor",
        TENSOR,
        a.ffn_hidden_size,
        when=all_of(DENSE, TENSOR > 1),
        message=(
            "a feed-forward width of {ffn_hidden_size} is not divisible by the tensor-parallel size "
            "{tensor_model_parallel_size}"
        ),
        at=(a.ffn_hidden_size, a.hidden_size, TENSOR),
        after=WRONG_TENSOR,
        unless_framework="mindspeed",
        layout=True,
    ),
    divides(
        "expert-ffn-over-tensor",
        a.expert_tensor_parallel_size,
        a.moe_ffn_hidden_size,
        when=all_of(moe, a.expert_tensor_parallel_size > 1),
        message=(
            "an expert width of {moe_ffn_hidden_size} is not divisible by the expert-tensor-parallel size "
            "{expert_tensor_parallel_size}"
        ),
        at=(a.moe_ffn_hidden_size, a.ffn_hidden_size, a.expert_tensor_parallel_size, TENSOR),
        unless_framework="mindspeed",
        after=(*WRONG_TENSOR, "expert-grid"),
        layout=True,
    ),
    divides(
        "shared-expert-ffn-over-tensor",
        TENSOR,
        a.moe_shared_expert_intermediate_size,
        when=all_of(moe, TENSOR > 1, a.moe_shared_expert_intermediate_size > 0),
        message=(
            "a shared expert width of {moe_shared_expert_intermediate_size} is not divisible by the tensor-parallel "
            "size {tensor_model_parallel_size}"
        ),
        at=(a.moe_shared_expert_intermediate_size, TENSOR),
        unless_framework="mindspeed",
        after=WRONG_TENSOR,
        layout=True,
    ),
    divides(
        "vocabulary-over-tensor",
        TENSOR,
        a.padded_vocab_size,
        when=all_of(
            PLAIN,
            TENSOR > 1,
            a.padded_vocab_size > 0,
            any_of(a.vocab_size.given, a.padded_vocab_size.given, a.vocab_file.is_none),
        ),
        message=(
            "a vocabulary of {padded_vocab_size} rows is not divisible by the tensor-parallel size "
            "{tensor_model_parallel_size}"
        ),
        why="no earlier check catches this, so the embedding rejects the size when the model is built",
        at=(a.padded_vocab_size, a.vocab_size, TENSOR),
        after=WRONG_TENSOR,
        layout=True,
    ),
    divides(
        "mamba-inner-over-head",
        a.mamba_head_dim,
        INNER,
        when=all_of(MAMBA, ~HEADS_GIVEN),
        message=(
            "the Mamba width {inner}, twice the hidden size, is not a multiple of --mamba-head-dim {mamba_head_dim}"
        ),
        shows={"inner": INNER},
        at=(a.mamba_head_dim, a.hidden_size),
    ),
    refuse(
        "mamba-heads-not-positive",
        all_of(
            MAMBA,
            any_of(a.mamba_num_heads <= 0, a.mamba_head_dim <= 0, a.mamba_num_groups <= 0, a.mamba_state_dim <= 0),
        ),
        message="Mamba layers need heads, a head width, groups and a state of at least 1",
        at=(a.mamba_num_heads, a.mamba_head_dim, a.mamba_num_groups, a.mamba_state_dim),
    ),
    refuse(
        "mamba-heads-over-tensor",
        all_of(
            MAMBA,
            any_of(
                all_of(HEADS_GIVEN, a.mamba_num_heads % TENSOR != 0),
                all_of(~HEADS_GIVEN, INNER % a.mamba_head_dim == 0, (INNER // a.mamba_head_dim) % TENSOR != 0),
            ),
        ),
        message="the Mamba heads are not divisible by the tensor-parallel size {tensor_model_parallel_size}",
        at=(a.mamba_num_heads, a.mamba_head_dim, a.hidden_size, TENSOR),
        after=WRONG_TENSOR,
        layout=True,
    ),
    divides(
        "mamba-groups-over-tensor",
        TENSOR,
        a.mamba_num_groups,
        when=MAMBA,
        message=(
            "{mamba_num_groups} Mamba groups are not divisible by the tensor-parallel size {tensor_model_parallel_size}"
        ),
        at=(a.mamba_num_groups, TENSOR),
        after=WRONG_TENSOR,
        layout=True,
    ),
    refuse(
        "mamba-heads-over-groups",
        all_of(
            MAMBA,
            any_of(
                all_of(HEADS_GIVEN, a.mamba_num_heads % a.mamba_num_groups != 0),
                all_of(
                    ~HEADS_GIVEN, INNER % a.mamba_head_dim == 0, (INNER // a.mamba_head_dim) % a.mamba_num_groups != 0
                ),
            ),
        ),
        message="the Mamba heads are not divisible by {mamba_num_groups} groups",
        at=(a.mamba_num_groups, a.mamba_num_heads, a.mamba_head_dim),
    ),
    refuse(
        "mamba-width-for-fp8",
        all_of(
            MAMBA,
            a.fp8.is_set,
            any_of(
                all_of(
                    HEADS_GIVEN,
                    (
                        2 * a.mamba_num_heads * a.mamba_head_dim
                        + 2 * a.mamba_num_groups * a.mamba_state_dim
                        + a.mamba_num_heads
                    )
                    % 16
                    != 0,
                ),
                all_of(
                    ~HEADS_GIVEN,
                    (2 * INNER + 2 * a.mamba_num_groups * a.mamba_state_dim + INNER // a.mamba_head_dim) % 16 != 0,
                ),
            ),
        ),
        message="the input projection width of the Mamba layers is not a multiple of 16, as fp8 requires",
        at=(a.fp8, a.mamba_num_heads, a.mamba_head_dim),
    ),
)
