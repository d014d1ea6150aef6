"""The cause of a run's death from its log: root exception, rank, class and evidence."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pairs import loaded

from preflight.logs.diagnosis import Diagnosis, diagnosed
from preflight.logs.failures import MOST_KINDS, MOST_LATER, REPEATED, Failures
from preflight.logs.prefixes import seconds, taken_apart
from preflight.logs.relevant_lines import lines_of_interest
from preflight.logs.signatures import GUESSES, SIGNATURES, signed
from preflight.report.failure_diagnosis import why_dict
from preflight.report.json_encoding import dumped

sys.path.insert(0, str(Path(__file__).parent))
from died_runs import died, shuffled
from texts_of_patterns import made

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "data"


def why(text: str, name: str = "run.log") -> Diagnosis:
    failures = Failures()
    failures.read(name, lines_of_interest(io.BytesIO(text.encode())))
    return diagnosed(failures.found)


def test_deaths_of_many_kinds() -> None:
    wrong = []
    for case in loaded(HERE / "deaths.yaml"):
        found = why(case["log"])
        root = found.root.first if found.root is not None else None
        named = {found.signature.id if found.signature else None, *found.rules}
        right = (
            found.cause.value == case["cause"]
            and ("root" not in case or (root is not None and root.text.startswith(case["root"])))
            and ("rank" not in case or (root is not None and root.rank == case["rank"]))
            and ("is" not in case or case["is"] in named)
        )
        if not right:
            wrong.append((case["name"], found.cause.value, root.text[:80] if root else None, root and root.rank, named))
    assert not wrong


def test_what_programs_read_follows_its_schema() -> None:
    schema = Draft202012Validator(json.loads((HERE.parents[1] / "schemas/why.json").read_text(encoding="utf-8")))
    for case in loaded(HERE / "deaths.yaml"):
        assert not list(schema.iter_errors(json.loads(dumped(why_dict(why(case["log"]), None, ["run.log"])))))


def test_the_place_of_a_log_does_not_matter() -> None:
    """A death in the middle of a long log, in a block of its own, and cut in two by the border of a block."""
    noise = "a line of an ordinary run, as there are many\n" * 50_000
    death = (
        "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "/w/own/code.py", line 3, in compute\n'
        "[rank3]: ValueError: this is it\n"
    )
    for at in (0, 100, len(noise) // 2, (2 << 20) - 60, len(noise)):
        found = why(noise[:at].rpartition("\n")[0] + "\n" + death + noise[at:])
        assert found.root is not None and found.root.first.text == "ValueError: this is it"


@pytest.mark.slow
def test_a_death_among_lines_with_the_word_error_is_found() -> None:
    """Of 16 MB of such lines in the middle of a log only a part is read; a traceback among them is found."""
    line = "[rank{at}]:W1018 torch/_dynamo/own.py:{at}] an error that {at} rounds of the run survive, with {at} words\n"
    noise = "".join(line.format(at=at) for at in range(200_000))
    death = 'Traceback (most recent call last):\n  File "/w/own.py", line 3, in go\nValueError: this is it\n'
    cut = noise.find("\n", 2 * len(noise) // 5) + 1
    found = why(noise[:cut] + death + noise[cut:])
    assert found.root is not None and found.root.first.text == "ValueError: this is it"


def test_the_end_of_a_long_line_is_read() -> None:
    words = " ".join(f"'--option-{at}', '{at}'" for at in range(400))
    found = why(f"[ERROR] [launch.py:321:sigkill_handler] ['python3', {words}] exits with return code = -9\n")
    assert found.signature is not None and found.signature.id == "killed"


def test_the_rank_of_a_file_is_in_its_name() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n'
    names = {
        "msrun_log/worker_3.log": 3,
        "logs/attempt_0/5/stderr.log": 5,
        "output/log/rank_7/error.log": 7,
        "a.log": None,
    }
    for name, rank in names.items():
        found = why(text, name)
        assert found.root is not None and found.root.first.rank == rank, name


WRONG_CLASSES = {
    ("config", "layout"): {"config"},
    ("config", "sequence"): {"config"},
    ("config", "argument"): {"config"},
    ("config", "resume"): {"checkpoint"},
    ("config", "memory"): {"memory", "host-memory", "config"},
    ("upstream bug", "layout"): {"upstream", "config"},
    ("upstream bug", "sequence"): {"upstream", "config", "data"},
    ("upstream bug", "memory"): {"memory"},
    ("upstream bug", "resume"): {"upstream", "checkpoint"},
    ("upstream bug", "numerics"): {"numerics"},
    ("data", "index"): {"data"},
    ("data", "path"): {"data"},
    ("data", "vocabulary"): {"data"},
    ("hardware", "communication"): {"communication"},
    ("environment", "communication"): {"communication"},
}
"""The correct classes for a judged log; `environment` if none is listed."""


def test_real_logs_have_a_true_cause_or_an_honest_class() -> None:
    path = SHARED / "logs.jsonl.gz"
    if not path.exists():
        pytest.skip("the judged logs are not here")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    right, wrong = [], []
    for row in rows:
        found = why(row["excerpt"])
        if found.cause.value in WRONG_CLASSES.get((row["category"], row["kind"]), {"environment"}):
            right.append(row["id"])
        elif found.cause.value != "unknown":
            wrong.append((row["id"], row["category"], row["kind"], found.cause.value))
    print(f"right {len(right)} of {len(rows)}, wrong {wrong}")
    assert len(right) >= 0.7 * len(rows)
    assert len(wrong) <= 0.03 * len(rows), wrong


def _refused() -> list[tuple[str, str, str]]:
    """Framework, release and "file:line" of runs that real validators refused."""
    found = []
    for name in ("megatron.jsonl", "megatron-releases.jsonl.gz", "mindformers.jsonl"):
        path = SHARED / "oracle" / name
        data = path.read_bytes()
        for row in map(json.loads, (gzip.decompress(data) if name.endswith(".gz") else data).splitlines()):
            if not row["accept"] and re.search(r"\.py:\d+", row.get("where") or ""):
                framework = name.partition(".")[0].partition("-")[0]
                release = row.get("release") or row.get("tag", "v0.20.0").lstrip("v")
                found.append((framework, release, row["where"]))
    return found


@pytest.mark.slow
def test_deaths_of_refused_runs_lead_to_rank_exception_and_rule() -> None:
    if not (SHARED / "oracle").exists():
        pytest.skip("the labelled runs are not here")
    from died_rules import owners

    rows = _refused()
    random.Random(5).shuffle(rows)
    total = roots = ruled = told = 0
    for at, (framework, release, where) in enumerate(rows):
        death = died(framework, release, where)
        if death is None:
            continue
        ranks = ([3], list(range(8)), [5, 6])[at % 3]
        found = why(shuffled(death, ranks, at))
        total += 1
        first = found.root.first if found.root is not None else None
        roots += first is not None and first.rank in ranks and first.text.startswith(death.exception[:60])
        own = owners(framework, release, death.place)
        ruled += bool(own)
        told += bool(own) and bool(found.rules) and found.rules[0] in own
        if total == 200:
            break
    if total < 200:
        pytest.skip("the repositories of the frameworks are not here")
    assert roots >= 0.98 * total
    assert told >= 0.95 * ruled


def _noise(number: int, prefix: str = "") -> list[str]:
    """Tracebacks of many kinds that a program survives."""
    made = []
    for at in range(number):
        name = "".join(chr(97 + int(digit)) for digit in str(at))
        made += [
            "Traceback (most recent call last):",
            f'  File "own.py", line 1, in retry_{name}',
            "    g()",
            f"ValueError: bad row {name}",
        ]
    return [prefix + line for line in made]


@pytest.mark.parametrize("number", [20, MOST_KINDS - 1, MOST_KINDS, MOST_KINDS + 300])
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_the_root_after_many_kinds_of_noise_is_found(number: int, prefix: str) -> None:
    root = [
        "Traceback (most recent call last):",
        '  File "own.py", line 9, in last',
        "    h()",
        "RuntimeError: the root",
    ]
    found = why("\n".join([*_noise(number, prefix), *(prefix + line for line in root)]) + "\n")
    assert found.root is not None
    assert found.root.first.text == "RuntimeError: the root"


def test_a_rank_that_repeats_an_exception_survives_it() -> None:
    again = ["Traceback (most recent call last):", '  File "own.py", line 1, in fetch', "    g()", "OSError: try 1"]
    root = [
        "Traceback (most recent call last):",
        '  File "own.py", line 9, in last',
        "    h()",
        "RuntimeError: the root",
    ]
    text = "\n".join(f"[rank3]: {line}" for line in (*again * REPEATED, *root)) + "\n"
    found = why(text)
    assert found.root is not None
    assert found.root.first.text == "RuntimeError: the root"


@pytest.mark.slow
def test_a_log_full_of_failures_is_read_at_its_ends() -> None:
    failures = Failures()
    text = "\n".join([*_noise(40_000), "[rank2]: torch.OutOfMemoryError: CUDA out of memory."]) + "\n"
    lines = list(lines_of_interest(io.BytesIO(text.encode())))
    failures.read("run.log", lines_of_interest(io.BytesIO(text.encode()), failures.full))
    assert len(failures.found) == MOST_KINDS + MOST_LATER
    assert failures._order < len(lines) / 2
    assert "torch.OutOfMemoryError" in failures.found[-1].text


PREFIXES = {
    "[rank7]:   File": (7, "  File"),
    "[default3]:[rank11]: text": (11, "text"),
    "105: [rank105]:   File": (105, "  File"),
    "  2: [rank2]:     return f": (2, "    return f"),
    "[default3]:Traceback": (3, "Traceback"),
    "0: [default3]:Traceback": (None, "Traceback"),
    "(WorkerDict pid=144557, ip=10.0.0.2) ValueError: x": (None, "ValueError: x"),
    "(pid=40210) ValueError: x [repeated 7x across cluster]": (None, "ValueError: x"),
    "2026-10-18T01:36:06.294112Z [rank4]: ValueError: x": (4, "ValueError: x"),
    "\x1b[36m(TaskRunner pid=1)\x1b[0m ValueError: x": (None, "ValueError: x"),
    "2026-10-18T01:36:06.294112Z stderr F (Own pid=12, ip=10.0.0.2) ValueError: x": (None, "ValueError: x"),
    '2026-10-18T01:36:06.294112345+00:00 stdout F [rank4]:   File "a.py"': (4, '  File "a.py"'),
    "Oct 18 01:36:06 node-1 python3[3321]: [rank3]: ValueError: x": (3, "ValueError: x"),
    "2026-10-18T01:36:06+0000 node1 torchrun[22]: [default3]:[rank11]: Traceback": (11, "Traceback"),
    'trainer-1  | [rank0]:   File "a.py", line 1': (0, '  File "a.py", line 1'),
    '2026-10-18T01:36:06Z {pod="a-0", ns="b"} [rank2]: ValueError: x': (2, "ValueError: x"),
    "[pod/a-0/main] 2026-10-18T01:36:06Z [rank1]: ValueError: x": (1, "ValueError: x"),
    "12: (WorkerDict pid=9) ValueError: x": (None, "ValueError: x"),
    "(OwnWorker(actor_infer-0) pid=12266, ) ValueError: x": (None, "ValueError: x"),
    "[1,3]<stderr>:ValueError: x": (3, "ValueError: x"),
    '{"log":"[rank3]: ValueError: x\\n","stream":"stderr","time":"2026-10-18T01:36:06.29Z"}': (3, "ValueError: x"),
    '{"log":"half of a line': (None, '{"log":"half of a line'),
    "^[[36m(TaskRunner pid=1)^[[0m ValueError: x": (None, "ValueError: x"),
    "own-engine  | (APIServer pid=8) ValueError: x": (None, "ValueError: x"),
    "(VllmWorker rank=2 pid=23) ERROR 09-26 01:47:48 [multiproc_executor.py:546] ValueError: x": (2, "ValueError: x"),
    "iteration 3 | loss 2.1": (None, "iteration 3 | loss 2.1"),
    "train.py[33]: hello": (None, "train.py[33]: hello"),
    "AssertionError: a b[3]: c": (None, "AssertionError: a b[3]: c"),
    "pretrain_gpt.py: error: x": (None, "pretrain_gpt.py: error: x"),
    "RuntimeError: a": (None, "RuntimeError: a"),
}


def test_prefixes_of_launchers_are_taken_off() -> None:
    found = {line: (taken.rank, taken.text) for line in PREFIXES for taken in [taken_apart(line)]}
    assert found == PREFIXES


def test_a_text_is_signed_as_by_every_pattern_in_turn() -> None:
    """Only patterns of which a part is in a text are tried: the answer is that of all."""
    every = [(one, re.compile(one.pattern)) for one in SIGNATURES]
    drawn = random.Random(38)
    texts = {line for case in loaded(HERE / "deaths.yaml") for line in case["log"].splitlines()}
    texts |= {made(one.pattern, drawn) for one in SIGNATURES for _ in range(40)}
    texts |= {"", "a", "ab", "abc", "abcd"}
    for text in texts:
        if GUESSES not in text:
            assert signed(text) is next((one for one, pattern in every if text and pattern.search(text)), None), text


def test_times_of_loggers_are_read() -> None:
    stamps = (
        "2026-10-18 01:36:06,250",
        "2026/10/18 01:36:06.25",
        "2026-10-18-01:36:06.250.000",
        "2026-10-18T01:36:06.25Z",
    )
    assert len({seconds(stamp) for stamp in stamps}) == 1 and seconds("2026-13-40 01:36:06") is None
