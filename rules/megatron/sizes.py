"""Checks of the sizes of the network and its sequences."""

from preflight.lint.constraint import ConstraintSet, conflicts, divides, drop, put, refuse
from preflight.lint.expressions import nearest_divisor, other_divisor, two_divisors, where
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of

MEGATRON = ConstraintSet("megatron", why=REFUSED)
OVER_HEADS = (a.hidden_size, a.num_attention_heads, a.tensor_model_parallel_size)
WIDTH = a.hidden_size // a.num_attention_heads
NARROW = a.hidden_size < 16 * a.num_attention_heads
"""No published model has heads narrower than 16: there is probably an extra digit."""
WIDTHS = a.num_attention_heads * 64
HIDDEN_IS_ODD = all_of(
    a.hidden_size.given, a.hidden_size % 64 != 0, a.num_attention_heads % 4 == 0, a.num_attention_heads > 0
)
"""Hidden sizes are multiples of 64, and numbers of heads are multiples of 4: a number that breaks this pattern is the typo."""
OWN_WIDTH = all_of(
    *(a.hidden_size % 256 == 0, any_of(a.hidden_size % 3 == 0, a.hidden_size % 5 == 0)),
    *(a.num_attention_heads % 8 == 0, WIDTH > 90, WIDTH <= 256),
)
"""Both sizes are round numbers, and a head is about as wide as in published models: only its width is missing. A hidden
size that is a power of 2 has such heads as well."""
VOCABULARY = "megatron/training/vocab_utils.py"

MEGATRON.add(
    conflicts(
        "layers-twice",
        any_of(a.num_layers.given, a.hybrid_layer_pattern.given),
        a.encoder_num_layers.given,
        message="--encoder-num-layers sets the number of layers, which is already given; remove it",
        at=(a.encoder_num_layers, a.num_layers, a.hybrid_layer_pattern),
        fixes=(drop(a.encoder_num_layers),),
    ),
    refuse(
        "hidden-over-heads",
        all_of(
            a.kv_channels.written.is_none,
            any_of(a.num_attention_heads == 0, a.hidden_size % a.num_attention_heads != 0),
        ),
        message=(
            "a hidden size of {hidden_size} is not divisible by {num_attention_heads} heads, and "
            "--kv-channels, the width of a head, is not given"
        ),
        at=(a.hidden_size, a.num_attention_heads),
        fixes=(
            put(a.hidden_size, where(HIDDEN_IS_ODD, (a.hidden_size + WIDTHS // 2) // WIDTHS * WIDTHS), offered=True),
            put(
                a.num_attention_heads,
                where(all_of(~HIDDEN_IS_ODD, ~OWN_WIDTH), nearest_divisor(*OVER_HEADS)),
                offered=any_of(two_divisors(*OVER_HEADS), NARROW),
            ),
            put(
                a.num_attention_heads,
                where(all_of(~HIDDEN_IS_ODD, ~OWN_WIDTH), other_divisor(*OVER_HEADS)),
                offered=True,
            ),
            put(a.kv_channels, where(all_of(OWN_WIDTH, WIDTH > 181), 256), offered=True),
            put(a.kv_channels, where(all_of(OWN_WIDTH, WIDTH <= 181), 128), offered=True),
            put(a.kv_channels, where(all_of(~HIDDEN_IS_ODD, ~OWN_WIDTH, WIDTH % 8 == 0), WIDTH), offered=True),
        ),
    ),
    divides(
        "sequence-over-context-parallel",
        2 * a.context_parallel_size,
        a.seq_length,
        when=all_of(a.seq_length.given, a.context_parallel_size > 1),
        message=(
            "a sequence of {seq_length} is not a multiple of twice the context-parallel size {context_parallel_size}"
        ),
        why="every rank must get one chunk from the start of the sequence and one from its end, so " + REFUSED,
        at=(a.seq_length, a.context_parallel_size),
        layout=True,
    ),
    conflicts(
        "sequence-length-twice",
        a.seq_length.given,
        a.encoder_seq_length.given,
        message="--seq-length and --encoder-seq-length set the same number; give only one of them",
        at=(a.encoder_seq_length, a.seq_length),
        fixes=(drop(a.encoder_seq_length),),
    ),
    refuse(
        "positions-below-sequence",
        all_of(a.seq_length.is_set, a.max_position_embeddings < a.seq_length),
        message=(
            "--max-position-embeddings {max_position_embeddings} must be at least the sequence length {seq_length}"
        ),
        at=(a.max_position_embeddings, a.seq_length, a.encoder_seq_length),
        fixes=(put(a.max_position_embeddings, a.seq_length, offered=a.seq_length == 10 * a.max_position_embeddings),),
    ),
    refuse(
        "positions-below-decoder-sequence",
        all_of(a.decoder_seq_length.is_set, a.max_position_embeddings < a.decoder_seq_length),
        message=(
            "--max-position-embeddings {max_position_embeddings} must be at least the decoder's sequence length "
            "{decoder_seq_length}"
        ),
        at=(a.max_position_embeddings, a.decoder_seq_length),
        fixes=(put(a.max_position_embeddings, a.decoder_seq_length),),
    ),
    refuse(
        "vocabulary-not-positive",
        all_of(a.vocab_size.is_set, a.vocab_size <= 0, a.entry_is_known),
        message="--vocab-size is {vocab_size}; it must be at least 1",
        why="the vocabulary cannot be padded, so the run stops when the tokenizer is created",
        at=(a.vocab_size,),
    ),
    refuse(
        "vocabulary-multiple-not-positive",
        a.make_vocab_size_divisible_by <= 0,
        message="--make-vocab-size-divisible-by is {make_vocab_size_divisible_by}; it must be at least 1",
        why="the vocabulary cannot be padded, so the run stops when the tokenizer is created",
        fixes=(drop(a.make_vocab_size_divisible_by),),
    ),
)
