"""The release and options of a run, derived from the checkout around it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from preflight.dialects import Surroundings
from preflight.dialects.device_and_release import (
    Identity,
    has_checks,
    identify,
    most_like,
    named_by_environment,
    named_in_text,
    undescribed,
)
from preflight.dialects.megatron.derivation_namespace import Run
from preflight.dialects.megatron.framework_version import is_telling, versions
from preflight.dialects.megatron.mindspeed_renamed_arguments import RENAMED
from preflight.dialects.megatron.options import RELEASES, Flag, Table, lists_choice, releases_that_take, releases_with
from preflight.dialects.megatron.parser_input import split_by_old_runners
from preflight.loaders.document import Document
from preflight.run.arguments import Certainty
from preflight.run.request import Target, lacking, patch
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.program.checkout.enclosing_checkout import Checkout
    from preflight.program.checkout.parser_options import OwnOption


def possible_releases(target: Target, typed: Mapping[str, str | None]) -> tuple[str, ...]:
    """Releases whose parsers accept the options. typed: the options, each with the first word of its value."""
    return (*releases_that_take(target.framework, typed.items()), *_beneath(target, typed))


def _beneath(target: Target, typed: Mapping[str, str | None]) -> tuple[str, ...]:
    """MindSpeed releases that a MindSpeed-LLM run may use as well: their parsers have all its options."""
    if target.framework != "mindspeed-llm" or not all(releases_with("mindspeed", option) for option in typed):
        return ()
    return tuple(f"mindspeed@{release}" for release in releases_that_take("mindspeed", typed.items()))


def stack_of(framework: str) -> Callable[[str], Mapping[str, str]]:
    """The framework versions that take part in a run of a release; versions of other frameworks as `name@release`."""

    def stack(release: str) -> Mapping[str, str]:
        other, _, version = release.rpartition("@")
        return versions(Target(other or framework, version))

    return stack


PLAIN = "megatron"
FAMILY = ("mindspeed-llm", PLAIN, "mindspeed")
_IMPORTS = lazy_pattern(r"^[ \t]*(?:from|import)[ \t]+(mindspeed\w*|modellink|ascendspeed|megatron)\b", re.MULTILINE)
_PLAIN = ("int", "float", "str", "true", "false")


def identified(document: Document, typed: Mapping[str, str | None], surroundings: Surroundings) -> Identity | None:
    """Facts that the checkout around a document shows about the run; None if there are none, or the release is
    stated."""
    if surroundings.request.target is not None:
        return None
    checkout = surroundings.checkout(document)
    if checkout is None or _is_another(document, typed, checkout, surroundings):
        return _named(document, typed, surroundings)
    plain = _starts_plainly(document, checkout) and not _is_on_top(typed, checkout)
    found = identify(checkout, (PLAIN,) if plain else FAMILY)
    if found is None or (not found.target.version and found.package is None):
        found = _named(document, typed, surroundings) or found
    if checkout.patches:
        target = found.target if found is not None else Target("megatron")
        return Identity(target, checkout.patches[0], patched=True)
    if found is None:
        return None
    if found.target.framework == "megatron" and _is_on_top(typed, checkout):
        return None
    return found


def _starts_plainly(document: Document, checkout: Checkout) -> bool:
    """Whether the entry script is in a checkout that contains Megatron-LM, and imports no framework that is built on
    it."""
    if checkout.package(PLAIN) is None:
        return False
    text = next((text for name in _entries(document, checkout) if (text := checkout.files.text(name))), "")
    return set(_IMPORTS.findall(text)) == {PLAIN}


def _entries(document: Document, checkout: Checkout) -> Iterator[str]:
    """The names that the entry script of a launch may have in a checkout."""
    entry = document.launch.entry.text if document.launch is not None else None
    if not entry or not entry.endswith(".py"):
        return
    beside = os.path.dirname(document.source.path) if document.source.path is not None else checkout.root
    for place in (
        os.path.join(beside, entry),
        os.path.join(checkout.root, entry),
        os.path.join(checkout.root, os.path.basename(entry)),
    ):
        inside = os.path.relpath(os.path.abspath(place), checkout.root)
        if not inside.startswith(".."):
            yield inside


def _named(document: Document, typed: Mapping[str, str | None], surroundings: Surroundings) -> Identity | None:
    """The release that a document names, or its environment contains; not a release of plain Megatron-LM if the run has
    options of a framework built on it."""
    found = named_in_text(document, FAMILY) or named_by_environment(document, surroundings, FAMILY)
    on_top = found is not None and found.target.framework == "megatron" and any(map(is_telling, typed))
    return None if on_top else found


DESCRIBED = {"mindspeed-llm": Target("mindspeed-llm", "2.2.0")}
"""The oldest release with all of its checks described."""


def read_as(found: Identity) -> Target:
    """The release whose rules apply: for a modified older release the code shows which checks it contains."""
    oldest = DESCRIBED.get(found.target.framework)
    older = (
        oldest is not None
        and len(numbers(found.target.version)) > 0
        and numbers(found.target.version) < numbers(oldest.version)
    )
    return oldest if found.altered and oldest is not None and older else found.target


def _is_another(
    document: Document, typed: Mapping[str, str | None], checkout: Checkout, surroundings: Surroundings
) -> bool:
    """Whether a launch whose path points elsewhere runs other code than this checkout. Options that no release has
    decide, depending on whether the checkout has them; otherwise the name of the folder decides.
    """
    around = surroundings.around
    where = around.located(document) if around is not None and not surroundings.request.program else None
    if where is None or where.sure != "likely" or not where.called:
        return False
    own = [option for option in typed if not any(releases_with(name, option) for name in FAMILY)]
    if own:
        return not _brings(checkout, own)
    if _own_choices(typed, checkout):
        return False
    return where.called.lower() not in os.path.basename(checkout.root).lower()


def _own_choices(typed: Mapping[str, str | None], checkout: Checkout) -> bool:
    """Whether a value that no release accepts is one of the choices in the checkout."""
    odd = {
        option: value
        for option, value in typed.items()
        if value is not None and not any(lists_choice(name, option, value) for name in FAMILY)
    }
    packages = [package for name in FAMILY if odd and (package := checkout.package(name)) is not None]
    listed = (one for package in packages for one in package.options if one.option in odd)
    return any(odd[one.option] in map(str, one.choices or ()) for one in listed)


def _is_on_top(typed: Mapping[str, str | None], checkout: Checkout) -> bool:
    """Whether a run in a Megatron-LM checkout has options that exist only in frameworks built on it."""
    telling = [option for option in typed if is_telling(option)]
    return bool(telling) and not _brings(checkout, telling)


def _brings(checkout: Checkout, options: Iterable[str]) -> bool:
    """Whether code of a checkout names all of these options, or its parser generates them from the fields of a
    class."""
    left = frozenset(options) - checkout.mentioned
    packages = [package for name in FAMILY if left and (package := checkout.package(name)) is not None]
    return left.issubset({one.option for package in packages for one in package.options})


def certainty(
    run: Run,
    document: Document,
    target: Target,
    typed: Mapping[str, str | None],
    found: Identity | None,
    surroundings: Surroundings,
) -> Certainty:
    """How certain it is that a run is read as the right release."""
    checkout = surroundings.checkout(document) if found is not None or surroundings.request.program else None
    sourced = checkout is not None and checkout.package(target.framework) is not None
    return _certainty(run, document, target, typed, found, surroundings)._replace(sourced=sourced)


def _certainty(
    run: Run,
    document: Document,
    target: Target,
    typed: Mapping[str, str | None],
    found: Identity | None,
    surroundings: Surroundings,
) -> Certainty:
    wanted = surroundings.request.target
    asked = wanted is not None
    known = run.value("entry_is_known").raw is True
    if asked or (found is not None and found.proven):
        evidence = found.evidence if found is not None else ""
        lacks = found.package.lacks if found is not None and found.package is not None and not asked else frozenset()
        if wanted is not None and patch(wanted).get("of") == target.version:
            evidence, lacks = Message("with the changes in {version}", version=wanted.version), lacking(wanted)
        return Certainty(True, known, stack=stack_of(target.framework), evidence=evidence, lacks=lacks)
    doubted = {} if document.tree is None else split_by_old_runners(document.tree)
    checkout = surroundings.checkout(document)
    if found is not None and found.patched:
        sets = checkout.patched_arguments if checkout is not None else frozenset[str]()
        extends = checkout is None or not checkout.renamed
        return Certainty(
            False,
            known,
            doubted,
            evidence=found.evidence,
            has=lambda rule: False,
            patched=extends,
            sets=sets,
            older=_dated(document),
        )
    if found is not None and found.altered and checkout is not None:
        has = has_checks(checkout, versions(found.target), _other_names(run, found))
        told = Certainty(False, known, doubted, evidence=found.evidence, has=has, named=undescribed(found))
        return told._replace(parsed=checkout.package("megatron") is not None, like=most_like(found))
    return _bounded(document, target, typed, found, Certainty(False, known, doubted))


def _bounded(
    document: Document, target: Target, typed: Mapping[str, str | None], found: Identity | None, begun: Certainty
) -> Certainty:
    """The certainty of a run that is bounded by its options, and by a file that names its release."""
    releases = possible_releases(target, typed)
    inside = tuple(one for one in releases if found is not None and one in found.among)
    if found is not None and found.target.version in releases:
        releases = (found.target.version,)
    elif inside and found is not None and found.target.framework == target.framework:
        return begun._replace(releases=inside, stack=stack_of(target.framework), within=found.evidence)
    evidence = (
        found.evidence if found is not None and found.target.version else ""
    )  # otherwise only the framework is certain
    lacks = lacking(found.target) if found is not None else frozenset[str]()
    stack, named = stack_of(target.framework), undescribed(found)
    told = begun._replace(releases=releases, stack=stack, evidence=evidence, lacks=lacks, named=named)
    if evidence or not (older := _of_an_older_release(typed) or _dated(document)):
        return told
    entry = document.launch.entry.text if document.launch is not None else None
    named = f"{target.framework} before {RELEASES[target.framework][-1]}"
    return told._replace(older=older, older_entry=os.path.basename(entry or "") in GONE_ENTRIES, named=named)


GONE_ENTRIES = ("pretrain_gpt2.py", "evaluate_gpt2.py", "generate_samples_gpt2.py", "pretrain_albert.py")
"""Entry scripts of releases before the described ones."""


GONE = {
    "--batch-size": ("--micro-batch-size",),
    "--model-parallel-size": ("--tensor-model-parallel-size", "--pipeline-model-parallel-size"),
    "--warmup": ("--lr-warmup-fraction", "--lr-warmup-iters", "--lr-warmup-samples"),
    "--checkpoint-activations": ("--recompute-activations", "--recompute-granularity"),
}
"""Options that all described releases have only to refuse them, each with its replacements."""


DATED = lazy_pattern(r"(?<![\w-])(?:PAI-)?Megatron-LM-2[0-3][01]\d[0-3]\d(?!\d)")
"""Copies named after the day of their source, as in Pai-Megatron-Patch: those before 2024 are older than 0.5."""


def _dated(document: Document) -> str:
    """Why a launch that names such a copy belongs to a release before the described ones; "" if it names none."""
    sources = (document.source, *((document.launch.entry.span.source,) if document.launch is not None else ()))
    texts = (source.text for source in sources if "Megatron-LM-2" in source.text)
    named = next((one[0] for text in texts if (one := DATED.search(text)) is not None), None)
    return Message("{name} is older than the releases that preflight knows", name=named) if named else ""


OF_2_5 = frozenset(
    (
        "accumulate-allreduce-grads-in-fp32 adam-beta1 adam-beta2 adam-eps adlr-autoresume adlr-autoresume-interval "
        "apply-residual-connection-post-layernorm attention-dropout attention-softmax-in-fp32 batch-size bert-load "
        "bert-no-binary-head bf16 biencoder-projection-dim biencoder-shared-query-context-model block-data-path "
        "checkpoint-activations checkpoint-num-layers clip-grad data-impl data-path dataloader-type "
        "decoder-seq-length distribute-checkpointed-activations distributed-backend embedding-path encoder-seq-length "
        "eod-mask-loss epochs eval-interval eval-iters evidence-data-path exit-duration-in-mins exit-interval "
        "ffn-hidden-size finetune fp16 fp16-lm-cross-entropy fp32-residual-connection global-batch-size "
        "hidden-dropout hidden-size hysteresis ict-head-size ict-load img-dim indexer-batch-size indexer-log-interval "
        "init-method-std init-method-xavier-uniform initial-loss-scale keep-last kv-channels layernorm-epsilon "
        "lazy-mpu-init load log-batch-size-to-tensorboard log-interval log-memory-to-tensorboard "
        "log-num-zeros-in-grad log-params-norm log-timers-to-tensorboard log-validation-ppl-to-tensorboard loss-scale "
        "loss-scale-window lr lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction lr-warmup-iters "
        "lr-warmup-samples make-vocab-size-divisible-by mask-prob max-position-embeddings merge-file micro-batch-size "
        "min-loss-scale min-lr mmap-warmup model-parallel-size no-bias-dropout-fusion no-bias-gelu-fusion "
        "no-load-optim no-load-rng no-log-learnig-rate-to-tensorboard no-log-loss-scale-to-tensorboard "
        "no-masked-softmax-fusion no-query-key-layer-scaling no-save-optim no-save-rng "
        "no-scatter-gather-tensors-in-pipeline num-attention-heads num-channels num-classes num-layers "
        "num-layers-per-virtual-pipeline-stage num-workers onnx-safe openai-gelu optimizer overlapping-eval "
        "override-lr-scheduler patch-dim pipeline-model-parallel-size pretrained-checkpoint query-in-block-prob "
        "rampup-batch-size reset-attention-mask reset-position-ids retriever-report-topk-accuracies "
        "retriever-score-scaling retriever-seq-length sample-rate save save-interval seed seq-length sgd-momentum "
        "short-seq-prob split strict-lambada task tensor-model-parallel-size tensorboard-dir tensorboard-log-interval "
        "tensorboard-queue-size titles-data-path tokenizer-type train-data train-iters train-samples "
        "use-checkpoint-lr-scheduler use-contiguous-buffers-in-ddp use-cpu-initialization use-one-sent-docs "
        "valid-data vocab-extra-ids vocab-file warmup weight-decay"
    ).split()
)
"""The options of Megatron-LM v2.5, without dashes: the last release with --checkpoint-activations, and of its tasks."""


def _of_an_older_release(typed: Mapping[str, str | None]) -> str:
    """Why a launch belongs to a release before the described ones: several of its options have been removed since, and
    it uses none of their replacements, or v2.5 has all options that a release has; "" if it does not."""
    gone = tuple(option for option in GONE if option in typed)
    later = (option for option in typed if option.removeprefix("--") not in OF_2_5)
    if gone == ("--checkpoint-activations",) and not any(releases_with(name, one) for one in later for name in FAMILY):
        return Message("{option} belongs to a release that is older than all known releases", option=gone[0])
    if len(gone) < 2 or any(option in typed for new in GONE.values() for option in new):
        return ""
    return Message(
        ("the options {options:and} belong to a release that is older than all known releases"), options=gone[:2]
    )


def _other_names(run: Run, found: Identity) -> dict[str, str]:
    """Arguments for which the checkout uses another name than the release, for the same option."""
    own = found.package.options if found.package is not None else ()
    known = {one.dest: run.table.options[one.option].dest for one in own if one.option in run.table.options}
    newest = {ours: RENAMED.get(theirs, (theirs,))[0] for ours, theirs in known.items()}
    return {ours: theirs for ours, theirs in newest.items() if ours != theirs}


def own_table(table: Table, identity: Identity | None, checkout: Checkout | None, document: Document) -> Table:
    """The options of a release, with those that the checkout's parser and entry script add or change."""
    own: dict[str, OwnOption] = {}
    if checkout is not None and identity is not None:
        own.update((one.option, one) for one in _options_beneath(checkout, identity.target))
    if identity is not None and (identity.altered or identity.tagged) and identity.package is not None:
        own.update((one.option, one) for one in identity.package.options)
    if checkout is not None and identity is not None and identity.patched:
        own.update((one.option, one) for one in checkout.patched_options)
    if checkout is not None and document.launch is not None:
        own |= entry_options(checkout, document)
    flags = {flag.option: flag for one in own.values() if (flag := merged(table, one)) is not None}
    return table.with_flags(flags.values()) if flags else table


def _options_beneath(checkout: Checkout, target: Target) -> Iterator[OwnOption]:
    """The options of the underlying frameworks in a checkout, if they differ from the published ones."""
    for framework in versions(target):
        package = checkout.package(framework) if framework != target.framework else None
        if package is not None and not package.proven and not package.partial:
            yield from package.options


def with_mentioned(table: Table, unknown: Iterable[str], checkout: Checkout | None) -> Table | None:
    """The table extended by options that code of the checkout names, with unknown values; None if it names none. If a
    package elsewhere adds options to its parser, any option may be one of those."""
    package = checkout.package(PLAIN) if checkout is not None else None
    opened = package is not None and package.opened
    mentioned = [option for option in unknown if checkout is not None and (opened or option in checkout.mentioned)]
    flags = [Flag(option, option[2:].replace("-", "_"), "str", None, "*") for option in mentioned]
    return table.with_flags(flags) if flags else None


def entry_options(checkout: Checkout, document: Document) -> dict[str, OwnOption]:
    """The options that the entry script of a launch adds, if it is in the checkout."""
    return next((dict(found) for name in _entries(document, checkout) if (found := checkout.entry(name))), {})


def merged(table: Table, own: OwnOption) -> Flag | None:
    """An option that the checkout adds; None if the release's table already covers it."""
    known = table.options.get(own.option)
    if known is None:
        kind, nargs = (own.kind, own.nargs) if own.kind else ("str", own.nargs if own.nargs is not None else None)
        if not own.kind:
            nargs = "*"
        return Flag(own.option, own.dest, kind, own.default, nargs, own.choices, own.also)
    changed = known
    # other code in the checkout may add options to those that a parser lists
    if known.choices is not None and own.choices is not None:
        changed = changed._replace(choices=tuple(dict.fromkeys((*known.choices, *own.choices))))
    elif known.choices is not None and own.kind:
        changed = changed._replace(choices=None)
    if own.kind in _PLAIN and known.kind in _PLAIN and own.option == known.option:
        changed = changed._replace(kind=own.kind, nargs=own.nargs)
    return changed if changed != known else None
