"""Checks for missing required arguments, and for arguments that the framework changes."""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, Value, rule
from preflight.job import SWITCHED
from preflight.lint.upstream_evidence import switched_at
from preflight.loaders.document import Unknown
from preflight.rules.megatron.option_names import ARGUMENTS, SCHEDULER
from preflight.run.arguments import Switch
from preflight.source.finding import Kind
from preflight.source.record import NamedTuple


class Needed(NamedTuple):
    """A group of arguments, one of which must be given, and where each version of Megatron requires it."""

    names: tuple[str, ...]
    new: int
    old: int
    file: str = ARGUMENTS


NEEDED = (
    Needed(("micro_batch_size",), 693, 419),
    Needed(("num_layers", "encoder_num_layers"), 1309, 657),
    Needed(("hidden_size",), 2005, 991),
    Needed(("num_attention_heads",), 2005, 991),
    Needed(("max_position_embeddings",), 2005, 991),
    Needed(("seq_length", "encoder_seq_length"), 1350, 692),
    Needed(("lr", "skip_train"), 148, 62, SCHEDULER),
)
MANY = 4
PLACES = tuple(dict.fromkeys(f"{needed.file}:{needed.new}" for needed in NEEDED))


@rule(
    severity=Severity.ERROR,
    id="megatron/required-argument",
    kind=Kind.ABSENCE,
    frameworks=("megatron",),
    upstream=PLACES,
)
def required_argument(job: Job) -> Iterator[Finding | Unverified]:
    """A required argument is missing.

    ## What it does
    Checks that a run sets its micro-batch size, layers, hidden size, heads, positions, sequence length and learning
    rate. None of them has a default, unless the entry script provides one. With `--skip-train`, and for entry scripts
    that do not train, no learning rate is needed.

    ## Why is this bad?
    Every rank fails at startup. If only the learning rate is missing, the run fails after the model is built.

    ## Example
        python pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 …

    Use instead: the same command with `--max-position-embeddings 1024` and the other arguments that the message names.

    ## Fix safety
    Unsafe: the fix sets a micro-batch size of 1, or as many positions as tokens. Other values cannot be guessed.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:693, :1309, :1350, :2005,
    megatron/core/optimizer_param_scheduler.py:148;
    core_v0.12.1, megatron/training/arguments.py:419, :657, :692, :991, megatron/core/optimizer_param_scheduler.py:62
    """
    if not any(job.arguments.get(name).raw is True for name in ("entry_is_known", "entry_is_shipped")):
        return
    if job.arguments.given("retro_project_dir") is not None:
        return  # the sizes are in its config
    old = job.versions["megatron"] == "0.12.1"
    missing: list[Finding] = []
    for needed in NEEDED if job.arguments.get("entry_trains").raw is True else NEEDED[:-1]:
        if needed.names == ("micro_batch_size",) and job.arguments.given("batch_size") is not None:
            continue  # its old name is reported elsewhere
        values = [job.arguments.get(name).raw for name in needed.names]
        unknown = next((value for value in values if isinstance(value, Unknown)), None)
        if unknown is not None:
            yield Unverified(unknown.because)
        elif all(value is None or value is False for value in values):
            flag = job.arguments.spell(needed.names[0])
            line = _split_first(job, needed, old) or (needed.old if old else needed.new)
            message, place = Message("{flag} is not given and has no default", flag=flag), f"{needed.file}:{line}"
            missing.append(Finding(message, span=job.start, upstream=place, fix=_natural(job, needed.names[0])))
    yield from [_together(missing)] if len(missing) > 1 else missing


def _together(missing: list[Finding]) -> Finding:
    """If several are missing, there is probably one cause; if most are missing, the options do not get to the
    script."""
    flags = [finding.message.split()[0] for finding in missing]
    template = "{flags} and {last} are not given and have no defaults"
    if len(missing) > MANY:
        template = "{flags} and {last} are not given and have no defaults; are the options passed to the script?"
    message = Message(template, flags=tuple(flags[:-1]), last=flags[-1])
    return Finding(message, missing[0].span, upstream=missing[0].upstream)


def _split_first(job: Job, needed: Needed, old: bool) -> int | None:
    """Virtual stages divide the number of layers before any check requires it."""
    cut = needed.names[0] == "num_layers" and job.arguments.get("num_layers_per_virtual_pipeline_stage").raw is not None
    return (457 if old else 968) if cut else None


def _natural(job: Job, name: str) -> Fix | None:
    """A micro-batch size of 1 affects only the speed; positions can be set to the number of tokens, and vice versa."""
    other = {"max_position_embeddings": "seq_length", "seq_length": "max_position_embeddings"}.get(name)
    value = 1 if name == "micro_batch_size" else job.arguments.get(other).raw if other else None
    edits = job.arguments.put(name, value) if isinstance(value, int) and value > 0 else ()
    return Fix(f"set {job.arguments.spell(name)} {value}", edits) if edits else None


COSTLY = frozenset(
    [
        "recompute_granularity",
        "num_layers",
        "mtp_num_layers",
        "async_save",
        "fp8_param_gather",
        "use_distributed_optimizer",
    ]
)
ALIASES = frozenset(
    [
        "optimizer",
        "hybrid_layer_pattern",
        "cuda_graph_impl",
        "cuda_graph_modules",
        "moe_router_padding_for_quantization",
    ]
)


@rule(
    id="changed-silently",
    severity=Severity.WARNING,
    sometimes=(Severity.NOTE,),
    frameworks=("megatron",),
    kind=Kind.REWRITE,
    reads=(SWITCHED,),
)
def changed_silently(job: Job) -> Iterator[Finding]:
    """The framework replaces a configured value and, at most, logs the change.

    ## What it does
    Reports each argument in the configuration that Megatron's validator replaces: sequence parallelism with a
    tensor-parallel size of 1, full recomputation with `--recompute-activations`, `--num-layers` with a hybrid pattern,
    asynchronous saving without a persistent worker, and so on. Changes made by MindSpeed are covered by separate rules.

    ## Why is this bad?
    The run differs from the one that the configuration describes. If the change costs memory or speed or affects the
    model, the finding is a warning. Otherwise, it is a note.

    ## Example
        pretrain_gpt.py --recompute-granularity full --recompute-activations

    Use instead:

        pretrain_gpt.py --recompute-granularity full --recompute-method uniform --recompute-num-layers 1

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:389-1987, validate_args; core_v0.12.1 :277-972
    """
    if "mindspeed" in job.versions:
        return
    for switch in job.arguments.switches:
        given = job.arguments.given(switch.name)
        if given is None or not given.known or switch.name in ALIASES or not _lost(switch, given):
            continue
        after = "off" if switch.after is False else "on" if switch.after is True else switch.after
        layer_wise = (
            switch.name == "use_distributed_optimizer"
            and job.arguments.get("use_layer_wise_distributed_optimizer").raw is True
        )
        yield Finding(
            Message(
                "{flag} is turned {after}: {cause}"
                if isinstance(switch.after, bool)
                else "{flag} is changed to {after}: {cause}",
                flag=job.arguments.spell(switch.name),
                after=after,
                cause=switch.cause,
            ),
            job.place(given),
            key=given.key,
            upstream=switched_at(switch, job.versions),
            severity=Severity.NOTE if switch.name not in COSTLY or layer_wise else None,
        )


def _lost(switch: Switch, given: Value) -> bool:
    """The configured value is not the one in effect, whatever other changes were made in between."""
    return bool(given.raw != switch.after and given.raw is not None)
