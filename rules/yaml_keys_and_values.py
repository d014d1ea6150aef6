"""Checks for keys that nothing reads, and for values that YAML reads as a different type."""

import re
from collections.abc import Iterator
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Related, Safety, Severity, rule
from preflight.dialects.mindformers.known_keys import Stray, strays
from preflight.job import OF_YAML, fix_of
from preflight.lint.value_kinds import spellings, ways
from preflight.loaders.document import Document, Node, Problem, walk
from preflight.source.finding import Key, Kind
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import is_other_phrase, meant_boolean

_NUMBER = lazy_pattern(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d{1,3}")
_A_LINE = lazy_pattern(rf"^{_NUMBER.pattern}$", re.MULTILINE)


@rule(
    id="float-as-string",
    severity=Severity.WARNING,
    frameworks=("mindformers", "pynative", "megatron-yaml"),
    beside=("wrong-type", "pynative-wrong-type", "pynative-network-numbers", "class-argument-refused"),
)
def float_as_string(job: Job) -> Iterator[Finding]:
    """YAML reads a number in scientific notation as text.

    ## What it does
    Finds plain YAML scalars such as `1e-5` that look like numbers but lack the decimal point or the exponent sign that
    YAML 1.1 requires. JSON files are not checked. Neither are Megatron's functional-test files, whose values reach the
    command line as text.

    ## Why is this bad?
    PyYAML, and therefore the framework, reads `1e-5` as the text "1e-5". Some settings are rejected with a type error.
    Others are passed on as text, and fail or are silently ignored much later.

    ## Example
        layernorm_epsilon: 1e-5

    Use instead:

        layernorm_epsilon: 1.0e-5

    ## Fix safety
    Safe: the fix writes the same number in a form that YAML reads as a number. If the exponent has no sign (`1.e5`),
    both possible numbers are offered but neither is applied, because the missing sign is unknown. A learning rate
    greater than 1 is not applied either.

    ## References
    YAML 1.1, the float type; PyYAML resolver: a float has a decimal point, and its exponent has a sign
    """
    for document in job.documents:
        if (
            document.tree is None
            or document.source.name.endswith(".json")
            or not _A_LINE.search("\n".join(document.texts))
        ):
            continue
        seen: set[int] = set()
        for key, node, entry in walk(document.tree):
            text = node.value
            if node.style or not isinstance(text, str) or id(node) in seen or not _NUMBER.fullmatch(text):
                continue
            seen.add(id(node))
            fixes = ways(text, key, node.span) if document is job.documents[0] else ()
            within = next((part for part in reversed(key) if isinstance(part, str)), "a list")
            name = key[-1] if entry is not None else Message("an entry of {within}", within=within)
            number, *others = spellings(text)
            message = Message(
                "{name} is the string {text!r}, not a number; write {number}", name=name, text=text, number=number
            )
            if others:
                message = Message(
                    "{name} is the string {text!r}, not a number, because the exponent needs a sign; write {number} "
                    "or {other}",
                    name=name,
                    text=text,
                    number=number,
                    other=others[0],
                )
            yield Finding(message, node.span, key=key, fix=next(iter(fixes), None), alternatives=fixes[1:])


_WORDS = {"true": True, "false": False}
_NAMES = ("use_", "enable_", "is_", "do_")


@rule(
    id="misspelt-boolean",
    severity=Severity.WARNING,
    beside=("wrong-type", "pynative-wrong-type", "class-argument-refused", "bad-recompute-value"),
    reads=(OF_YAML,),
)
def misspelt_boolean(job: Job) -> Iterator[Finding]:
    """A setting has a string instead of True or False, and Python treats the string as true.

    ## What it does
    Finds plain YAML scalars that are nearly `True` or `False` (`Flase`, `Ture`, `Fasle`), and quoted `"True"` or
    `"False"` if the setting is a switch, judging by its name or its default.

    ## Why is this bad?
    In Python, any non-empty text is true. `use_parallel: Flase` starts distributed training, and `"False"` turns a
    setting on.

    ## Example
        use_parallel: Flase

    Use instead:

        use_parallel: False

    ## Fix safety
    Unsafe: the setting gets the intended value instead of the opposite.

    ## References
    YAML 1.1, the boolean type; PyYAML resolver: only the words yes, no, true, false, on, off are booleans
    """
    for document in job.documents:
        if document.kind == "yaml" and not document.source.name.endswith(".json") and any(map(_near, document.texts)):
            yield from _of(job, document)


def _of(job: Job, document: Document) -> Iterator[Finding]:
    assert document.tree is not None
    seen: set[int] = set()
    for key, node, entry in walk(document.tree):
        if entry is None or not isinstance(node.value, str) or id(node) in seen:
            continue
        seen.add(id(node))
        meant = _meant(node, switch=str(key[-1]).startswith(_NAMES) or _switches(job, key))
        if meant is not None:
            shown = node.span.text
            fix = (
                Fix(f"write {meant}", (Edit("set", key, meant),), Safety.UNSAFE)
                if document is job.documents[0]
                else None
            )
            message = Message(
                "{name} is the string {shown}, which counts as true; did you mean {meant}?",
                name=key[-1],
                shown=shown,
                meant=meant,
            )
            yield Finding(message, node.span, key=key, fix=fix)


@lru_cache(maxsize=4096)
def _near(text: str) -> bool:
    """Whether a text is, or nearly is, the value of a switch."""
    return meant_boolean(text) is not None


def _switches(job: Job, key: Key) -> bool:
    """Whether the framework's own default of a setting is True or False."""
    name = ".".join(map(str, key))
    names = (
        (name, name.replace("model.model_config.", "mcore.", 1)) if name.startswith("model.model_config.") else (name,)
    )
    return any(isinstance(job.arguments.default(one).raw, bool) for one in names)


def _meant(node: Node, *, switch: bool) -> bool | None:
    """The boolean that a text most likely means, or None."""
    text = str(node.value).strip()
    if node.style in ("|", ">"):
        return None
    lower = text.lower()
    if lower in _WORDS:
        return _WORDS[lower] if switch or not node.style else None
    return None if node.style else meant_boolean(lower)


MOST_LETTERS = 3
"""Up to this many extra or missing letters are a typo; with more, it may be a different key."""

_FEW = "{where} has keys that this model does not read: {names}"
_MANY = "{where} has keys that this model does not read: {names} and {more} more"


@rule(
    id="unknown-key",
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING, Severity.NOTE),
    kind=Kind.OPTIONS,
    frameworks=("mindformers",),
)
def unknown_key(job: Job) -> Iterator[Finding]:
    """The framework does not know a key of this section.

    ## What it does
    Compares the keys of a graph-mode MindFormers config with those of its release. It covers the strict sections (since
    1.5 `parallel_config`, `recompute_config`, `swap_config`, `moe_config`, `runner_config` and `monitor_config`; before
    1.5 the sections that are passed to a class), `trainer`, the sections that are passed to MindSpore (`parallel`,
    `context`), and `model_config`. In the datasets and at the top level, it reports a key only if a known key is very
    similar. In a checkout of MindFormers, the keys of `model_config` are the arguments of the class in that checkout.
    For a release that preflight does not know, the finding is an error only if the key is misspelled and the known
    releases before and after reject the key.

    ## Why is this bad?
    In a strict section, the file is rejected when it is loaded. Elsewhere the key is silently ignored, and the run
    trains with the default instead of the intended value: `num_hidden_layers` in a `LlamaConfig` gives 32 layers.

    ## Example
        parallel_config:
          model_paralel: 8

    Use instead:

        parallel_config:
          model_parallel: 8

    ## Fix safety
    Unsafe: the value takes effect once the key is spelled correctly. If the framework would reject the key as it is,
    removing it is offered as well.

    ## References
    MindFormers v1.5.0, mindformers/tools/register/template.py:116, Config._update_value
    MindFormers v1.7.0, mindformers/parallel_core/transformer_config_utils.py:515, convert_to_transformer_config
    MindFormers 2.1.0, mindformers/parallel_core/config_converter.py:88, ConfigConverter.convert
    """
    kind = job.arguments.get("kind").raw
    if kind not in ("legacy", "mcore"):
        return
    config = next((d.tree for d in job.documents[1:] if d.source.name.endswith("config.json")), None)
    if (tree := job.arguments.tree) is None:
        return
    found = [one for one in strays(tree, kind, job.target.version, config) if not _is_taken(one, tree, job)]
    yield from (
        _finding(stray, fixable=stray.entry.key.span.source is job.documents[0].source)
        for stray in found
        if stray.weight != "note"
    )
    yield from _unused([stray for stray in found if stray.weight == "note"])


def _is_taken(stray: Stray, tree: Node, job: Job) -> bool:
    """Whether the class that receives a section of the network takes the key, according to the local checkout, or
    MindRLHF may read it: the config of a network keeps unknown keys (mindformers/models/configuration_utils.py:224), and
    MindRLHF passes some of them to its engine (mindrlhf/worker/infer_worker.py:469 at 3af29f6c)."""
    if stray.key[:2] == ("model", "model_config") and job.arguments.certainty.completed == "MindRLHF":
        return True
    kind = tree.get(*stray.key[:-1], "type") if stray.key[:1] == ("model",) else None
    takes = job.arguments.certainty.takes(str(kind.value)) if kind is not None else None
    return takes is not None and stray.key[-1] in takes


def _unused(found: list[Stray]) -> Iterator[Finding]:
    """One finding for all keys that nothing reads and that resemble no known key."""
    if found:
        names = tuple(str(stray.key[-1]) for stray in found[:8])
        message = Message(_MANY if len(found) > 8 else _FEW, where=found[0].where, names=names, more=len(found) - 8)
        related = tuple(Related(stray.entry.key.span) for stray in found[1:100])
        yield Finding(message, found[0].entry.key.span, related, key=found[0].key, severity=Severity.NOTE)


def _finding(stray: Stray, *, fixable: bool) -> Finding:
    name, weight = stray.key[-1], Severity(stray.weight)
    ignored = "no loader accepts it" if stray.where.endswith("data_loader") else "it is silently ignored"
    fate = "the framework rejects it" if weight is Severity.ERROR else ignored
    hint = Message("; did you mean {near!r}?", near=stray.near) if stray.near else ""
    slip = len(stray.near) - len(name) if isinstance(name, str) else 0
    fix = (
        Fix(f"rename it to {stray.near}", (Edit("rename", stray.key, stray.near),), offered=abs(slip) > MOST_LETTERS)
        if stray.near and fixable
        else None
    )
    gone = Fix(f"remove {name}", (Edit("remove", stray.key),), Safety.UNSAFE) if weight is Severity.ERROR else None
    message = Message(
        "{name!r} is not a key of {where}, and {fate}{hint}", name=name, where=stray.where, fate=fate, hint=hint
    )
    others = (gone,) if fix is not None and gone is not None else ()
    return Finding(
        message,
        stray.entry.key.span,
        key=stray.key,
        fix=fix,
        alternatives=others,
        upstream=stray.upstream,
        severity=weight,
    )


@rule(id="duplicate-key", severity=Severity.WARNING, sometimes=(Severity.NOTE,), noticed=True)
def duplicate_key(job: Job) -> Iterator[Finding]:
    """A key appears twice in one mapping, and only the last value is used.

    ## What it does
    Reports keys that appear twice in the same mapping. The finding is a note if the values are equal, and a warning if
    they differ.

    ## Why is this bad?
    PyYAML, and therefore the framework, silently uses the last one. A second `parallel_config:` replaces the first
    completely: settings that appear only in the first one are lost.

    ## Example
        runner_config: {batch_size: 1}
        runner_config: {epochs: 2}

    Use instead:

        runner_config: {batch_size: 1, epochs: 2}

    ## Fix safety
    Safe: the fix removes the first key, which never had an effect, so the run stays the same. Check which of the two
    values was intended.

    ## References
    PyYAML, SafeConstructor.construct_mapping; YAML 1.1, section 3.2.1.3 requires unique keys
    """
    for document in job.documents:
        for problem in document.problems:
            if problem.kind == "duplicate-key":
                related = tuple(Related(span, "the one that takes effect") for span in problem.related)
                gone = (Edit("remove", (), span=problem.span),)
                fix = Fix("remove the key that has no effect", gone, Safety.SAFE, offered=not problem.harmless)
                yield Finding(
                    problem.message, problem.span, related, fix, severity=Severity.NOTE if problem.harmless else None
                )


@rule(id="unread-key", severity=Severity.ERROR, sometimes=(Severity.WARNING,), kind=Kind.OPTIONS, noticed=True)
def unread_key(job: Job) -> Iterator[Finding]:
    """The program that starts Megatron does not know this key.

    ## What it does
    Compares every key with those that the program knows, based on the sources of its release, and reports what happens
    to unknown keys: slime silently drops the option, Megatron-Bridge skips a key of a YAML file with a warning, and
    ms-swift and MindSpeed-RL reject the run. The finding is an error if the run fails, and a warning if the run
    continues or if another release has the key.

    ## Why is this bad?
    The run trains without the setting, or fails at startup after the job has waited in the queue.

    ## Example
        ray job submit -- python3 train.py --rollout-batch-size 32 --max-token-per-gpu 8192

    Use instead:

        ray job submit -- python3 train.py --rollout-batch-size 32 --max-tokens-per-gpu 8192

    ## Fix safety
    Unsafe: the nearest key is a guess. The fix is safe if the release has moved the key, or if the release has removed
    it and the given value is its default.

    ## References
    slime v0.3.1, slime/backends/megatron_utils/arguments.py:186, ignore_unknown_args
    """
    for problem in job.arguments.problems:
        if problem.kind == "unread-key":
            severity = Severity.WARNING if problem.harmless else None
            yield Finding(
                problem.message, problem.span, fix=_renamed(job, problem), key=(problem.span.text,), severity=severity
            )


def _renamed(job: Job, problem: Problem) -> Fix | None:
    """The fix that writes the name that was probably meant, unless that name is already present; a safe fix is used as
    it is."""
    if problem.fix is None and problem.safe and problem.keys:
        return _moved(job, *problem.keys) if problem.span.source is job.documents[0].source else None
    if problem.fix is None or any(v.key[-1:] == (problem.fix[2],) for v in job.arguments.written.values()):
        return None
    if problem.safe:
        return fix_of(problem, Safety.SAFE) if problem.fix[1].source is job.documents[0].source else None
    typed, meant = problem.span.text.partition("=")[0], problem.fix[2]
    if not problem.in_use and is_other_phrase(typed.strip("-").rpartition(".")[2], meant.strip("-").rpartition(".")[2]):
        return None
    key = problem.keys or (problem.span.text.partition("=")[0],)
    return Fix(problem.fix[0], (Edit("rename", key, problem.fix[2], run=job.documents[0].run),))


def _moved(job: Job, old: str, new: str) -> Fix | None:
    """The fix that gives a key of a YAML file its value at its new place."""
    place, tree = tuple(old.split(".")), job.documents[0].tree
    node = tree.get(*place) if tree is not None else None
    if node is None:
        return None
    edits = (Edit("set", tuple(new.split(".")), node.value), Edit("remove", place))
    return Fix(Message("write {near}", near=new), edits, Safety.SAFE)
