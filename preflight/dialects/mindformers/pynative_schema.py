"""The pynative schema applied to a document, and the settings of a network that must hold a number or a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from preflight import schemas
from preflight.lint.value_kinds import LIST, MAPPING, NULL, SWITCH, TEXT, Number, ValueKind, whole
from preflight.loaders.document import Entry, Node
from preflight.source.finding import Key
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

_CONFIG = "mindformers/pynative/config/config.py"
VERSION = "2.1.0"
"""The release of the schema."""
UPSTREAM = f"{_CONFIG}:115"
"""Where a section refuses an unknown key."""
_CHECK = "mindformers/pynative/config/utils.py"
_SCALARS = {"boolean": 98, "integer": 103, "number": 108, "string": 113}
_KINDS: Mapping[str, ValueKind] = {
    "object": MAPPING,
    "array": LIST,
    "boolean": SWITCH.worded("true or false"),
    "integer": whole().worded("an integer"),
    "number": Number(),
    "string": TEXT,
    "null": NULL,
}
"""The types of JSON Schema as the framework distinguishes them: a bool is not an integer, an integer is a number."""
_COMPARED = frozenset(  # compared while the section is created, before types are checked
    {
        ("training", "global_batch_size"),
        ("training", "local_batch_size"),
        ("training", "max_consecutive_skipped_steps"),
        ("parallelism", "tensor_parallel"),
        ("profiler", "start_step"),
        ("profiler", "end_step"),
        ("lora_config", "lora_rank"),
        ("lora_config", "lora_alpha"),
        ("lora_config", "lora_dropout"),
        ("inference", "max_new_tokens"),
        ("inference", "batch_size"),
    }
)


class Fault(NamedTuple):
    """One violation of the schema. kind: unknown, type or missing. choices: the known names. accepted: the allowed
    types, if the type is wrong.
    """

    kind: str
    key: Key
    node: Node
    wanted: str
    upstream: str
    choices: tuple[str, ...] = ()
    accepted: tuple[ValueKind, ...] = ()


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON Schema of the dialect."""
    loaded: dict[str, Any] = schemas.read("mindformers/pynative")
    return loaded


@lru_cache(maxsize=1)
def defaults() -> dict[str, Any]:
    """Dotted name → default, for every field with one."""
    found: dict[str, Any] = {}

    def walk(part: dict[str, Any], prefix: str) -> None:
        for name, field in part.get("properties", {}).items():
            if "default" in field:
                found[prefix + name] = field["default"]
            walk(field, f"{prefix}{name}.")

    walk(schema(), "")
    return found


def faults(tree: Node) -> Iterator[Fault]:
    """All violations of the schema in a document, in reading order."""
    yield from _object(tree, schema(), ())


def _object(node: Node, part: dict[str, Any], key: Key) -> Iterator[Fault]:
    fields: dict[str, Any] = part.get("properties", {})
    present = set()
    for entry in node.entries:
        if entry.shadowed:
            continue
        name = entry.key.value
        present.add(name)
        if isinstance(name, str) and name in fields:
            yield from _value(entry.value, fields[name], (*key, name))
        elif part.get("additionalProperties") is False:
            yield Fault("unknown", (*key, str(name)), entry.key, "", UPSTREAM, tuple(fields))
    for name in part.get("required", ()):
        if name not in present and "properties" not in fields[name]:
            yield Fault("missing", (*key, name), node, name, f"{_CHECK}:33")
        elif name not in present:
            inner = fields[name].get("required", ("",))[0]
            yield Fault("missing", (*key, name), node, f"{name} (with {inner})" if inner else name, f"{_CHECK}:33")


def _value(node: Node, part: dict[str, Any], key: Key) -> Iterator[Fault]:
    wanted = part.get("type")
    if wanted is None:
        return
    kinds = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    here = [kind for kind in kinds if _KINDS[kind].takes(_held(node))]
    if not here:
        accepted = tuple(_KINDS[kind] for kind in kinds)
        words = " or ".join(kind.words for kind in accepted)
        yield Fault("type", key, node, words, _place(node, kinds, key), accepted=accepted)
    elif "object" in here:
        yield from _object(node, part, key)
    elif "array" in here and "items" in part:
        found = [fault for index, item in enumerate(node.items) for fault in _value(item, part["items"], (*key, index))]
        union = len(kinds) > 1 and bool(found)
        yield from (fault._replace(upstream=f"{_CHECK}:68") if union else fault for fault in found)


def _held(node: Node) -> object:
    """The type of a node's contents: mappings and lists without their entries."""
    return {} if node.kind == "mapping" else [] if node.kind == "sequence" else node.value


def _place(node: Node, kinds: tuple[str, ...], key: Key) -> str:
    """The line that refuses a type."""
    if key in _COMPARED and not isinstance(node.value, (bool, int, float)):
        return f"{_CONFIG}:110"
    if len(kinds) > 1:
        return f"{_CHECK}:{87 if 'object' in kinds else 68}"
    if node.value is None:
        return f"{_CHECK}:33"
    if kinds[0] == "object" and isinstance(key[-1], str):
        return f"{_CHECK}:87"
    return f"{_CHECK}:{_SCALARS.get(kinds[0], 76 if kinds[0] == 'array' else 87)}"


def strangers(tree: Node) -> Iterator[Entry]:
    """Unused top-level keys: the top level accepts every name."""
    known = schema()["properties"]
    for entry in tree.entries:
        if not entry.shadowed and entry.key.value not in known:
            yield entry


_TRANSFORMER_CONFIG = "mindformers/parallel_core/transformer_config.py"
_CONVERTED = "mindformers/parallel_core/transformer_config_utils.py:687"
_DEVIATION = "mindformers/parallel_core/utils/init_method.py:45"
_EMBEDDING = "mindformers/pynative/base_models/common/embeddings/vocab_embedding.py:57"
_ROTARY = "mindformers/pynative/base_models/common/embeddings/rotary_pos_embedding.py:60"
_YARN = "mindformers/pynative/base_models/common/embeddings/yarn_rotary_pos_embedding.py"
_LATENT = "mindformers/pynative/transformers/multi_latent_attention.py"
_LINEAR = "mindformers/pynative/layers/linear.py:85"

INTEGER, NUMBER, TYPE, NAME, SWITCH_OF_NETWORK = (
    "an integer",
    "a number",
    "the name of a type such as bfloat16",
    "a name",
    "true or false",
)


class Held(NamedTuple):
    """A field of the network and its required type. text, null: where upstream fails on a string, on null; "" if it
    does not.

    when: "" for every network, "plain" or "latent" attention, "rotary" or "yarn" (scaled) positions, "experts",
    "groups" of experts.
    """

    field: str
    wanted: str
    text: str = ""
    null: str = ""
    when: str = ""


HELD = (
    Held("hidden_size", INTEGER, _EMBEDDING, _EMBEDDING),
    Held("vocab_size", INTEGER, _EMBEDDING, _EMBEDDING),
    Held(
        "num_layers",
        INTEGER,
        "mindformers/models/qwen3/configuration_qwen3.py:221",
        "mindformers/models/qwen3/configuration_qwen3.py:221",
    ),
    Held("num_attention_heads", INTEGER, f"{_TRANSFORMER_CONFIG}:2349", f"{_TRANSFORMER_CONFIG}:2349"),
    Held("ffn_hidden_size", INTEGER, _LINEAR),
    Held("mtp_num_layers", INTEGER, f"{_TRANSFORMER_CONFIG}:2339"),
    Held("init_method_std", NUMBER, _DEVIATION, _DEVIATION),
    Held("num_query_groups", INTEGER, "mindformers/pynative/transformers/attention.py:92", when="plain"),
    Held("kv_channels", INTEGER, _ROTARY, when="plain"),
    Held("rotary_base", NUMBER, _ROTARY, _ROTARY, "rotary"),
    Held("q_lora_rank", INTEGER, "mindformers/pynative/layers/layer_norm.py:146", when="latent"),
    Held("kv_lora_rank", INTEGER, f"{_LATENT}:343", f"{_LATENT}:343", "latent"),
    Held("qk_pos_emb_head_dim", INTEGER, _ROTARY, f"{_YARN}:76", "latent"),
    Held("qk_head_dim", INTEGER, f"{_LATENT}:112", f"{_LATENT}:112", "latent"),
    Held("v_head_dim", INTEGER, f"{_LATENT}:118", f"{_LATENT}:109", "latent"),
    *(Held(name, NUMBER, f"{_YARN}:144", f"{_YARN}:144", "yarn") for name in ("beta_fast", "beta_slow")),
    *(Held(name, NUMBER, f"{_YARN}:170", f"{_YARN}:170", "yarn") for name in ("mscale", "mscale_all_dim")),
    Held("num_moe_experts", INTEGER, f"{_TRANSFORMER_CONFIG}:2427"),
    Held("first_k_dense_replace", INTEGER, f"{_TRANSFORMER_CONFIG}:2523"),
    Held("moe_ffn_hidden_size", INTEGER, "mindformers/pynative/transformers/moe/experts.py:82", when="experts"),
    Held(
        "shared_expert_num",
        INTEGER,
        "mindformers/pynative/transformers/moe/moe_layer.py:56",
        f"{_TRANSFORMER_CONFIG}:2437",
        "experts",
    ),
    Held("moe_shared_expert_intermediate_size", INTEGER, _LINEAR, when="experts"),
    Held("moe_router_num_groups", INTEGER, f"{_TRANSFORMER_CONFIG}:2495", f"{_TRANSFORMER_CONFIG}:2492", "groups"),
    Held("moe_router_group_topk", INTEGER, f"{_TRANSFORMER_CONFIG}:2500", when="groups"),
    Held("moe_router_topk", INTEGER, f"{_TRANSFORMER_CONFIG}:2505", f"{_TRANSFORMER_CONFIG}:2505", "groups"),
    Held("moe_aux_loss_coeff", NUMBER, f"{_TRANSFORMER_CONFIG}:2686"),
    Held(
        "moe_grouped_gemm",
        SWITCH_OF_NETWORK,
        null="mindformers/pynative/base_models/gpt/moe_module_specs.py:33",
        when="experts",
    ),
    Held("moe_token_drop_policy", NAME, null=_CONVERTED),
    Held("position_embedding_type", NAME, null=f"{_TRANSFORMER_CONFIG}:2590"),
    Held("hidden_act", NAME, null="mindformers/pynative/layers/activation.py:304"),
    Held("softmax_compute_dtype", TYPE, null=_CONVERTED),
    *(
        Held(name, TYPE, null=f"{_TRANSFORMER_CONFIG}:70")
        for name in ("compute_dtype", "params_dtype", "layernorm_compute_dtype", "rotary_dtype")
    ),
)
