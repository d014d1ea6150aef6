"""A published tuning account in its order of merit: Llama2-13B on 16 devices, data parallel 8, two stages,
128 micro-batches.

Measured, tokens per second and device: all layers recomputed 2136; a list of operators 2189; the list in [20, 8] and
[20, 0] layers of the stages 2210; [13, 5] layers recomputed and a short list (activation and product) elsewhere 2353;
[4, 0] layers 2562, with a pool of 57.2 GB. It starts from the published configs/llama2/pretrain_llama2_13b.yaml, whose
micro-batches have two samples.
"""

from __future__ import annotations

import pytest

import preflight
from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.fix.trial_edits import Attempts
from preflight.layouts.candidate_memory import fewest, seconds
from preflight.layouts.result import Result
from preflight.layouts.search import search
from preflight.layouts.search_inputs import Limits
from preflight.memory.inputs_from_plan import Shape, shape
from preflight.run.request import Request, Target
from preflight.source.source_file import Source

BASE = """
seed: 0
run_mode: 'train'
use_parallel: True
trainer: {type: CausalLanguageModelingTrainer, model_name: 'llama2_13b'}
runner_config: {epochs: 2, batch_size: 2, sink_mode: True, sink_size: 1}
train_dataset: {data_loader: {type: MindDataset, dataset_dir: "/data/wiki.mindrecord", shuffle: True},
  input_columns: ["input_ids"], batch_size: 2}
optimizer: {type: AdamW, betas: [0.9, 0.95]}
parallel: {parallel_mode: 1, full_batch: True, enable_parallel_optimizer: True,
  parallel_optimizer_config: {gradient_accumulation_shard: False}}
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 2, micro_batch_num: 128,
  use_seq_parallel: False, vocab_emb_dp: True}
recompute_config:
  recompute: RECOMPUTE
  select_recompute: SELECT
context: {mode: 0, device_target: "Ascend", max_device_memory: "MEMORY"}
model:
  model_config:
    type: LlamaConfig
    batch_size: 2
    seq_length: 4096
    hidden_size: 5120
    num_layers: 40
    num_heads: 40
    vocab_size: 32000
    multiple_of: 256
    compute_dtype: "float16"
    layernorm_compute_type: "float32"
    softmax_compute_type: "float16"
    rotary_dtype: "float16"
    param_init_type: "float16"
    use_flash_attention: True
    offset: 0
  arch: {type: LlamaForCausalLM}
"""
PATTERNS = (
    r"feed_forward\.mul",
    r"feed_forward\.w1\.activation\.silu",
    r"feed_forward\.w1\.reshape",
    r"feed_forward\.w2\.reshape",
)
SHORT = (
    r"{'feed_forward\.mul': COUNTS, 'feed_forward\.w1\.activation\.silu': COUNTS, 'feed_forward\.w1\.reshape': "
    r"COUNTS, 'feed_forward\.w2\.reshape': COUNTS}"
)


def run(recompute: object, operators: str = "False", memory: str = "58GB") -> preflight.Report:
    text = BASE.replace("RECOMPUTE", str(recompute)).replace("SELECT", operators).replace("MEMORY", memory)
    return preflight.check_text(text, name="run.yaml", world_size=16, device="ascend-910b3", target="mindformers@1.5.0")


def numbers(report: preflight.Report) -> Shape:
    return shape(report.jobs[0].plan, 0)


def throughput(report: preflight.Report) -> float:
    """Tokens per second and device."""
    s, cluster = numbers(report), report.jobs[0].cluster
    return s.sequence * s.count * s.micro * s.data / seconds(s, cluster) / 16


def short(counts: str) -> str:
    return SHORT.replace("COUNTS", counts)


LONG = "{" + ", ".join(
    f"'{path}': {{{counts}}}"
    for counts, paths in {
        "wide": (r"feed_forward\.mul", r"feed_forward\.w1\.activation\.silu", r"feed_forward\.w1\.reshape",
            r"feed_forward\.w2\.reshape"),
        "rest": (
            *(rf"feed_forward\.{name}" for name in (r"w1\.matmul", r"w2\.matmul", r"w3\.matmul", r"w3\.reshape")),
            *(rf"{norm}\.{part}" for norm in ("ffn_norm", "attention_norm") for part in ("norm", "rcast")),
            *(rf"attention\.{name}" for name in (r"wq\.reshape", r"wk\.reshape", r"wv\.reshape", r"wo\.matmul",
                r"wo\.reshape")),
            r"attention\.flash_attention\.flash_attention",
            "add",
        ),
    }.items()
    for path in paths
) + "}"  # fmt: skip
"""The long list of the report, in the layers of each stage; its paths in the spelling of this version."""


def listed(wide: str, rest: str) -> str:
    return LONG.replace("{wide}", wide).replace("{rest}", rest)


def story() -> list[preflight.Report]:
    return [
        run(True),
        run(False, listed("[20, 20]", "[20, 20]")),
        run(False, listed("[20, 8]", "[20, 0]")),
        run([13, 5], short("[20, 20]")),
        run([4, 0], short("[20, 20]"), "57.2GB"),
    ]


def test_steps_come_out_in_their_order_of_merit() -> None:
    speeds = [throughput(report) for report in story()]
    assert speeds == sorted(speeds) and len(set(speeds)) == 5
    measured = [2136, 2189, 2210, 2353, 2562]
    for speed, truth in zip(speeds, measured, strict=True):
        assert speed / speeds[0] == pytest.approx(truth / measured[0], rel=0.06)


def allocated(report: preflight.Report) -> list[float]:
    return [stage.allocated_peak / 2**30 for stage in report.jobs[0].memory.stages]


def test_every_step_fits_and_less_recomputation_does_not() -> None:
    for report in story():
        assert report.jobs[0].memory.verdict in ("fits", "at-risk")
    assert 55 < allocated(run([4, 0], short("[20, 20]")))[0] <= 57.2 < allocated(run([3, 0], short("[20, 20]")))[0]
    assert run(False).jobs[0].memory.verdict == run(False, short("[20, 20]")).jobs[0].memory.verdict == "does-not-fit"


def test_a_single_host_needs_full_recomputation() -> None:
    text = BASE.replace("RECOMPUTE", "{}").replace("SELECT", "{}").replace("MEMORY", "58GB")
    text = text.replace("pipeline_stage: 2, micro_batch_num: 128", "pipeline_stage: 1, micro_batch_num: 1")
    verdicts = {}
    for recompute, operators in (("True", "False"), ("False", short("[40]"))):
        parts = text.split("{}")
        one = parts[0] + recompute + parts[1] + operators + parts[2]
        report = preflight.check_text(
            one, name="run.yaml", world_size=8, device="ascend-910b3", target="mindformers@1.5.0"
        )
        verdicts[recompute] = report.jobs[0].memory.verdict
    assert verdicts["True"] == "fits" != verdicts["False"]


def test_fewer_layers_with_recomputed_operators_are_faster() -> None:
    assert throughput(run(False, short("[20, 20]"))) < throughput(run(False, short("[20, 8]")))


def test_memory_falls_with_recomputation_and_the_first_stage_holds_more() -> None:
    reports = (run(False), run([4, 0]), run([4, 0], short("[20, 20]")), run([13, 5], short("[20, 20]")), run(True))
    needs = [allocated(report) for report in reports]
    assert [need[0] for need in needs] == sorted((need[0] for need in needs), reverse=True)
    assert all(first > last for first, last in needs)


def test_the_first_stage_needs_more_recomputation_than_the_last() -> None:
    report = run(True, memory="50GB")
    job = report.jobs[0]
    assert run(False, memory="50GB").jobs[0].memory.verdict != "fits"
    counts = fewest(numbers(report), job.cluster, job.memory.budget or 0)
    assert counts is not None and counts.full[0] > counts.full[1] >= 0 == sum(counts.listed)


def found(memory: str) -> Result:
    text = BASE.replace("RECOMPUTE", "True").replace("SELECT", "False").replace("MEMORY", memory)
    request = Request(world_size=16, device="ascend-910b3", target=Target("mindformers", "1.5.0"))
    workspace = Workspace([Source(text, "run.yaml")], installed(), request)
    report = workspace.check()
    job = report.jobs[0]
    assert job.arguments.relayout is not None
    limits = Limits({"pipeline": 2, "tensor": 1, "context": 1, "micro": 2, "virtual": 1}, show=3)
    return search(job, job.arguments.relayout, Attempts(workspace, report, job), limits)


def test_the_search_comes_to_the_accounts_end() -> None:
    """Few layers of the first stage in full, the cheap operators of its others;
    the last stage needs next to nothing."""
    result = found("57.2GB")
    best = result.layouts[0]
    assert best.sizes.full_layers is not None and best.sizes.listed is not None, result.rejected
    assert 4 <= best.sizes.full_layers[0] <= 8 and best.sizes.full_layers[1] == 0
    assert best.sizes.listed[0] == 20
    changes = {str(edit.key[-1]): edit.value for edit in best.edits}
    assert changes["recompute"] == list(best.sizes.full_layers)
    assert changes["select_recompute"] == {key: list(best.sizes.listed) for key in PATTERNS}
    assert best.seconds < min(other.seconds for other in result.layouts[1:])


def test_operators_alone_where_they_are_enough() -> None:
    best = found("60.9GB").layouts[0]
    tighter = found("45GB").layouts[0]
    assert best.sizes.full_layers is not None and tighter.sizes.full_layers is not None
    assert best.sizes.full_layers[0] < tighter.sizes.full_layers[0]
    assert best.seconds < tighter.seconds


def test_uneven_virtual_stages_are_written_chunk_by_chunk() -> None:
    text = (
        BASE.replace("RECOMPUTE", "True")
        .replace("SELECT", "False")
        .replace("MEMORY", "58GB")
        .replace("num_layers: 40", "num_layers: 39")
    )
    text = text.replace("offset: 0", "offset: [1, 0]")
    request = Request(world_size=16, device="ascend-910b3", target=Target("mindformers", "1.5.0"))
    workspace = Workspace([Source(text, "run.yaml")], installed(), request)
    report = workspace.check()
    job = report.jobs[0]
    assert job.arguments.relayout is not None
    limits = Limits({"pipeline": 2, "virtual": 2, "tensor": 1, "context": 1, "micro": 2}, show=1)
    best = search(job, job.arguments.relayout, Attempts(workspace, report, job), limits).layouts[0]
    changes = {str(edit.key[-1]): edit.value for edit in best.edits}
    assert best.sizes.chunks is not None and sum(map(sum, best.sizes.chunks)) == 39
    offset = changes["offset"]
    assert isinstance(offset, list) and len(offset) == 2 and sum(map(sum, offset)) == 39 % 4
