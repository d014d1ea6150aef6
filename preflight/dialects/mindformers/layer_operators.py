"""The operators of the decoder layers of a run: the operator tables under schemas/, chosen by model and version."""

from __future__ import annotations

from functools import lru_cache

from preflight import schemas
from preflight.dialects.mindformers.recompute_patterns import Cell, read_cell
from preflight.loaders.document import Unknown
from preflight.run.arguments import Arguments
from preflight.run.training_plan import Plan
from preflight.run.value import Value
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

_LEGACY = {
    "LlamaConfig": "llama",
    "InternLM2Config": "llama",
    "DeepseekV2Config": "deepseek",
    "DeepseekV3Config": "deepseek",
    "ChatGLM2Config": "glm",
    "YiZhaoConfig": "glm",
}
_NETWORKS = (
    *(
        "LlamaForCausalLM",
        "InternLM2ForCausalLM",
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "TrainingDeepseekV3ForCausalLM",
    ),
    *(
        "ChatGLM2ForConditionalGeneration",
        "ChatGLM3ForConditionalGeneration",
        "GLM4ForConditionalGeneration",
        "ChatGLM4ForConditionalGeneration",
    ),
    "YiZhaoForCausalLM",
)
_LOOSE = ("InternLM2Config", "DeepseekV2Config", "YiZhaoConfig")  # a custom attention: its operators are not listed


class Layers(NamedTuple):
    """The decoder layers of a run. kinds: the kinds of layers; of: the kind of each layer, () if unknown."""

    family: str
    kinds: tuple[Cell, ...]
    of: tuple[int, ...] = ()

    def kind(self, layer: int) -> tuple[Cell, ...]:
        """The kinds that the layers may have."""
        return (self.kinds[self.of[layer]],) if 0 <= layer < len(self.of) else self.kinds


def layers(arguments: Arguments, plan: Plan) -> Layers | None:
    """The layers of a run in graph mode, or None if its operators are unknown."""
    if _given(arguments, "use_legacy") is False:
        return _mcore(arguments, plan)
    type_name = _given(arguments, "model.model_config.type")
    family = _LEGACY.get(type_name) if isinstance(type_name, str) else None
    if family is None or not _plain_layers(arguments):
        return None
    attention, kinds = _legacy(arguments, family)
    if type_name in _LOOSE:
        attention = ""
    return _sorted(family, attention, kinds, plan)


def _plain_layers(arguments: Arguments) -> bool:
    """Whether the network consists of its family's own layers, and not of another class with the same configuration."""
    if arguments.versions.get("mindformers", "").startswith("1.0"):
        return False
    return _given(arguments, "model.arch.type") in (None, *_NETWORKS)


_VARIANTS = ("model.model_config.mlp_concat", "moe_config.use_gmm", "moe_config.shared_expert_num")


def _legacy(arguments: Arguments, family: str) -> tuple[str, tuple[str, ...]]:
    """The variants of the attention and of the MLPs; () if unknown."""
    concat = _given(arguments, "model.model_config.qkv_concat")
    experts = _given(arguments, "moe_config.expert_num")
    interleaved = _given(arguments, "model.model_config.fine_grain_interleave")
    others = [_given(arguments, name) for name in _VARIANTS]
    if any(isinstance(value, Unknown) for value in (experts, interleaved, *others)):
        return "", ()
    if concat not in (None, True, False) or (isinstance(interleaved, int) and interleaved > 1):
        return "", ()  # interleaved layers have other operators below the same cells
    if family == "glm":
        split = _given(arguments, "model.model_config.mlp_concat") is False
        return "plain", ("dense-split",) if split else ("dense",)
    dense = "dense-concat" if concat and family == "llama" else "dense"
    attention = ("concat" if concat else "plain") if family == "llama" else ("" if concat else "plain")
    if not isinstance(experts, int) or experts <= 1:
        return attention, (dense,)
    grouped = "v3" if _given(arguments, "moe_config.use_gmm") else "v2"
    shared = "shared" if family == "deepseek" or _given(arguments, "moe_config.shared_expert_num") else "moe"
    if concat and shared == "shared":
        return attention, ()
    return attention, (dense, f"{shared}-{grouped}") if family == "deepseek" else (f"{shared}-{grouped}",)


_OTHER_LAYERS = (
    "experimental_attention_variant",
    "enable_hyper_connections",
    "model_architecture",
    "multi_latent_attention",
)


def _mcore(arguments: Arguments, plan: Plan) -> Layers | None:
    names = {name.rpartition(".")[2]: name for name in arguments.written}
    settings = {key: arguments.written[names[key]].raw for key in _OTHER_LAYERS if key in names}
    if any(isinstance(value := settings.get(name), Unknown) or value for name in _OTHER_LAYERS[:-1]):
        return None
    experts, shared = _known(plan.model.experts), _known(plan.model.shared_ffn)
    latent = settings.get("multi_latent_attention")
    attention = {True: "latent", False: "plain"}[latent] if isinstance(latent, bool) else "either"
    if experts is _UNKNOWN:
        return None
    if not experts or experts == 1:
        return _sorted("mcore", attention, ("dense",), plan)
    mixture = ("moe", "moe-shared") if shared is _UNKNOWN else ("moe-shared",) if shared else ("moe",)
    return _sorted("mcore", attention, ("dense", *mixture), plan)


def _sorted(family: str, attention: str, kinds: tuple[str, ...], plan: Plan) -> Layers:
    """The layers with the kind of each, as far as the plan shows which layers hold experts."""
    cells = tuple(_layer(family, attention, kind) for kind in kinds) or (_layer(family, attention, ""),)
    mixture = _known(plan.model.expert_layers)
    if len(kinds) == 2 and isinstance(mixture, tuple):
        if all(mixture):
            return Layers(family, cells[1:], (0,) * len(mixture))
        return Layers(family, cells, tuple(int(bool(one)) for one in mixture))
    return Layers(family, cells)


_UNKNOWN = object()


def _known(value: Value) -> Any:
    return _UNKNOWN if isinstance(value.raw, Unknown) else value.raw


def _given(arguments: Arguments, name: str) -> Any:
    value = arguments.given(name)
    return None if value is None else value.raw


@lru_cache(maxsize=32)
def _layer(family: str, attention: str, mlp: str) -> Cell:
    """A layer of a family; variant "" is opaque, "either" has the operators of all variants."""
    table = _table(family)
    tree = dict(table["common"])
    for part, variant in (("attention", attention), ("mlp", mlp)):
        tree[table[part]["cell"]] = (
            _either(table[part]) if variant == "either" else table[part].get(variant, "*") if variant else "*"
        )
    return read_cell("", tree)


def _either(table: dict[str, Any]) -> dict[str, Any]:
    """A cell that may be plain or latent: the operators of both, marked as conditional."""
    parts = [table[name] for name in ("latent", "plain")]
    shared: dict[str, Any] = {
        name.rstrip("?") + "?": cell for part in parts for name, cell in part.items() if name != "="
    }
    return {
        **shared,
        "=": " ".join(word if "?" in word else word + "?" for part in parts for word in part["="].split()),
    }


@lru_cache(maxsize=8)
def _table(family: str) -> dict[str, Any]:
    table: dict[str, Any] = schemas.read(f"mindformers/operators/{family}")
    return table
