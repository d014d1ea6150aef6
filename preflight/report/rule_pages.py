"""The documentation pages of rules: one section per rule, one page per topic, and the index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from urllib.parse import quote

import preflight
from preflight import schemas
from preflight.checking.unused_suppression import unused_suppression
from preflight.frontends.argument_wording import spelling
from preflight.lint.constraint import Constraint
from preflight.lint.constraint_page import page as declared_page
from preflight.lint.rule import Checkable, Rule, collect
from preflight.lint.rule_registry import stamp
from preflight.lint.suppression import present
from preflight.report.documentation_urls import installed_page, page_url, site
from preflight.source import cache_folder as kept_file
from preflight.source.finding import Message, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean, nearest
from preflight.source.translation import local, spoken
from preflight.source.typing_without_import import Any

RULES = "preflight.rules"
PAGES = "rule-pages.json"


class Topic(NamedTuple):
    """A page: one file of rules or a family of rule functions.

    title: the id of its only rule, or the file's own title.
    """

    path: str
    title: str
    about: str
    ids: tuple[str, ...]


@cache
def topics() -> tuple[Topic, ...]:
    """The topics of preflight's own rules, neutral ones first."""
    folders = [info.name for info in iter_modules(import_module(RULES).__path__) if info.ispkg]
    return tuple(topic for folder in ("", *folders) for topic in _in_folder(folder))


def _in_folder(folder: str) -> Iterable[Topic]:
    package = f"{RULES}.{folder}".rstrip(".")
    families: Mapping[str, str] = getattr(import_module(package), "FAMILIES", {})
    members: dict[str, list[str]] = {family: [] for family in families}
    for name, rules in sorted(_by_page(package), key=lambda page: page[0]):
        whole = len(rules) == 1 and isinstance(rules[0], Rule)
        family = next((family for family in families if whole and name.startswith(f"{family}_")), None)
        if family is not None:
            members[family].append(rules[0].id)
        else:
            about = rules[0].page if whole else import_module(f"{package}.{name}").__doc__ or name
            title = " ".join(about.partition("\n\n")[0].split())
            ids = tuple(rule.id for rule in rules)
            yield Topic(_path(folder, name), ids[0] if whole else title, title, ids)
    for family, ids_of_family in members.items():
        yield Topic(_path(folder, family), families[family], families[family], tuple(ids_of_family))


def _by_page(package: str) -> Iterator[tuple[str, list[Checkable]]]:
    """The rules of a package's modules by the name of their page; a rule whose function has the page is alone."""
    for info in iter_modules(import_module(package).__path__):
        rules = [] if info.ispkg else list(collect(import_module(f"{package}.{info.name}")))
        paged = [rule for rule in rules if isinstance(rule, Rule) and rule.paged]
        for rule in paged:
            yield rule.name, [rule]
        if others := [rule for rule in rules if rule not in paged]:
            yield info.name, others


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name.replace('_', '-')}.md".lstrip("/")


@cache
def _paths() -> dict[str, str]:
    """The page of each rule, cached between runs because loading all rule modules is slow."""
    good = json.dumps([preflight.__version__, stamp()])
    kept = kept_file.read(PAGES)
    if kept is not None and kept.startswith(f"{good}\n"):
        try:
            return {str(id): str(path) for id, path in json.loads(kept[len(good) :]).items()}
        except (ValueError, AttributeError):
            pass
    paths = {id: topic.path for topic in topics() for id in topic.ids}
    kept_file.write(PAGES, f"{good}\n{json.dumps(paths)}")
    return paths


def page_path(id: str) -> str:
    """The path of a rule's page below docs/rules; a plugin's rule has a separate page."""
    return _paths().get(id, f"{id}.md")


def anchor(id: str) -> str:
    """The anchor of a rule on its page: the id, without the framework if that is unambiguous."""
    folder, _, name = id.rpartition("/")
    path = page_path(id)
    twins = [other for other, page in _paths().items() if page == path and other.rpartition("/")[2] == name]
    return name if len(twins) < 2 or path.startswith(f"{folder}/") else f"{folder}-{name}"


def section_path(id: str) -> str:
    """The path and anchor of a rule's section, below docs/rules."""
    return f"{page_path(id)}#{anchor(id)}"


def section_url(id: str) -> str | None:
    """The URL of a rule's section; None if the distribution has no project URL.

    The site has one page per rule, the repository one per topic.
    """
    if page_url("", "") is None or (id not in _paths() and id != unused_suppression.id):
        return None
    page = page_path(id)
    if site() is not None and list(_paths().values()).count(page) > 1 and f"{id}.md" not in _paths().values():
        page = f"{id}.md"
    return page_url(f"rules/{quote(page, safe='/')}", quote(anchor(id)))


def section_link(id: str) -> str | None:
    """A link to a rule's section for programs on this machine: its URL, otherwise the installed page."""
    if (address := section_url(id)) is not None:
        return address
    known = id in _paths() or id == unused_suppression.id
    page = installed_page(page_path(id)) if known else None
    return f"{page.as_uri()}#{quote(anchor(id))}" if page is not None else None


GENERATED = "Generated by `preflight rules --write-docs`"


def documented(rules: Iterable[Checkable]) -> list[Checkable]:
    """All rules, sorted by id: those of the plugins, and `unused-suppression`, which the engine itself applies. Every
    count and list of rules takes them from here."""
    return sorted([*rules, unused_suppression], key=lambda rule: rule.id)


@cache
def examples() -> Mapping[str, Mapping[str, str]]:
    """Rule id → an example run with the fault and one without."""
    return {rule: example for name in schemas.names("examples") for rule, example in schemas.read(name).items()}


def rule_text(rule: Checkable) -> str:
    """The page text of a rule, from its docstring or its declaration, with headings."""
    real: Any = getattr(rule, "real", rule)
    spell = spelling(real.framework) if isinstance(real, Constraint) else None
    return rule.page if spell is None else declared_page(real, spell, examples().get(rule.id))


def levels(rule: Checkable) -> list[Severity]:
    """The severities of a rule's findings: the usual one first, then that of its exceptions."""
    real: Any = getattr(rule, "real", rule)
    usual: Severity | None = getattr(real, "usually", None)
    return [rule.severity, *getattr(real, "sometimes", ())] if usual is None else [usual, rule.severity]


def severities(rule: Checkable) -> str:
    """The severities of a rule's findings in words: "error, warning or note"."""
    return " or ".join(", ".join(map(str, levels(rule))).rsplit(", ", 1))


def translated_severities(rule: Checkable) -> str:
    """The severities of a rule's findings in the language of this call."""
    if spoken().language != "zh":
        return severities(rule)
    return "或".join("、".join(local(str(level)) for level in levels(rule)).rsplit("、", 1))


def rule_page(rule: Checkable) -> str:
    """The page of one rule as Markdown: id, severity, text and options."""
    head, _, rest = rule_text(rule).partition("\n")
    return (
        "\n".join(
            [
                f"# {rule.id}",
                "",
                f"*{severities(rule)} · {_where(rule)}*",
                "",
                head.strip(),
                "",
                rest.strip(),
                *_options(rule),
            ]
        ).rstrip()
        + "\n"
    )


def topic_page(topic: Topic, rules: Mapping[str, Checkable]) -> str:
    """The page of a topic: an overview and a section for each rule."""
    if len(topic.ids) == 1 and topic.title == topic.ids[0]:
        return _alone(rules[topic.ids[0]])
    frameworks = sorted({name for id in topic.ids for name in rules[id].frameworks})
    lines = [f"# {topic.title.removesuffix('.')}", "", f"*{len(topic.ids)} checks · {', '.join(frameworks)}*", ""]
    lines += ["| check | severity | what it finds |", "|---|---|---|"]
    lines += [
        f"| [{anchor(id)}](#{anchor(id)}) | {severities(rules[id])} | {_cell(finds(rules[id]))} |" for id in topic.ids
    ]
    for id in topic.ids:
        lines += ["", _section(rules[id])]
    return "\n".join(lines).rstrip() + "\n"


def _alone(rule: Checkable) -> str:
    """The page of a topic with one rule: the rule's page, with the heading that links refer to."""
    rest = rule_page(rule).split("\n", 3)[3]
    return f"# {anchor(rule.id)}\n\n`{rule.id}` · {severities(rule)} · {_where(rule)}\n{rest}"


def _section(rule: Checkable) -> str:
    """The section of a rule on its topic's page; its headings are bold text, so that only rules have anchors."""
    text = rule_text(rule)
    head, _, rest = text.partition("\n")
    if not isinstance(getattr(rule, "real", rule), Constraint):
        rest = f"{head}\n{rest}"
    body = re.sub(r"(?:(?<!\n)\n+)?^## (.+)\n+", r"\n\n**\1**\n\n", f"\n{rest.strip()}", flags=re.MULTILINE).strip()
    lines = [
        f"## {anchor(rule.id)}",
        "",
        f"`{rule.id}` · {severities(rule)} · {_where(rule)}",
        "",
        body,
        *_options(rule, "**Options**"),
    ]
    return "\n".join(lines).rstrip()


def finds(rule: Checkable) -> str:
    """A summary of what a rule finds, from its example if it has one."""
    return examples().get(rule.id, {}).get("message") or rule.summary


def _where(rule: Checkable) -> str:
    return ", ".join(rule.frameworks) or "every framework"


def _options(rule: Checkable, heading: str = "## Options") -> list[str]:
    if not rule.options:
        return []
    return [
        "",
        heading,
        "",
        *(f"- `{name.replace('_', '-')}` (default `{default}`)" for name, default in sorted(rule.options.items())),
    ]


def index_page(rules: Iterable[Checkable]) -> str:
    """The index as Markdown: all pages, with framework-independent rules first, then every rule by name."""
    rules = list(rules)
    ids = {rule.id: rule for rule in rules}
    listed = [topic for topic in topics() if any(id in ids for id in topic.ids)]
    lines = [
        "# Rules",
        "",
        f"{GENERATED}. `preflight explain RULE` prints one section, `preflight rules` lists every id.",
    ]
    for folder in sorted({topic.path.rpartition("/")[0] for topic in listed}):
        lines += [
            "",
            f"## {folder or 'Rules for every framework'}",
            "",
            "| page | checks | subject |",
            "|---|---|---|",
        ]
        for topic in listed:
            if topic.path.rpartition("/")[0] == folder:
                name = topic.path.rpartition("/")[2].removesuffix(".md")
                lines.append(f"| [{name}]({topic.path}) | {len(topic.ids)} | {_cell(topic.about)} |")
    others = [rule for rule in rules if not any(rule.id in topic.ids for topic in listed)]
    lines += (
        [
            "",
            "## Other rules",
            "",
            *(f"* [{rule.id}]({page_path(rule.id)}): {rule.summary}" for rule in others),
        ]
        if others
        else []
    )
    return "\n".join(lines) + "\n"


def pages(rules: Iterable[Checkable]) -> dict[str, str]:
    """File name below docs/rules → text, for every topic and the list."""
    known = {rule.id: rule for rule in rules}
    found = {"README.md": index_page(known.values())}
    for topic in topics():
        if ids := tuple(id for id in topic.ids if id in known):
            found[topic.path] = topic_page(topic._replace(ids=ids), known)
    for rule in known.values():
        if page_path(rule.id) not in found:
            found[page_path(rule.id)] = rule_page(rule)
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


MOST = 5
"""Rules that an ambiguous name lists."""


def named(name: str, known: Mapping[str, Checkable]) -> str:
    """The id of the rule with this name: an id, a former name, or a unique suffix. Raises InputError."""
    if name in known:
        return name
    plain = present(name.strip("[]`").lower().replace("_", "-"))
    ends = [id for id in known if id == plain or id.endswith(f"/{plain}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        more = f" and {len(ends) - MOST} more" if len(ends) > MOST else ""
        raise InputError(f"{len(ends)} rules end with {name!r}: {', '.join(ends[:MOST])}{more}")
    has_word = [id for id in known if f"-{plain}-" in f"-{id.replace('/', '-')}-"]
    if len(has_word) > 1:
        template = "there is no rule {name!r}; `preflight rules {word}` lists the rules that contain this word"
        raise InputError(Message(template, name=name, word=plain))
    tails = {id.rpartition("/")[2]: id for id in known}
    near = f"; did you mean {has_word[0]!r}?" if has_word else did_you_mean(name, known)
    if not near and (tail := nearest(plain, tails)):
        near = f"; did you mean {tails[tail]!r}?"
    raise InputError(f"there is no rule {name!r}{near}")
