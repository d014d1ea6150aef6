"""Errors that Hydra raises for a command: words that are not overrides, groups without such an option, existing or
missing keys, interpolations without a target; each at its word, with a correction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from preflight.frontends.front_end import UNREAD
from preflight.frontends.release_config_schema import Contract
from preflight.loaders.composition.grammar import Malformed, element, has_interpolation
from preflight.loaders.composition.overrides import KEY, Override, Refused
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Problem, Word
from preflight.loaders.shell.edit_ranges_and_comments import word_removal
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span
from preflight.source.spelling import nearest, typing_errors

REFUSED = "composition-refused"
DECAYS = ("constant", "linear", "cosine", "inverse-square-root", "WSD")
"""Values that Megatron's schedule accepts (megatron/core/optimizer_param_scheduler.py:236-279)."""
INCREASES = ("constant", "linear", "cosine")
VALUED = frozenset(
    [
        *("--config-name", "-cn", "--config-path", "-cp", "--config-dir", "-cd", "--package", "-p", "--cfg", "-c"),
        *("--info", "-i", "--experimental-rerun", "--experimental_rerun"),
    ]
)
"""Hydra options whose value is the next word."""
_SECOND = lazy_pattern(r"[\w./:@-]+=[\w./:@-]*")
_SWEEP = lazy_pattern(
    r"(?:choice|range|interval|glob|sort|shuffle|tag|int|float|str|bool|json_str|extend_list)\(.*", 16
)


def malformed(words: Sequence[Word]) -> Iterator[Problem]:
    """Words that Hydra's grammar rejects: the first of several in a row."""
    before = False
    skip = False
    for at, word in enumerate(words):
        text, valued, skip = word.text, skip, False
        if text is None and not word.maybe and not valued and (why := _unclosed(word)):
            yield Problem(REFUSED, why, word.span)
        if text is None or word.maybe or valued:
            before = False
            continue
        if text.startswith("-"):
            skip = text in VALUED
            before = False
            continue
        why = _why(text, [one.text or "" for one in words[at + 1 : at + 2]])
        if why and not before:
            yield Problem(REFUSED, why, word.span, everywhere=True)
        before = bool(why)


def _unclosed(word: Word) -> str:
    """Why the list of an override with an unknown part, such as a folder, is not closed, or not opened; "" if it is."""
    texts = [piece.text for piece in word.pieces]
    key, equal, value = "".join(text or "\0" for text in texts).partition("=")
    if None not in texts or not equal or "\0" in key or value[:1] in ("", "\0") or value[-1] == "\0":
        return ""
    if value[0] == "[" and "]" not in value:
        return Message("Hydra rejects the value of {key}, because its [ is not closed", key=key)
    if value[0] in "\"'" and value[-1] == "]" and "[" not in value:
        return Message("Hydra rejects the value of {key}, because its ] has no [", key=key)
    return ""


def _why(text: str, after: Sequence[str]) -> str:
    """Why a word is not an override; "" if it is one."""
    match = KEY.match(text)
    if match is None or not match["equal"]:
        if match is not None and match["sign"] == "~" and match.end() == len(text):
            return ""
        if match is not None and after and after[0].startswith("="):
            return Message("Hydra rejects {word}, which has no value; remove the space before the =", word=text)
        if "=" in text and match is None:
            return Message("Hydra rejects {word:.60}, because no override begins like this", word=text)
        return Message(
            "Hydra rejects {word:.60}, which is not KEY=VALUE; write several values as a list: KEY=[a,b]", word=text
        )
    value = text[match.end() :]
    if _SECOND.fullmatch(value):
        return Message("Hydra rejects the value {value:.60} of {key}; quote the = in it", value=value, key=match["key"])
    try:
        if not _SWEEP.match(value):
            element(value)
    except Malformed as error:
        return Message(
            "Hydra rejects the value {value:.60} of {key}: {error}", value=value, key=match["key"], error=error
        )
    return ""


def of_groups(
    contract: Contract,
    primary: str,
    overrides: Iterable[Override],
    others: Sequence[Contract] = (),
    stated: bool = False,
) -> Iterator[Problem]:
    """Overrides that choose the config of a group. others: the contracts of the other releases."""
    groups = contract.groups(primary)
    folders = {name.partition("@")[0]: name for name in groups if "@" in name}
    for one in overrides:
        value = one.node.value if one.node is not None and one.node.kind == "scalar" else None
        if not isinstance(value, str) or has_interpolation(value):
            continue
        if one.key not in groups:
            if one.key in folders and one.action == "set":
                yield _refused(one, "{key} is not a group of the defaults; {meant} is", meant=folders[one.key])
            continue
        options = groups[one.key]
        if one.action != "set":
            yield _refused(one, "{key} is already chosen by the defaults; override it without +")
        elif value not in options:
            told = _refused(
                one,
                "{label} has no {group}/{value}.yaml; {group} must be one of {options:and}{hint}",
                label=contract.label,
                group=one.key.partition("@")[0],
                value=value,
                options=tuple(options),
                hint=_hint(value, options),
            )
            elsewhere = any(value in other.groups(primary).get(one.key, ()) for other in others)
            span = one.value.span if one.value is not None else one.key_span
            yield told._replace(harmless=elsewhere and not stated, span=span)


def _hint(value: str, options: Sequence[str]) -> str:
    near = nearest(value, options, 0.6)
    return Message("; did you mean {near}?", near=near) if near else ""


def _refused(one: Override, template: str, **values: object) -> Problem:
    if "{key}" in template:
        values["key"] = one.key
    return Problem(REFUSED, Message(template, **values), one.key_span)


def of_keys(
    contract: Contract, refused: Iterable[Refused], others: Sequence[Contract] = (), stated: bool = False
) -> Iterator[Problem]:
    """Keys that the config lacks, or already has. others: the contracts of the other releases: a key that one of them
    accepts is not an error if no release is stated."""
    for kind, one in refused:
        if kind == "unknown" and not contract.has(one.key):
            having = [other for other in others if one.key in other.keys]
            found = _of_other_release(contract, one, having) if having else _unknown(contract, one)
            yield found._replace(harmless=bool(having) and not stated)
        elif kind == "exists":
            yield _existing(contract, one, others, stated)
        elif kind == "absent":
            found = _refused(one, "{key} is not in the config, so ~ cannot delete it")
            yield found._replace(harmless=any(one.key in other.keys for other in others) and not stated)


def _existing(contract: Contract, one: Override, others: Sequence[Contract], stated: bool) -> Problem:
    """A key that + cannot add, because the config has it; if only some releases have it, a warning names them."""
    found = _refused(one, "{key} already has a value, which + cannot change; write {key}= or ++{key}=")
    having = [other.release for other in (contract, *others) if other is contract or one.key in other.keys]
    if stated or len(having) == 1 + len(others):
        return found
    template = "{key} already has a value in {releases:and}, where + cannot change it; ++{key}= works in all releases"
    named = tuple(sorted(having, key=numbers))
    return found._replace(harmless=True, message=Message(template, key=one.key, releases=named))


def _of_other_release(contract: Contract, one: Override, having: Sequence[Contract]) -> Problem:
    """A key of other releases: it is moved to its new place, or removed if its value is their default."""
    releases = tuple(other.release for other in having)
    moved = _moved_to(contract, one, having)
    if moved:
        hint = Message("; it is now {near}", near=moved)
    elif len(releases) == 1:
        hint = Message("; {releases:and} has it", releases=releases)
    else:
        hint = Message("; {releases:and} have it", releases=releases)
    fix: tuple[str, Span, str] | None = None
    if moved:
        fix = (f"write {moved}", one.key_span, moved)
    elif _is_default(one, having) and (gone := word_removal(one.word)) is not None:
        fix = (Message("remove {key}, which is set to its default", key=one.key), gone, "")
    keys = (one.key, moved) if moved else (one.key,)
    return Problem(
        UNREAD,
        _no_key(contract, one, hint),
        one.key_span,
        fix=fix,
        keys=keys,
        unknown_option=True,
        safe=fix is not None,
    )


def _moved_to(contract: Contract, one: Override, having: Sequence[Contract]) -> str:
    """The only key of the same name below the same section that no release with the old key has; "" if there is no such
    key, or the value is not a single word."""
    section, _, name = one.key.rpartition(".")
    if one.node is None or one.node.kind != "scalar" or not isinstance(contract.at(section.split(".")), dict):
        return ""
    below = [key for key in contract.keys if key.startswith(f"{section}.") and key.rpartition(".")[2] == name]
    return below[0] if len(below) == 1 and not any(below[0] in other.keys for other in having) else ""


def _is_default(one: Override, having: Sequence[Contract]) -> bool:
    """Whether an override sets a key to the default that it has in each of some releases."""
    if one.action != "set" or one.node is None or one.node.kind != "scalar":
        return False
    value, path = one.node.value, one.path
    return all(type(default := other.at(path)) is type(value) and default == value for other in having)


def _no_key(contract: Contract, one: Override, hint: str) -> Message:
    return Message(
        "{front_end} has no key {key} and rejects the run{hint}", front_end=contract.label, key=one.key, hint=hint
    )


def _unknown(contract: Contract, one: Override) -> Problem:
    """A key without + that no release has: a misspelling, or a key that must be added with +."""
    length, fields = contract.fields_at(one.path)
    addable = bool(fields) and one.path[length] in fields
    inside = next((n for n in range(len(one.path) - 1, 0, -1) if isinstance(contract.at(one.path[:n]), dict)), 0)
    plain = inside > 0 and not fields and (not contract.at(one.path[:inside]) or "override" in one.path[inside - 1])
    meant = "" if plain or addable else contract.meant(one.key)
    hint: str = Message("; did you mean {near}?", near=meant) if meant else ""
    if plain or addable:
        hint = Message("; +{key} adds it", key=one.key)
    beside = meant and meant.rpartition(".")[0] == one.key.rpartition(".")[0]
    fix = (f"write {meant}", one.key_span, meant.rpartition(".")[2]) if beside else None
    return Problem(UNREAD, _no_key(contract, one, hint), one.key_span, fix=fix, unknown_option=True)


def of_another_engine(contract: Contract, refused: Iterable[Refused]) -> Iterator[Problem]:
    """The first key that a config without Megatron lacks: no group selects the config that has it."""
    for kind, one in refused:
        if kind == "unknown" and not contract.has(one.key):
            template = "{front_end} has no key {key} with model_engine={engine} and rejects the run{hint}"
            hint: str = "; model_engine=megatron chooses Megatron's config" if ".megatron." in one.key else ""
            if near := typing_errors(one.key, ("model_engine",)):
                hint = Message("; did you mean {near}?", near=near[0])
            message = Message(template, front_end=contract.label, key=one.key, engine=contract.engine, hint=hint)
            yield Problem(UNREAD, message, one.key_span, unknown_option=True)
            return


RESUMING = "trainer.resume_mode"
ALWAYS = ("actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model")
"""Sections that every run instantiates as a class."""


def of_classes(
    contract: Contract,
    overrides: Iterable[Override],
    others: Sequence[Contract] = (),
    stated: bool = False,
    made: Sequence[str] = ALWAYS,
) -> Iterator[Problem]:
    """Keys that + adds to a section whose class has no such field. made: the sections that a run turns into classes."""
    for one in overrides:
        if one.action not in ("add", "force") or not one.key.startswith(tuple(f"{name}." for name in made)):
            continue
        length, fields = contract.fields_at(one.path)
        if not fields or one.path[length] in fields:
            continue
        name = one.path[length]
        near = nearest(name, list(fields), 0.75)
        hint: str = Message("; did you mean {near}?", near=near) if near else ""
        elsewhere = any(name in other.fields_at(one.path)[1] for other in others)
        message = Message(
            "{front_end} turns {section} into a class that has no field {name}, so it rejects the run{hint}",
            front_end=contract.label,
            section=".".join(one.path[:length]),
            name=name,
            hint=hint,
        )
        yield Problem(REFUSED, message, one.key_span, harmless=elsewhere and not stated)


def of_interpolations(config: Composed, overrides: Iterable[Override]) -> Iterator[Problem]:
    """Interpolations of a key that the config lacks."""
    for one in overrides:
        node = one.node
        whole = one.value is not None and one.value.text is not None  # not an unset shell variable
        lost = config.dead(one.path, node) if whole and node is not None and node.kind == "scalar" else ""
        if "." in lost and node is not None:  # a bare name may be a variable of the shell
            yield Problem(
                REFUSED,
                Message("{key} refers to {lost}, which the config does not have", lost=lost, key=one.key),
                node.span,
            )


def of_choices(
    contract: Contract,
    config: Composed,
    own: Source,
    more: Mapping[str, Sequence[object]],
    made: Iterable[str],
    mild: Sequence[str] = (RESUMING,),
) -> Iterator[Problem]:
    """Typed values that the program does not accept. more: keys with their accepted values, in addition to those of
    classes; made: the sections from which classes are instantiated; mild: keys whose other values are warnings, since
    trainers that find a checkpoint resume from it in any mode (verl/trainer/ppo/ray_trainer.py:1067-1083)."""
    for key, choices in {**dict(contract.choices(made)), **more}.items():
        found = config.at(*key.split("."))
        node = found.node
        typed = node is not None and node.kind == "scalar" and node.span.source is not own and found.path[-1:] != ()
        if node is None or not typed or not found.known or not choices or found.value in choices:
            continue
        if not isinstance(found.value, str | int | None):
            continue
        told = [str(one) for one in choices]
        hint = _hint(str(found.value), told)
        message = Message(
            "{key} accepts {choices:and}, not {value}{hint}", key=key, choices=tuple(told), value=found.value, hint=hint
        )
        yield Problem(REFUSED, message, node.span, harmless=key in mild)


def of_missing(document: Document, missing: Sequence[str]) -> Iterator[Problem]:
    """Missing parts of a config for which its folder has a file with a similar name; other parts are unknown, because a
    config may have been copied without them."""
    named = document.tree.get("defaults") if document.tree is not None else None
    path = document.source.path
    for entry in (entry for item in (named.items if named is not None else ()) for entry in item.entries):
        group = str(entry.key.value)
        folder = path.parent / group if path is not None else None
        if "$" in group or folder is None or not folder.is_dir():
            continue
        for node in entry.value.items or (entry.value,):
            option = str(node.value)
            if f"{group}/{option}" not in missing:
                continue
            near = nearest(option, sorted(one.stem for one in folder.iterdir() if one.suffix == ".yaml"), 0.6)
            if near and near != option:  # that one exists, and is not opened
                template = "there is no {group}/{option}.yaml; did you mean {near}?"
                message = Message(template, group=group, option=option, near=near)
                yield Problem(REFUSED, message, node.span, fix=(f"write {near}", node.span, near))
