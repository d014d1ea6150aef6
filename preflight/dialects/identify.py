"""Whose file it is, of which release, by what evidence: what somebody states, the checkout around it,
what that installs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from preflight.run.request import Target
from preflight.source.record import NamedTuple

if TYPE_CHECKING:  # most files lie in no checkout
    from preflight.program.checkout.around import Checkout
    from preflight.program.checkout.package import Package


class Identity(NamedTuple):
    """What tells the release of a run.

    proven: the package is as it was published. package: None where the checkout only installs the framework, or has a
    part of it, unchanged; patched: and changes it.
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

    @property
    def tagged(self) -> bool:
        """It is a further published state of its release."""
        return self.package is not None and bool(self.package.tag)


def identify(checkout: Checkout | None, frameworks: Iterable[str]) -> Identity | None:
    """The first of some frameworks that a checkout holds, else the first that it installs."""
    if checkout is None:
        return None
    wanted = tuple(frameworks)
    for name in wanted:
        if (package := checkout.package(name)) is not None:
            held = None if package.partial else package
            return Identity(Target(name, package.release), package.evidence, package.proven, held)
    said = {name: checkout.declared[name] for name in wanted if name in checkout.declared}
    return next((Identity(Target(name, release), file) for name, (release, file) in said.items()), None)


def has_checks(
    checkout: Checkout, versions: Mapping[str, str], arguments: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], bool | None]:
    """Says of a rule whether the checks that it repeats are in a checkout; None where nothing is known of the rule.

    versions: of the frameworks that take part; what is not in the checkout is taken as that release. arguments: names
    of arguments here, each with its name upstream.
    """
    from preflight.lint.evidence import held_in

    lying = {name: package for name in versions if (package := checkout.package(name)) is not None}
    packages = [package for package in lying.values() if not package.partial]
    others = {n: v for n, v in versions.items() if n not in lying or lying[n].partial}

    def has(rule: str) -> bool | None:
        answers = [package.checks(arguments).has(rule) for package in packages]
        if any(answers) or False in answers:
            return any(answers)
        return held_in(rule, rule.partition("/")[0], others)

    return has
