"""The machine that a document is written for, and the release that a checkout or a file names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from preflight import schemas
from preflight.dialects import Surroundings
from preflight.loaders.document import Document, Node, Setting
from preflight.run.cluster import Cluster, Device
from preflight.run.request import Request, Target, patch
from preflight.run.training_plan import Plan
from preflight.run.value import Origin, Value, derived, unknown
from preflight.run.version_ranges import branch, numbers
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace
from preflight.source.resolved_words import Needed, Reason
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.program.checkout.enclosing_checkout import Checkout
    from preflight.program.checkout.framework import Package


def which(document: Document, surroundings: Surroundings) -> tuple[Device | None, Value]:
    """The accelerator, and the place where the job names it."""
    asked, word = surroundings.request.device, document.launch.device if document.launch is not None else None
    if asked:
        return surroundings.device(asked), unknown("named by the caller")
    device = surroundings.likely(word.text) if word is not None and word.text is not None else None
    if device is None or word is None:
        return None, unknown(Reason("no device is named", Needed.DEVICE))
    return device, Value(
        device.name,
        Origin.DERIVED,
        Setting((), word.text, word.span, word.span, editable=False),
        "the request of the job",
    )


BUFFER_VARIABLE = "HCCL_BUFFSIZE"
_MB = 2**20


def completed(cluster: Cluster, document: Document, request: Request, plan: Plan) -> Cluster:
    """The cluster with the size of a buffer, and with the measurements made on it."""
    cluster = replace(cluster, measured=request.measured, pace=request.pace, network=request.network, link=request.link)
    cluster = replace(cluster, software=request.software or _container(document.source.text))
    if request.factors:
        experts = bool(plan.model.experts.raw) if plan.model.experts.known else None
        found = next((one for one in request.factors if one.holds(cluster.device, experts)), None)
        if found is not None:
            cluster = replace(cluster, measured=found.beyond or 0.0, pace=found.pace or 1.0)
    text = request.environment.get(BUFFER_VARIABLE)
    if text is None and document.launch is not None and BUFFER_VARIABLE in document.launch.environment:
        word = document.launch.environment[BUFFER_VARIABLE]
        if word.text is None:
            return replace(cluster, buffer=unknown(f"{BUFFER_VARIABLE} is {word.because}"))
        text = word.text
    return replace(cluster, buffer=_size(text)) if text is not None else cluster


CONTAINER = lazy_pattern(r"nvcr\.io[/#+]nvidia[/+](?:nemo|pytorch)[:+](\d\d\.(?:0[1-9]|1[0-2]))(?!\d)")
"""An NVIDIA image, whose tag is the year and month of its software."""


def _container(text: str) -> float | None:
    """The container image of a run, if it names one; comments are ignored."""
    if "nvcr.io" not in text:
        return None
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#") or "#SBATCH" in line)
    tags = {found[1] for line in lines for found in CONTAINER.finditer(line)}
    return float(tags.pop()) if len(tags) == 1 else None


def _size(text: str) -> Value:
    """An integer of megabytes; other rules report anything else."""
    return (
        derived(int(text) * _MB, BUFFER_VARIABLE)
        if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 20
        else unknown(f"{BUFFER_VARIABLE} is {text!r}")
    )


RANK_TABLE_VARIABLE = "RANK_TABLE_FILE"
SOURCE = "the rank table"


def rank_table(document: Document, surroundings: Surroundings) -> Document | None:
    """The rank table that a launch names; None if there is none, or if it is missing or unreadable."""
    word = document.launch.environment.get(RANK_TABLE_VARIABLE) if document.launch is not None else None
    if word is None or word.text is None:
        return None
    try:
        found = surroundings.read(document, word.text)
    except InputError:
        return None
    return found if found is not None and found.tree is not None and found.tree.get("server_list") is not None else None


def listed_devices(ranks: Document, document: Document) -> Value:
    """The number of devices that a rank table lists, at the place where the launch names the table."""
    assert ranks.tree is not None and document.launch is not None
    span = document.launch.environment[RANK_TABLE_VARIABLE].span
    total = sum(len(server_devices(server)) for server in servers(ranks.tree))
    return Value(total, Origin.WRITTEN, Setting((), total, span, span, editable=False), SOURCE)


def servers(tree: Node) -> tuple[Node, ...]:
    """The servers of a table, in order."""
    listed = tree.get("server_list")
    return listed.items if listed is not None else ()


def server_devices(server: Node) -> tuple[Node, ...]:
    """The devices of a server."""
    listed = server.get("device")
    return listed.items if listed is not None else ()


class Identity(NamedTuple):
    """Evidence of a run's release. proven: the package is as published. package: None if the checkout only installs the
    framework, or has an unchanged part of it; patched: it changes that part.
    """

    target: Target
    evidence: str
    proven: bool = False
    package: Package | None = None
    patched: bool = False
    said: str = ""
    """The release that the code states, described or not."""
    among: frozenset[str] = frozenset()
    """The described releases in the range that a file installs, if it names no release."""

    @property
    def altered(self) -> bool:
        """The framework differs from its published state."""
        return self.patched or (self.package is not None and not self.proven)

    @property
    def tagged(self) -> bool:
        """It is another published state of its release."""
        return self.package is not None and bool(self.package.tag)


def identify(checkout: Checkout | None, frameworks: Iterable[str]) -> Identity | None:
    """The first of several frameworks that a checkout contains, otherwise the first that it installs."""
    if checkout is None:
        return None
    wanted = tuple(frameworks)
    for name in wanted:
        if (package := checkout.package(name)) is not None:
            held = None if package.partial else package
            said = "" if package.tag else package.said
            return Identity(Target(name, package.release), _shown(package), package.proven, held, said=said)
    declared = {name: checkout.declared[name] for name in wanted if name in checkout.declared}
    first = next(((name, *found) for name, found in declared.items()), None)
    if first is None:
        return None
    among, file = checkout.ranges.get(first[0], (frozenset[str](), "")) if not first[1] else (frozenset[str](), "")
    return Identity(Target(first[0], first[1]), file or _saying(*first), among=among)


def named_by_environment(
    document: Document, surroundings: Surroundings, frameworks: Collection[str]
) -> Identity | None:
    """The release in the environment that a document activates."""
    if surroundings.around is None or ("bin/" not in (text := document.source.text) and "activate" not in text):
        return None
    installed = surroundings.around.environment(document)
    name = next((one for one in frameworks if one in installed), None)
    return Identity(Target(name, installed[name][0]), _saying(name, *installed[name])) if name is not None else None


def _shown(package: Package) -> str:
    """The file that identifies a package, and the release that it names if it is read as another one."""
    other = bool(package.said) and numbers(package.said) != numbers(package.release) and not package.tag
    return f"{package.evidence}: {package.said}" if other else package.evidence


def _saying(framework: str, release: str, file: str) -> str:
    """The file that names a release, and the release itself if it is read as another one."""
    from preflight.program.checkout.framework import known_releases

    target = Target(framework, release)
    alike = any(numbers(one)[: len(numbers(release))] == numbers(release) for one in known_releases(framework))
    return file if not release or alike or patch(target) else f"{file}: {release}"


def has_checks(
    checkout: Checkout, versions: Mapping[str, str], arguments: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], bool | None]:
    """Whether the upstream checks behind a rule are in a checkout; None if nothing is known about the rule. versions:
    of the frameworks involved; parts missing in the checkout count as that release. arguments: argument names here,
    each with its upstream name.
    """
    from preflight.lint.upstream_evidence import held_in

    lying = {name: package for name in versions if (package := checkout.package(name)) is not None}
    packages = [package for package in lying.values() if not package.partial]
    others = {n: v for n, v in versions.items() if n not in lying or lying[n].partial}

    def has(rule: str) -> bool | None:
        answers = [package.checks(arguments).has(rule) for package in packages]
        if any(answers) or False in answers:
            return any(answers)
        return held_in(rule, rule.partition("/")[0], others)

    return has


_IMAGE = lazy_pattern(
    r"\bimage[\"']?[ \t]*[:=][ \t]*[\"']?([\w./:@-]*?\b(mindformers|mindspeed[-_]llm|megatron(?:[-_](?:lm|core))?)"
    r"[:_-]?(?:core_)?[rv]?(\d+\.\d+(?:\.\d+)?)[\w.-]*)"
)
_NAMES = {"mindformers": "mindformers", "mindspeed": "mindspeed-llm", "megatron": "megatron"}


def named_by_image(document: Document, frameworks: Collection[str]) -> Identity | None:
    """The release of a framework that the job's image names; None if images name none, or different ones."""
    text = document.source.text
    if "image" not in text:
        return None
    found = {_read(*match.groups()) for match in _IMAGE.finditer(text) if not _is_comment(text, match.start())}
    said = {one.target: one for one in found if one is not None and one.target.framework in frameworks}
    return next(iter(said.values())) if len(said) == 1 else None


def named_in_text(document: Document, frameworks: Collection[str]) -> Identity | None:
    """The release of a framework that a document itself names: by its image, or by what it installs, clones, checks out
    or starts from a folder called after a release."""
    found = named_by_image(document, frameworks)
    text = document.source.text
    if found is not None or not any(word in text for word in _TELLING):
        return found
    from preflight.program.checkout.framework_requirements import declared_in

    said = declared_in(text)
    named = ((name, said[name]) for name in frameworks if said.get(name))
    release = next(named, None)
    return Identity(Target(*release), Message("the file names {release}", release=release[1])) if release else None


_TELLING = ("core_v", "core_r", "MCORE_", "egatron-", "egatron_", "EGATRON-", "EGATRON_", "mindformers")
"""Parts of every text in which a release may be named, to search few texts."""


def most_like(found: Identity | None) -> str:
    """The release that the code of a checkout resembles most if nothing states its release, or "none"; "" otherwise."""
    package = found.package if found is not None else None
    if package is None or package.said or package.tag or package.proven or package.ancient:
        return ""
    return package.release if package.resembles else "none"


def undescribed(found: Identity | None) -> str:
    """The framework and the release that a checkout or a file names, if that release is not described; "" otherwise."""
    if found is None:
        return ""
    package, framework = found.package, found.target.framework
    if package is not None and package.ancient:
        return f"{framework} before {schemas.read('releases')[framework][-1]}"
    said = found.said if found.said or package is not None else found.target.version
    if not numbers(said) or branch(said)[0] or patch(Target(framework, said)):
        return ""
    table = schemas.read("releases")
    known = {numbers(one) for one in (*table.get(framework, ()), *table.get(f"{framework} branches", ()))}
    size = len(numbers(said))
    return "" if any(one[:size] == numbers(said) for one in known) else f"{framework} {said}"


def _is_comment(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip()
    return line.startswith("#") and not line.startswith("#SBATCH")


def _read(image: str, name: str, version: str) -> Identity | None:
    """The described release named by an image."""
    from preflight.program.checkout.framework import known_releases

    framework = next(framework for begins, framework in _NAMES.items() if name.startswith(begins))
    wanted = numbers(version)
    alike = [release for release in known_releases(framework) if numbers(release)[:2] == wanted[:2]]
    exact = [release for release in alike if numbers(release) == wanted]
    return Identity(Target(framework, (exact or alike)[0]), f"image {image}") if alike else None
