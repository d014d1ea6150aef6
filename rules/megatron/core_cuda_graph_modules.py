"""Old names among the CUDA graph modules that contradict the new flags.

## What it does
`full`, `full_iteration` and `full_iteration_inference` are older values of `--cuda-graph-modules` for what
`--cuda-graph-impl` and `--inference-cuda-graph-scope` say today. Checks that they stand alone and that both agree.

## Why is this bad?
The run is refused at start-up.

## Example
    --cuda-graph-impl transformer_engine --cuda-graph-modules full_iteration

Use instead `--cuda-graph-impl full_iteration`.

## References
Megatron-LM d98e8a6, megatron/core/transformer/cuda_graph_config.py:40, :98, :108, :112, :118, :122
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import read, typed

FILE = "megatron/core/transformer/cuda_graph_config.py"
ITERATION, INFERENCE = "full_iteration", "full_iteration_inference"


@rule(severity=Severity.ERROR, id="megatron/cuda-graph-modules", frameworks=("megatron",), upstream=tuple(f"{FILE}:{n}" for n in (40, 98, 108, 112, 118, 122)))
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
    impl = "local" if values[0] else "transformer_engine" if values[1] else given.raw if given is not None and given.known else "none"
    names = written[0].raw if isinstance(written[0].raw, list) else str(written[0].raw).split(",")
    if (said := _fault(list(names), impl, scope.raw if scope is not None else None)) is not None:
        places = [*written, *typed(job, "cuda_graph_impl", "inference_cuda_graph_scope")]
        related = tuple(place for value in places[1:] for place in value.related)
        yield Finding(said[0], span=job.place(*places), related=related, key=written[0].key, upstream=f"{FILE}:{said[1]}")


def _fault(names: list[str], impl: object, scope: object) -> tuple[str, int] | None:
    if "full" in names and names != ["full"]:
        return f"the module full is the whole layer and stands alone, not beside {', '.join(n for n in names if n != 'full')}", 40
    if ITERATION in names and INFERENCE in names:
        return f"{ITERATION} and {INFERENCE} are two ways of capturing, only one is possible", 98
    if ITERATION in names and impl not in ("none", "local", ITERATION):
        return f"the module {ITERATION} asks for a graph of the whole iteration, --cuda-graph-impl for {impl}", 108
    if ITERATION in names and scope not in (None, "none"):
        return f"the module {ITERATION} captures training only, --inference-cuda-graph-scope asks for {scope}", 112
    if INFERENCE in names and impl not in ("none", "local"):
        return f"the module {INFERENCE} belongs to local graphs, --cuda-graph-impl asks for {impl}", 118
    if INFERENCE in names and scope not in (None, "block"):
        return f"the module {INFERENCE} captures whole blocks, --inference-cuda-graph-scope asks for {scope}", 122
    return None
