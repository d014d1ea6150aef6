"""The writer and time of a log line: prefixes of launchers and loggers are removed."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from functools import lru_cache

from preflight.source.record import NamedTuple

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\n\x07\x1b]*(?:\x07|\x1b\\)|\^\[\[[0-9;]{0,8}m")
"""Colours, also as a page shows them (`^[[36m`)."""
_DATE = r"\d{4}[-/]\d\d[-/]\d\d[-T ]\d\d:\d\d:\d\d(?:[.,]\d+)*(?:Z|[+-]\d\d:?\d\d)?"
_PARTS_OF_TIME = re.compile(r"(\d{4}).(\d\d).(\d\d).(\d\d:\d\d:\d\d)(?:[.,](\d+))?(?:[.,](\d+))?")
STAMP = re.compile(rf"^\s*[\[(]?({_DATE})(?:(?: [A-Z]{{2}}\d{{1,4}}){{1,4}}(?=\]))?[\])]?[:,]?\s*")
"""A time before the text, as Docker, Kubernetes, journald and loggers write it."""
PARTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rank", re.compile(r"^\s*(?:> )?\[(?:rank|RANK|Rank) ?(\d+)\]\s?:? ?")),
    ("rank", re.compile(r"^\[\d+,(\d+)\]<std(?:out|err)>: ?")),
    ("local", re.compile(r"^\s*\[(?:default|trainer|worker|\w*_node)(\d+)\]:? ?")),
    ("log", re.compile(r"^\[(\d+)\] \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}\] ?")),
    ("task", re.compile(r"^\s*\[(\d+)\]:? ?(?=\s|\[|[A-Z])")),
    ("task", re.compile(r"^ *(\d{1,6}):(?: |$)")),
    ("host", re.compile(r"^\s*([A-Za-z_][\w.-]*/\d+) (?=\[)")),
    (
        "actor",
        re.compile(
            r"^\s*\(([A-Za-z_][\w.:]*(?:\[[^\]]*\]|\([\w.:-]*\))? pid=\d+(?:, ip=[\w.:]+|, )?)\)"
            r"(?: \[repeated[^\]]*\])? ?"
        ),
    ),
    ("actor", re.compile(r"^\s*\((\w+,? rank=\d+,? pid=\d+(?:, ip=[\w.:]+)?)\) ?")),
    ("actor", re.compile(r"^\s*\((pid=\d+(?:, ip=[\w.:]+)?)\) ?")),
    ("host", re.compile(r"^\s*\[(?:pod/)?([\w.-]+/[\w.-]+)\] ?")),
    ("host", re.compile(r"^\s*([a-z](?=(?:[^\W\d]|[.-])*\d)[\w.-]*) ?: (?=\s|\[|[A-Z])")),
    ("host", re.compile(r"^\s*\[((?:\d{1,3}\.){3}\d{1,3})(?::\d+)?\] ?")),
    ("host", re.compile(r"^\s*((?:\d{1,3}\.){3}\d{1,3}): ")),
    ("stream", re.compile(r"^(stdout|stderr) [FP] ")),
    ("host", re.compile(r"^([\w.-]{1,80} [\w./@-]{1,80}\[\d+\]): ?")),
    ("host", re.compile(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,80} [\w./@-]{1,80}(?:\[\d+\])?): ?")),
    (
        "host",
        re.compile(r"^([\w.-]{1,80}) {1,40}\| ?(?=[(\[]|Traceback |  File |    |[A-Z]\w{1,60}(?:Error|Exception)\b)"),
    ),
    ("host", re.compile(r"^(\{\w+=\"[^{}]{0,400}\"\})\s")),
    ("log", re.compile(r"^\s*(ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+\.py:\d+\]? ?")),
    ("log", re.compile(r"^\| *(ERROR|CRITICAL) *\| *(?:[^|]{1,60}\| |[\w.<>]+:[\w<>]+:\d+ - )")),
)
"""The prefix that a launcher, collector or logger adds to a line: torchrun, mpirun, srun -l, Ray, kubectl, pdsh, a
container's runtime (CRI), journald, Docker Compose, Loki, vLLM, loguru,
torch_npu (the number of its process). Each pattern has one group."""
_PART = re.compile("|".join(f"(?:{part.pattern})" for _, part in PARTS))
_KINDS = tuple(kind for kind, _ in PARTS)
IN_JSON = '{"log":"'
"""The start of a line that Docker stores as JSON."""
OF_ACTOR = re.compile(r"\brank=(\d+)")
REPEATED = re.compile(r" \[repeated \d+x across cluster\]$")
"""The suffix that Ray adds to a line written by several actors."""
MINDSPORE = re.compile(
    r"^\[(?:WARNING|ERROR|CRITICAL|INFO)\] \w+\((\d+),[0-9a-fx]+,[\w.-]+\):"
    r"(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d[\d.]*) \[[^\]]*\] ?(?:\w+\])? ?"
)
PLOG = re.compile(r"^\[(?:ERROR|WARNING|EVENT|INFO)\] (\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d[\d.]*) ?")
INSIDE = re.compile(r"\bRankID:(\d+)|\b[Rr]ank[ =](\d+)\b|\[PG \S+(?: \S+)? Rank (\d+)\]")
"""A rank named in the message itself."""
OF_FILE = re.compile(r"(?:^|[/_.-])(?:rank|worker|global_rank)[_-]?(\d+)(?=[/_.-]|$)|(?:^|/)attempt_\d+/(\d+)/")
"""The rank in the path of a file that belongs to one worker."""


class Written(NamedTuple):
    """A line without its prefixes. by: the writer within a file; rank: its rank if printed; time: in seconds, None if
    not printed."""

    by: str
    rank: int | None
    time: float | None
    text: str


MOST_PREFIXES = 8
"""Maximum number of prefixes of a line."""


def taken_apart(line: str) -> Written:
    """A log line, and the information in its prefixes."""
    text = _from_json(line) if line.startswith(IN_JSON) else line
    text = ANSI.sub("", text) if "\x1b" in text or "^[[" in text else text
    text = text.removeprefix("> ")
    by, rank, time = "", None, None
    certain, numbers = False, 0
    for _ in range(MOST_PREFIXES):
        if time is None and (stamp := STAMP.match(text)):
            time, text = seconds(stamp[1]), text[stamp.end() :]
            continue
        match = _PART.match(text)
        if match is None or match.lastindex is None:
            break
        kind, name = _KINDS[match.lastindex - 1], match[match.lastindex]
        if kind != "stream":
            by += f"{kind}{name} "
        if kind == "rank":
            rank, certain = int(name), True
        elif kind in ("task", "local") and not certain:  # a node's task and a rank on it, not the global rank
            rank, numbers = int(name) if not numbers else None, numbers + 1
        elif kind == "actor" and (own_rank := OF_ACTOR.search(name)):
            rank, certain = int(own_rank[1]), True
        elif kind == "actor" and not certain:
            rank, numbers = None, 2  # the number of a task that started Ray is not the rank of its actors
        text = text[match.end() :]
    if text.endswith("across cluster]"):
        text = REPEATED.sub("", text)
    if (own := MINDSPORE.match(text)) or (own := PLOG.match(text)):
        time, text = seconds(own[own.lastindex or 1]), text[own.end() :]
    return Written(by, rank, time, text)


def _from_json(line: str) -> str:
    """The time and text of a line that Docker stores as JSON; the line itself if it is none."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    text, time = entry.get("log"), entry.get("time", "")
    return f"{time} {text.rstrip()}" if isinstance(text, str) else line


def seconds(stamp: str) -> float | None:
    """A time as a number; None if it is not one."""
    found = _PARTS_OF_TIME.match(stamp)
    if found is None:
        return None
    year, month, day, clock, part, more = found.groups()
    whole = _whole_seconds(f"{year} {month} {day} {clock}")
    return None if whole is None else whole + float(f"0.{part or 0}{more or ''}")


@lru_cache(maxsize=4096)
def _whole_seconds(stamp: str) -> float | None:
    try:
        moment = datetime.strptime(stamp, "%Y %m %d %H:%M:%S")
    except ValueError:
        return None
    return moment.replace(tzinfo=timezone.utc).timestamp()


def rank_of_file(name: str) -> int | None:
    """The rank of a log file, by its name; None if the name has none."""
    found = [match for match in OF_FILE.finditer(name)]
    return int(next(filter(None, found[-1].groups()))) if found else None


def rank_inside(text: str) -> int | None:
    """The rank that a message names, None if it names none."""
    found = INSIDE.search(text)
    return int(next(filter(None, found.groups()))) if found else None
