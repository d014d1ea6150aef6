"""Models of other families than the one that is trained: their tokens have other numbers."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.frontends.hydra_faults import REFUSED
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Problem
from preflight.source.finding import Message
from preflight.source.source_file import Source

FAMILIES = {
    **{"qwen": "qwen", "meta-llama": "llama", "mistralai": "mistral", "google": "gemma", "deepseek-ai": "deepseek"},
    **{"zai-org": "glm", "thudm": "glm", "internlm": "internlm", "moonshotai": "kimi", "openai": "gpt-oss"},
    "bytedance-seed": "seed-oss",
}
"""The organizations of a hub, each with the word in the names of those of its models that share a vocabulary."""
ALIASES = {"mixtral": "mistral", "moonlight": "kimi"}
"""Other words for the same vocabulary."""
DERIVED = ("distill", "kimi-dev", "kimi-audio")
"""Words in the names of models with the vocabulary of another family."""


def families(name: str) -> frozenset[str]:
    """The families that the name of a model mentions; none if it is not the hub's name of a family's own model, such as
    a local path, or if the model is derived from another one."""
    organization, _, last = name.lower().partition("/")
    for alias, family in ALIASES.items():
        last = last.replace(alias, family)
    if "/" in last or FAMILIES.get(organization, "\0") not in last or any(word in last for word in DERIVED):
        return frozenset()
    return frozenset(one for one in FAMILIES.values() if one in last)


def of_families(
    config: Composed, trained: str, others: tuple[str, ...], own: Source | None = None
) -> Iterator[Problem]:
    """Keys with a model of another family than the trained one. own: the program's config."""
    model = config.at(*trained.split("."))
    for key in others:
        found = config.at(*key.split("."))
        node = found.node
        if (
            node is None
            or node.span.source is own
            or not isinstance(found.value, str)
            or not isinstance(model.value, str)
        ):
            continue
        there, here = families(found.value), families(model.value)
        if there and here and there.isdisjoint(here):
            template = (
                "{key} is {value:.80}, but the model that is trained is {model:.80}, whose tokens have other numbers"
            )
            message = Message(template, key=key, value=found.value, model=model.value)
            yield Problem(REFUSED, message, node.span, harmless=True)
