"""Sizes of the network and its vocabulary that follow from others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.parsing import Parsed
from preflight.run.published_models import vocabularies
from preflight.run.training_plan import Bound
from preflight.source.resolved_words import Needed, Reason

IN_TOKENIZER = Reason("the vocabulary size is in the tokenizer's files", Needed.VOCABULARY)
TIKTOKEN = 2**17
"""The vocabulary size of TikTokenizer without --vocab-size
(megatron/core/tokenizers/text/libraries/tiktoken_tokenizer.py:24)."""

LLAMA_2 = 32000
SET = "give it with --set vocab_size=N"
_KINDS = {
    "BertWordPieceLowerCase": (21128, 119547),
    "BertWordPieceCase": (21128, 119547),
}
"""The range of published vocabularies of such tokenizers: BERT's from bert-base-chinese to
bert-base-multilingual-cased."""
_ANY = (1, 262_208)


def bound(run: Run) -> tuple[Bound, ...]:
    """The bounds of the rows of the embedding if their number is not stated."""
    try:
        kind, tensor = run.value("tokenizer_type"), int(run.tensor_model_parallel_size)
    except (NotKnown, TypeError, ValueError):
        return ()
    least, most = _KINDS.get(str(kind.raw), _ANY) if kind.known else _ANY
    rounded = -(-most // (128 * tensor)) * 128 * tensor if tensor > 0 else most
    return (Bound("model.vocab", least, rounded, SET),)


def published(run: Run) -> int:
    """The vocabulary of the tokenizer that the options name. Raises NotKnown for an unknown one."""
    for name in ("tokenizer_model", "tokenizer_name_or_path"):
        value = run.value(name)
        last = (
            "/".join(value.raw.lower().rstrip("/").split("/")[-2:])
            if value.known and isinstance(value.raw, str)
            else ""
        )
        for pattern, size in vocabularies() if last else ():
            if re.search(pattern, last):
                return size
        if run.tokenizer_type == "Llama2Tokenizer" and re.fullmatch(r"(\$[^/]*/)?tokenizer\.model", last):
            return LLAMA_2
    raise NotKnown(IN_TOKENIZER)


def tokenizer(parsed: Parsed, open_file: Callable[[str], bytes | None]) -> tuple[int, str] | None:
    """The vocabulary size in the tokenizer's files, and the file; None if it is not needed, or no file has it."""
    for name in ("tokenizer_model", "tokenizer_name_or_path") if "vocab_size" not in parsed.written else ():
        value = parsed.written.get(name)
        if value is not None and isinstance(value.raw, str) and value.raw:
            from preflight.dialects.tokenizer_vocabulary import vocabulary

            if (found := vocabulary(value.raw, open_file)) is not None:
                return found
    return None


def rows(run: Run) -> int:
    """Rows of the embedding as built: derived, otherwise from the tokenizer's files or the published vocabulary."""
    if run.value("padded_vocab_size").known or run.vocab_size is not None:
        found: int = run.padded_vocab_size
        return found
    if run.use_checkpoint_args:
        raise NotKnown("--use-checkpoint-args takes the value from the checkpoint")
    return padded(run, run.tokenizer_size or published(run))


def padded(run: Run, size: int) -> int:
    """A size rounded up so that it is divisible by the number of tensor-parallel ranks, unless padding is off."""
    multiple = 1 if run.pad_vocab_size is False else run.make_vocab_size_divisible_by * run.tensor_model_parallel_size
    return -(-size // multiple) * multiple


GPT2_VOCABULARY, GPT2_TOKENIZER = 50257, "GPT2BPETokenizer"
MOST_LAYERS = 100_000


@derives("ffn_hidden_size")
def ffn(run: Run) -> None:
    """Four times the hidden size, or two thirds of it in multiples of 64 where two projections share it."""
    if run.ffn_hidden_size is None:
        hidden = run.hidden_size
        size, note = (
            (int((4 * hidden * 2 / 3) / 64) * 64, "8/3 of the hidden size, rounded down to a multiple of 64")
            if run.swiglu
            else (4 * hidden, "4 × hidden")
        )
        run.derive("ffn_hidden_size", size, note, of="hidden_size")


@derives("kv_channels")
def kv_channels(run: Run) -> None:
    """Hidden size divided by heads unless set."""
    if run.kv_channels is None:
        hidden, heads = run.hidden_size, run.num_attention_heads
        if hidden % heads:
            raise NotKnown(f"hidden size {hidden} is not a multiple of {heads} heads")
        run.derive("kv_channels", hidden // heads, f"hidden {hidden} / {heads} heads", of="num_attention_heads")


@derives("num_query_groups")
def query_groups(run: Run) -> None:
    """--num-query-groups only has an effect with --group-query-attention."""
    if not run.group_query_attention:
        heads, given = run.num_attention_heads, run.value("num_query_groups")
        run.derive(
            "num_query_groups",
            heads,
            "equal to the number of heads",
            of="num_query_groups" if given.written else "num_attention_heads",
        )


@derives("num_experts")
def experts(run: Run) -> None:
    """0 experts means no experts."""
    if run.num_experts == 0:
        run.derive("num_experts", None, "0 experts means no experts")


@derives("moe_ffn_hidden_size")
def expert_ffn(run: Run) -> None:
    """Experts are as wide as the dense layers unless their size is set."""
    if run.moe_ffn_hidden_size is None and (run.num_experts is not None or run.is_core("<0.13")):
        run.derive("moe_ffn_hidden_size", run.ffn_hidden_size, "ffn hidden size", of="ffn_hidden_size")
    elif (
        run.moe_ffn_hidden_size is not None
        and run.num_experts is None
        and _mixed(run.moe_layer_freq)
        and run.is_core(">=0.18")
    ):
        run.derive("moe_ffn_hidden_size", None, "there are no experts")


def _mixed(frequency: object) -> bool:
    return 0 in frequency if isinstance(frequency, list) else isinstance(frequency, int) and frequency > 1


@derives("moe_layer_pattern")
def expert_layers(run: Run) -> None:
    """The layers that are mixtures of experts."""
    if run.num_experts is None:
        run.derive("moe_layer_pattern", None, "no experts")
        return
    frequency, layers = run.moe_layer_freq, run.num_layers
    if layers > MOST_LAYERS:
        raise NotKnown(f"{layers} layers are more than supported")
    pattern = _pattern(frequency, layers)
    dense = run.first_k_dense_replace
    if dense is not None:
        every = frequency if isinstance(frequency, int) and frequency > 0 else 1
        pattern = tuple(index >= dense and index % every == 0 for index in range(layers))
    run.derive("moe_layer_pattern", pattern, of="moe_layer_freq")


def _pattern(frequency: int | Sequence[int] | None, layers: int) -> tuple[bool, ...]:
    if isinstance(frequency, (list, tuple)):
        if len(frequency) != layers:
            raise NotKnown(f"the layer pattern has {len(frequency)} entries for {layers} layers")
        return tuple(bool(entry) for entry in frequency)
    if frequency is None or frequency == -1:
        return (True,) * layers
    assert isinstance(frequency, int)
    return tuple(index % frequency == 0 for index in range(layers))


@derives("padded_vocab_size")
def vocabulary(run: Run) -> None:
    """Rows of the embedding: the vocabulary rounded up so that it is divisible by the number of tensor-parallel
    ranks."""
    if run.padded_vocab_size is not None:
        return
    size = run.vocab_size
    if size is None and (run.tokenizer_type or GPT2_TOKENIZER) == GPT2_TOKENIZER:
        size = GPT2_VOCABULARY
    if size is None and run.tokenizer_type == "TikTokenizer":
        size = TIKTOKEN
    if size is None:
        raise NotKnown(IN_TOKENIZER)
    if run.tokenizer_type == "NullTokenizer" and run.is_core("<0.17"):
        size += 1
    of = "vocab_size"
    if run.pad_vocab_size is False:
        run.derive("padded_vocab_size", size, "not padded", of=of)
        return
    multiple = run.make_vocab_size_divisible_by * run.tensor_model_parallel_size
    run.derive(
        "padded_vocab_size", -(-size // multiple) * multiple, f"{size}, rounded up to a multiple of {multiple}", of=of
    )


@derives("encoder_seq_length")
def encoder_sequence(run: Run) -> None:
    """--seq-length also applies to the encoder."""
    if run.seq_length is not None and run.encoder_seq_length is None:
        run.derive("encoder_seq_length", run.seq_length, of="seq_length")


@derives("seq_length")
def sequence(run: Run) -> None:
    """--encoder-seq-length is another name for --seq-length."""
    if run.seq_length is None and run.encoder_seq_length is not None:
        run.derive("seq_length", run.encoder_seq_length, of="encoder_seq_length")


@derives("mtp_position_embedding_type")
def prediction_positions(run: Run) -> None:
    """The positions that the check of multi-token prediction reads: since 0.17 those set by the user, before that with
    --use-rotary-position-embeddings (core_v0.16.0 arguments.py:990, :1232; core_v0.17.0 :732, :1276)."""
    rotary = run.use_rotary_position_embeddings and run.is_core("<0.17")
    run.derive("mtp_position_embedding_type", "rope" if rotary else run.position_embedding_type)


@derives("gated_linear_unit", "activation_func")
def activation(run: Run) -> None:
    """The activation of the MLP, and whether a second projection gates it."""
    if run.gelu_tanh:
        function, of = "gelu_tanh", "gelu_tanh"
    elif run.swiglu:
        function, of = "silu", "swiglu"
    elif run.squared_relu:
        function, of = "squared_relu", "squared_relu"
    elif run.quick_geglu:
        function, of = "quick_gelu", "quick_geglu"
    elif run.geglu:
        function, of = "gelu", "geglu"
    else:
        function, of = "gelu", "activation_func"
    run.derive("activation_func", function, of=of)
    gated = of in ("swiglu", "quick_geglu", "geglu", "gelu_tanh") and run.fc_type != "up_down"
    run.derive("gated_linear_unit", gated, of=of)


STEPS = (
    ffn,
    kv_channels,
    query_groups,
    experts,
    expert_ffn,
    expert_layers,
    vocabulary,
    encoder_sequence,
    sequence,
    prediction_positions,
    activation,
)
