"""Commands in the code blocks of a Markdown file: each block is a separate script, with places in the file."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.loaders.document import Document, Launch
from preflight.loaders.text_limits import MAX_SCRIPT, refuse_large
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace
from preflight.source.source_file import InputError, Source

MOST_BLOCKS = 30
_FENCE = lazy_pattern(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)")
_SHELLS = frozenset(["", "bash", "sh", "shell", "zsh", "console", "shell-session", "text"])
_STARTS = lazy_pattern(r"torchrun|torch\.distributed|msrun|srun|sbatch|python|deepspeed")
_PROMPT = lazy_pattern(r"[ \t]*[$>] ")
_LEFT_OUT = frozenset(["...", "…", "[...]", "[OPTIONS]", "[options]"])


def load_markdown(source: Source) -> tuple[Document, ...]:
    """The launches in the code blocks of a file; one document without a launch if there are none."""
    refuse_large(source, MAX_SCRIPT)
    found = [document for block in _blocks(source.text) for document in _launches(source, block)]
    if not found:
        return (Document(source, "script"),)
    return tuple(replace(document, run=run, runs=len(found)) for run, document in enumerate(found))


def _launches(source: Source, block: str) -> Iterator[Document]:
    from preflight.loaders.shell import load_script
    from preflight.loaders.shell.syntax_errors import has_open_quote

    script = Source(block, source.name, path=source.path)
    if has_open_quote(script):
        return
    try:
        documents = load_script(script, whole=True)
    except InputError:  # the shown text is not a script
        return
    for document in documents:
        if document.launch is not None:
            yield replace(document, launch=_shortened(document.launch))


def _shortened(launch: Launch) -> Launch:
    """A command that omits options may have any."""
    kept = tuple(word for word in launch.words if word.text not in _LEFT_OUT)
    return launch if len(kept) == len(launch.words) else launch._replace(words=kept, open=True)


def _blocks(text: str) -> Iterator[str]:
    """The text for each block of commands, with everything else replaced by blanks."""
    lines, marks, inside, count = text.splitlines(keepends=True), "", list[int](), 0
    for at, line in enumerate(lines):
        fence = _FENCE.match(line)
        if not marks and fence is not None:
            marks, inside = (fence["marks"], []) if fence["language"].lower() in _SHELLS else (fence["marks"] + " ", [])
        elif marks and fence is not None and fence["marks"].startswith(marks.strip()) and not fence["language"]:
            if (
                inside
                and not marks.endswith(" ")
                and _STARTS.search("".join(lines[inside[0] : at]))
                and count < MOST_BLOCKS
            ):
                count += 1
                yield _alone(lines, inside[0], at)
            marks, inside = "", []
        elif marks:
            inside.append(at)


def _alone(lines: list[str], first: int, end: int) -> str:
    """The lines of a block without their prompts."""
    prompted = any(_PROMPT.match(line) and line.lstrip().startswith("$ ") for line in lines[first:end])
    shown = [_unprompted(line) if prompted else line for line in lines[first:end]]
    return "".join([*map(_blank, lines[:first]), *shown, *map(_blank, lines[end:])])


def _unprompted(line: str) -> str:
    match = _PROMPT.match(line)
    return " " * match.end() + line[match.end() :] if match is not None else line


def _blank(line: str) -> str:
    ends = len(line) - len(line.rstrip("\r\n"))
    return " " * (len(line) - ends) + line[len(line) - ends :].replace("\r", " ")
