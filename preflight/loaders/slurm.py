"""#SBATCH lines: the devices that a job requests, and the variables that Slurm will set from them."""

from __future__ import annotations

from preflight.loaders.document import Count, Piece, Unknown, Word, word_of
from preflight.loaders.launcher_options import SLURM, read_options
from preflight.loaders.launchers import CommandError, split_command
from preflight.loaders.process_counts import Allocation, allocation, over
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    import re

_LINE = lazy_pattern(r"#SBATCH[ \t]+([^\r\n]*)")
_COMMENT = lazy_pattern(r"(?:^|\s)#.*")
_PLACEHOLDER = lazy_pattern(r"(?<![^\s=])<[\w /.-]+>(?!\S)")
"""A placeholder for the user to fill in, such as <SLURM OPTIONS>: the other options are those of the job."""


def sbatch(source: Source) -> tuple[Allocation, tuple[Word, ...]]:
    """The request in the #SBATCH lines before the first command, and their words."""
    words: list[Word] = []
    for number in range(1, len(source.starts) + 1):
        start = source.starts[number - 1]
        text = source.line(number)
        if text.strip() and not text.startswith("#"):
            break
        if match := _LINE.match(text):
            said = _PLACEHOLDER.sub(_filled, _COMMENT.sub("", match[1]))
            span = Span(source, start + match.start(1), start + match.start(1) + len(said))
            try:
                words += split_command(word_of((Piece(said, span),)))
            except CommandError:
                continue
    if any(word.text == "hetjob" for word in words):
        return Allocation(), tuple(words)
    return _stated(allocation(read_options(words, SLURM), "#SBATCH"), *source.allocation), tuple(words)


def _filled(found: re.Match[str]) -> str:
    """A placeholder replaced by a word of the same length if it is the value of an option, otherwise by nothing."""
    before = found.string[: found.start()].rstrip()
    option = before.endswith("=") or before.rpartition(" ")[2].startswith("-")
    return ("_" if option else " ") * len(found[0])


def _stated(asked: Allocation, nodes: int | None, per_node: int | None) -> Allocation:
    """The request with the counts stated by the caller: `sbatch --nodes` replaces them."""

    def replaced(count: Count | None, value: int | None) -> Count | None:
        same = count is None or value is None or count.value == value
        return None if same else Count(value or 0, count and count.span, "the job")

    stated = Allocation(nodes=replaced(asked.nodes, nodes), per_node=replaced(asked.per_node, per_node))
    return over(stated, asked)


def variables(asked: Allocation) -> dict[str, Word]:
    """The SLURM_* variables of the job, as far as its request determines them."""
    found = {
        "SLURM_NNODES": asked.nodes,
        "SLURM_JOB_NUM_NODES": asked.nodes,
        "SLURM_NTASKS": asked.tasks,
        "SLURM_NPROCS": asked.tasks,
        "SLURM_NTASKS_PER_NODE": asked.tasks_per_node,
        "SLURM_GPUS_ON_NODE": asked.per_node,
        "SLURM_GPUS_PER_NODE": asked.per_node,
        "SLURM_GPUS": asked.devices if asked.per_node is None else None,
    }
    return {name: _word(count) for name, count in found.items() if count is not None and count.span is not None}


def _word(count: Count) -> Word:
    assert count.span is not None
    if isinstance(count.value, Unknown):
        return Word(None, count.span, because=count.value.because, editable=False)
    return Word(str(count.value), count.span, editable=False)
