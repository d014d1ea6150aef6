"""The release that the tag of a container image tells: `registry/mindformers:1.7.0`."""

from __future__ import annotations

from collections.abc import Collection

from preflight.dialects.identify import Identity
from preflight.loaders.document import Document
from preflight.run.request import Target
from preflight.run.versions import numbers
from preflight.source.pattern import lazy_pattern

_IMAGE = lazy_pattern(
    r"\bimage[\"']?[ \t]*[:=][ \t]*[\"']?([\w./:@-]*?\b(mindformers|mindspeed[-_]llm|megatron(?:[-_](?:lm|core))?)"
    r"[:_-]?(?:core_)?[rv]?(\d+\.\d+(?:\.\d+)?)[\w.-]*)"
)
_NAMES = {"mindformers": "mindformers", "mindspeed": "mindspeed-llm", "megatron": "megatron"}


def named_by_image(document: Document, frameworks: Collection[str]) -> Identity | None:
    """The release of one of some frameworks that the image of a job names; None where images tell nothing,
    or different things."""
    text = document.source.text
    if "image" not in text:
        return None
    found = {_read(*match.groups()) for match in _IMAGE.finditer(text) if not _is_comment(text, match.start())}
    said = {one.target: one for one in found if one is not None and one.target.framework in frameworks}
    return next(iter(said.values())) if len(said) == 1 else None


def _is_comment(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip()
    return line.startswith("#") and not line.startswith("#SBATCH")


def _read(image: str, name: str, version: str) -> Identity | None:
    """The described release that an image names."""
    from preflight.program.checkout.releases import known_releases

    framework = next(framework for begins, framework in _NAMES.items() if name.startswith(begins))
    wanted = numbers(version)
    alike = [release for release in known_releases(framework) if numbers(release)[:2] == wanted[:2]]
    exact = [release for release in alike if numbers(release) == wanted]
    return Identity(Target(framework, (exact or alike)[0]), f"image {image}") if alike else None
