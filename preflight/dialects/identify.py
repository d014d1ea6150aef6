"""Whose file it is, of which release, by what evidence: what somebody states, the checkout around it, what that installs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from preflight.run.request import Target
from preflight.run.versions import numbers
from preflight.source.record import NamedTuple

if TYPE_CHECKING:  # most files lie in no checkout
    from preflight.dialects.checkout.around import Checkout
    from preflight.dialects.checkout.package import Package

HELD_SINCE = {"mindspeed": (2, 2)}
"""From where on a check of a framework that is installed apart is taken to be there."""


class Identity(NamedTuple):
    """What tells the release of a run.

    proven: the package is as it was published. package: None where the checkout only installs the framework; patched: and changes it.
    """

    target: Target
    evidence: str
    proven: bool = False
    package: Package | None = None
    patched: bool = False

    @property
    def altered(self) -> bool:
        """The framework is not as it was published."""
        return self.patched or (self.package is not None and not self.proven)


def identify(checkout: Checkout | None, frameworks: Iterable[str]) -> Identity | None:
    """The first of some frameworks that a checkout holds, else the first that it installs."""
    if checkout is None:
        return None
    wanted = tuple(frameworks)
    for name in wanted:
        if (package := checkout.package(name)) is not None:
            return Identity(Target(name, package.release), package.evidence, package.proven, package)
    said = {name: checkout.declared[name] for name in wanted if name in checkout.declared}
    return next((Identity(Target(name, release), file) for name, (release, file) in said.items()), None)


def has_checks(
    checkout: Checkout, versions: Iterable[str], identity: Identity, arguments: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], bool | None]:
    """Says of a rule whether the checks that it repeats are in a checkout; None where nothing is known of the rule.

    versions: the frameworks that take part. arguments: names of arguments here, each with its name upstream.
    What is not in the checkout is taken as the release that it is built for.
    """
    from preflight.dialects.checkout.releases import built_on
    from preflight.lint.evidence import evidence

    frameworks = tuple(versions)
    packages = [package for name in frameworks if (package := checkout.package(name)) is not None]
    on = built_on(identity.target.framework, identity.target.version)
    others = {name: on[name] for name in frameworks if name in on and checkout.package(name) is None}

    def has(rule: str) -> bool | None:
        answers = [package.checks(arguments).has(rule) for package in packages]
        if any(answers):
            return True
        if False in answers:
            return False
        for name, release in others.items():
            if rule.startswith(f"{name}/"):
                known = evidence(name)
                if known is not None:
                    return bool(known.held(rule, release)) if known.described(release) else False
                return "." in release and numbers(release) >= HELD_SINCE.get(name, ())  # else it is a commit
        return None

    return has
