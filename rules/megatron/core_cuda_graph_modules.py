"""An old CUDA graph module name contradicts the new flags.

## What it does
`full`, `full_iteration` and `full_iteration_inference` are old values of `--cuda-graph-modules`, now replaced by
`--cuda-graph-impl` and `--inference-cuda-graph-scope`. Checks that such a value is the only entry and that it agrees
with the new flags.

## Why is this bad?
The run fails at startup.

## Example
    --cuda-graph-impl transformer_engine --cuda-graph-modules full_iteration

Use instead: `--cuda-graph-impl full_iteration`.

## References
Megatron-LM d98e8a6, megatron/core/transformer/cuda_graph_config.py
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.option_names import place_of, read, typed
from preflight.source.finding import Kind

ITERATION, INFERENCE = "full_iteration", "full_iteration_inference"


@rule(
    severity=Severity.ERROR,
    id="megatron/cuda-graph-modules",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("cuda_graph_modules", "cuda_graph_scope_deprecated"),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    written = typed(job, "cuda_graph_modules", "cuda_graph_scope_deprecated")
    if not written:
        return
    scope = job.arguments.given("inference_cuda_graph_scope")
    if isinstance(values := read(job, "enable_cuda_graph", "external_cuda_graph"), Unverified):
        yield values
        return
    if (unknown := next((v for v in (written[0], scope) if v is not None and not v.known), None)) is not None:
        yield Unverified(unknown.because)
        return
    given = job.arguments.given("cuda_graph_impl")
    impl = (
        "local"
        if values[0]
        else "transformer_engine"
        if values[1]
        else given.raw
        if given is not None and given.known
        else "none"
    )
    names = written[0].raw if isinstance(written[0].raw, list) else str(written[0].raw).split(",")
    if (said := _fault(list(names), impl, scope.raw if scope is not None else None)) is not None:
        places = [*written, *typed(job, "cuda_graph_impl", "inference_cuda_graph_scope")]
        related = tuple(place for value in places[1:] for place in value.related)
        yield Finding(
            said[0], span=job.place(*places), related=related, key=written[0].key, upstream=place_of(job, said[1])
        )


def _fault(names: list[str], impl: object, scope: object) -> tuple[str, str] | None:
    if "full" in names and names != ["full"]:
        others = tuple(name for name in names if name != "full")
        return Message(
            "the module full contains the whole layer and cannot be combined with {others}", others=others
        ), "1ad063c7e9"
    if ITERATION in names and INFERENCE in names:
        return Message(
            "{iteration} and {inference} capture in different ways; give only one of them",
            iteration=ITERATION,
            inference=INFERENCE,
        ), "d05de33720"
    if ITERATION in names and impl not in ("none", "local", ITERATION):
        return Message(
            "the module {iteration} is a graph of the whole iteration, but --cuda-graph-impl is {impl}",
            iteration=ITERATION,
            impl=impl,
        ), "3be7612bb6"
    if ITERATION in names and scope not in (None, "none"):
        return Message(
            "the module {iteration} captures only training, but --inference-cuda-graph-scope is {scope}",
            iteration=ITERATION,
            scope=scope,
        ), "79a4999a9c"
    if INFERENCE in names and impl not in ("none", "local"):
        return Message(
            "the module {inference} needs --cuda-graph-impl local, not {impl}",
            inference=INFERENCE,
            impl=impl,
        ), "46959df18b"
    if INFERENCE in names and scope not in (None, "block"):
        return Message(
            "the module {inference} captures whole blocks, but --inference-cuda-graph-scope is {scope}",
            inference=INFERENCE,
            scope=scope,
        ), "e1777df525"
    return None
