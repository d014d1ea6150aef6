"""Which releases a run may be of where nobody states one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from preflight.dialects.megatron.option_table import releases_that_take, releases_with
from preflight.dialects.megatron.targets import versions
from preflight.run.request import Target


def possible_releases(target: Target, typed: Mapping[str, str | None]) -> tuple[str, ...]:
    """Those whose parsers take its options. typed: its options, each with the first word of its value."""
    return (*releases_that_take(target.framework, typed.items()), *_beneath(target, typed))


def _beneath(target: Target, typed: Mapping[str, str | None]) -> tuple[str, ...]:
    """The releases of MindSpeed that a run of MindSpeed-LLM may be of as well: their parsers have all its options."""
    if target.framework != "mindspeed-llm" or not all(releases_with("mindspeed", option) for option in typed):
        return ()
    return tuple(f"mindspeed@{release}" for release in releases_that_take("mindspeed", typed.items()))


def stack_of(framework: str) -> Callable[[str], Mapping[str, str]]:
    """Which versions of which frameworks take part in a run of a release; of another framework's as `name@release`."""

    def stack(release: str) -> Mapping[str, str]:
        other, _, version = release.rpartition("@")
        return versions(Target(other or framework, version))

    return stack
