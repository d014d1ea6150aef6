"""model_config of mcore models: merged over Hugging Face's config.json, with synonyms resolved to the transformer
config's own names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from preflight import schemas
from preflight.dialects import Surroundings
from preflight.dialects.mindformers.graph_namespace import Run
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.value import Origin, Value
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import Needed, Reason
from preflight.source.typing_without_import import Any

SECTIONS = ("parallel_config", "recompute_config", "swap_config")


class Clash(NamedTuple):
    """Two spellings of one setting. same: whether they agree, None if unknown. default: the first spelling is not in
    the file; the model's class has it, with this value.
    """

    target: str
    one: str
    other: str
    same: bool | None
    default: Any = None


class Names(NamedTuple):
    """The setting names of one model type in a release. ignored: keys that it accepts and does not use."""

    targets: dict[str, str]
    ignored: frozenset[str]
    config: str
    latent: bool
    given: dict[str, Any]


@lru_cache(maxsize=8)
def _tables(version: str) -> dict[str, Any]:
    data: dict[str, Any] = schemas.read(f"mindformers/mcore/{_names_of(version)}")
    return data


def _names_of(version: str) -> str:
    """The release whose setting names apply to a release."""
    known: dict[str, str] = schemas.read("releases")["mindformers mcore"]
    return known.get(version, "1.7.0")


def names(version: str, model_type: str, fields: dict[str, Any]) -> Names:
    """The names that a model type knows; an unknown type has the common ones."""
    data = _tables(version)
    found = data["types"].get(model_type) or {"config": "", "mla": False, "map": {}, "ignored": [], "given": {}}
    own = {name: name for name in fields} if _names_of(version).startswith("2") else {}
    return Names(
        {**own, **data["common"], **found["map"]},
        frozenset((*data["white"], *found["ignored"])),
        found["config"],
        found["mla"],
        found["given"],
    )


def model_type(run: Run, below: Node | None) -> str:
    """The type that determines the names."""
    said = run.written.get("model.model_config.model_type")
    node = below.get("model_type") if below is not None else None
    raw: object = said.raw if said is not None else node.value if node is not None else ""
    return raw if isinstance(raw, str) else ""


def below(run: Run, document: Document, surroundings: Surroundings) -> Document | None:
    """The config.json in the model directory of the config; the run is marked if it cannot be read."""
    named = run.written.get("pretrained_model_dir")
    if named is None or not isinstance(named.raw, str) or not named.raw:
        return None
    found = surroundings.read(document, f"{named.raw.rstrip('/')}/config.json")
    if found is None or found.tree is None or found.tree.kind != "mapping":
        run.absent = Reason(f"{named.raw}/config.json is not read", Needed.MODEL_CONFIG)
        return None
    return found


def resolve(run: Run, config: Node | None) -> tuple[Clash, ...]:
    """Store every value under "mcore.<field>"; returns the settings that are given twice."""
    if (said := run.written.get(f"{_MODEL}model_type")) is not None and not said.known:
        run.absent = said.because or "model_type is unknown"
    known = names(run.table.version, model_type(run, config), run.table.mcore)
    for name, raw in _defaults(run, known):
        field = known.targets.get(name, name)
        if field in run.table.mcore:
            run.effective[f"mcore.{field}"] = Value(
                raw, Origin.DEFAULT, note=f"{known.config or 'the model'} of MindFormers {run.table.version}"
            )
    clashes: list[Clash] = []
    spelled: dict[str, str] = {}
    own = _own(run, known)
    typed = dict(_typed(run, config))
    for name, value in typed.items():
        target = known.targets.get(name)
        if target is None:
            continue
        before = spelled.get(target, name)
        if before != name:
            clashes.append(Clash(target, before, name, _same(run.effective[f"mcore.{target}"].raw, value.raw)))
        elif (brought := own.get(target, name)) != name and brought not in typed:
            default = run.table.mcore_models[known.config][brought]
            clashes.append(Clash(target, brought, name, _same(default, value.raw), default))
        spelled[target] = name
        run.effective[f"mcore.{target}"] = value
    if known.latent:
        run.effective.setdefault(
            "mcore.multi_latent_attention", Value(True, Origin.DERIVED, note=f"{known.config} is latent")
        )
    return tuple(clashes)


def _same(one: object, other: object) -> bool | None:
    return None if isinstance(one, Unknown) or isinstance(other, Unknown) else one == other


def _defaults(run: Run, known: Names) -> Iterator[tuple[str, Any]]:
    """Values from the model's own config class; unread code may set others."""
    if run.absent or run.open:
        return
    yield from run.table.mcore_models.get(known.config, {}).items()
    yield from known.given.items()


def _own(run: Run, known: Names) -> dict[str, str]:
    """Fields to which the model's own class gives a value, each with its name there: they are checked like explicit
    ones."""
    if run.absent or run.open:
        return {}
    brought = run.table.mcore_models.get(known.config, {}).items()
    return {
        known.targets[name]: name
        for name, raw in brought
        if name in known.targets and isinstance(raw, (int, float, str))
    }


def _typed(run: Run, config: Node | None) -> Iterator[tuple[str, Value]]:
    """Settings in order of precedence: sections of the run, then config.json, then model_config over it."""
    typed = {
        name.removeprefix(_MODEL): run.written[name]
        for name in run.written
        if name.startswith(_MODEL) and "." not in name.removeprefix(_MODEL)
    }
    for section in SECTIONS:
        for name in run.written:
            if name.startswith(f"{section}.") and name.count(".") == 1:
                yield name.partition(".")[2], run.effective.get(name) or run.written[name]
    for entry in config.entries if config is not None else ():
        if not entry.shadowed and isinstance(entry.key.value, str) and entry.key.value not in typed:
            yield entry.key.value, Value(number(entry.value), Origin.DERIVED, note="config.json")
    yield from typed.items()


LATENT = frozenset(
    (
        "q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim rope_type rotary_percent "
        "rotary_scaling_factor original_max_position_embeddings beta_fast beta_slow mscale mscale_all_dim "
        "csa_window_size csa_compress_ratios csa_compress_rotary_base csa_dense_mode o_groups o_lora_rank "
        "apply_dsa_kernel_fusion"
    ).split()
)
"""Fields that exist only in networks with latent attention."""


_MODEL = "model.model_config."


def number(node: Node) -> Any:
    """A JSON value: numbers such as 1e-06 are strings to a YAML reader."""
    plain = node.plain()
    if isinstance(plain, str) and not node.style:
        try:
            return float(plain)
        except ValueError:
            return plain
    return plain
