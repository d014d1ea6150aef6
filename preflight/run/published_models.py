"""Published language models, found by the names that paths contain, from the table in preflight.schemas.

Values taken from a name are assumptions, for estimates and warnings, never for errors or fixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from preflight import schemas
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

LONGEST = 300
MOST_WORDS = 5
"""Matches a model's name in a file name."""


class Published(NamedTuple):
    """A model. sizes: by their names in a plan (layers, hidden, heads, query_groups, …). traits: other properties of
    its network, by the names in TRAITS; absent ones have the plain value."""

    name: str
    sizes: Mapping[str, int]
    source: str
    traits: Mapping[str, int]


_FIELDS = {"groups": "query_groups", "vocabulary": "vocab", "head": "head_dim"}
_WORDS = ("name", "aliases", "source", "checked")
TRAITS = (
    *("tied", "bias", "qkv_bias", "qk_norm", "post_norm", "alibi", "shared", "dense", "q_lora", "kv_lora", "nope"),
    *("rope", "v", "linear", "images", "theta", "rotary_part", "factor", "scaling", "eps", "sigmoid", "norm_topk"),
)
"""Tied embeddings, biases, norms, ALiBi; intermediate size of shared experts, dense layers before the first with
experts; latent attention: ranks and head sizes; linear attention in most layers; encoders of images next to it; the
base of rotary positions, if it is not 10000; the part of each head that has them, if it is not all of it; the factor by
which they are scaled; the factor by which the router's weights are scaled, if it is not 1; the epsilon of the norms;
whether the router's scores are sigmoids, and whether those of the chosen experts are normalized."""
_FAMILY = lazy_pattern(r"[a-z]{3,20}")
_SIZE = lazy_pattern(r"(?<!\d)(\d+)(?:\.(\d+))?b")


@cache
def _models() -> tuple[tuple[str, Published], ...]:
    """All names with their models, in lower case without punctuation, longest first."""
    found = []
    for row in schemas.read("models")["models"]:
        sizes = {_FIELDS.get(name, name): size for name, size in row.items() if name not in (*_WORDS, *TRAITS)}
        traits = {name: row[name] for name in TRAITS if name in row}
        model = Published(row["name"], sizes, row["source"], traits)
        found += [(_bare(name), model) for name in (row["name"], *row["aliases"])]
    return tuple(sorted(found, key=lambda pair: -len(pair[0])))


def vocabularies() -> tuple[tuple[str, int], ...]:
    """Patterns for names of published tokenizers, and the size of each vocabulary."""
    return tuple((pattern, size) for pattern, size in schemas.read("models")["vocabularies"])


def published(paths: Iterable[str]) -> Published | None:
    """The model named by one of the last two parts of the paths; None if there is none, or several."""
    found = {model.name: model for path in paths for model in _named(path)}
    return next(iter(found.values())) if len(found) == 1 else None


def of_file(name: str) -> Published | None:
    """The model named by whole words of a file name: pretrain_qwen3_8b_4k.sh."""
    words = [word for word in re.split(r"[^a-z0-9]+", name[-LONGEST:].lower().replace("point", "")) if word]
    found = {
        model.name: model
        for start in range(len(words))
        for end in range(start + 1, min(start + MOST_WORDS, len(words)) + 1)
        if (model := _exactly().get("".join(words[start:end]))) is not None
        and _sized(model, "_".join(words[start:end]))
    }
    longest = max(found, key=len, default="")
    return found.get(longest) if all(other in longest for other in found) else None


def has_twin(model: Published, layers: int) -> bool:
    """Whether another model of the same family has this number of layers and otherwise the same sizes."""
    family = model.name.partition("-")[0]
    sizes = {name: size for name, size in model.sizes.items() if name not in ("layers", "vocab")}
    return any(
        other.sizes["layers"] == layers
        and other.name.partition("-")[0] == family
        and sizes == {name: size for name, size in other.sizes.items() if name not in ("layers", "vocab")}
        for _, other in _models()
    )


def names_another(paths: Iterable[str], model: Published) -> bool:
    """Whether a path names a size of the same family that is not this model: Qwen2.5-Math-1.5B is not Qwen2.5-1.5B."""
    family = _FAMILY.match(model.name.lower())
    if family is None:
        return False
    parts = [part.lower() for path in paths for part in path[-LONGEST:].rstrip("/").split("/")[-2:]]
    return any(part.startswith(family[0]) and _SIZE.search(part) is not None for part in parts)


@cache
def _exactly() -> Mapping[str, Published]:
    return dict(_models())


def _named(path: str) -> list[Published]:
    parts = path[-LONGEST:].rstrip("/").split("/")[-2:]
    return [model for part in parts if (model := _of(_bare(part))) is not None and _sized(model, part.lower())]


def _sized(model: Published, part: str) -> bool:
    """Whether a model size is a separate word in a part of a path: Qwen2-57B is not Qwen2.5-7B."""
    size = _SIZE.search(model.name.lower())
    if size is None:
        return True
    whole, fraction = size.groups()
    return re.search(rf"(?<!\d){whole}{f'[^a-z0-9]?{fraction}' if fraction else ''}b", part) is not None


def _of(part: str) -> Published | None:
    return next(
        (model for name, model in _models() if part.startswith(name) and not part[len(name) :][:1].isdigit()), None
    )


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
