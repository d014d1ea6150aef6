"""Commands in Python programs and in Markdown: literal words are found in place, others are unknown."""

from __future__ import annotations

import pytest

from preflight.loaders import load
from preflight.loaders.document import Launch
from preflight.source.source_file import Source

# fmt: off
PROGRAMS = {
    'import subprocess\nsubprocess.run(["torchrun", "--nproc_per_node", "8", "a.py", "--x", str(3)])\n': ["--x", "3"],
    ('import subprocess\nN = 4\ncmd = ["torchrun", "a.py"]\ncmd += ["--n", f"{N}"]\ncmd.append("--é")\n'
        'subprocess.Popen(cmd)\n'): ["--n", "4", "--é"],
    'import os\nos.system("torchrun a.py --x \'b c\'")\n': ["--x", "b c"],
    'import os\nos.execvp("torchrun", ["torchrun", "a.py", "--x"])\n': ["--x"],
    ('import subprocess, sys\nsubprocess.check_call([sys.executable, "-m", "torch.distributed.run", '
        '"a.py"] + "--x 1".split())\n'): ["--x", "1"],
    'import subprocess\nA = ["--x"]\ndef main(n):\n    subprocess.run(["torchrun", "a.py", *A, "--n", n])\n':
        ["--x", "--n", None],
    'import subprocess, sys\nsubprocess.run(["torchrun", "a.py"] + sys.argv[1:])\n': [None],
    'import subprocess\nx = "1"\nfor x in "ab":\n    pass\nsubprocess.run(["torchrun", "a.py", "--x", x])\n':
        ["--x", None],
    ('import subprocess\nc = ["torchrun", "a.py"]\nif c:\n    c.append("--maybe")\n'
        'subprocess.run(["torchrun", "a.py", *c])\n'): [None],
}
# fmt: on


def words(launch: Launch) -> list[str | None]:
    return [word.text for word in launch.words]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_starts_a_launch(program: str) -> None:
    (document,) = load(Source(program, "run.py"))
    assert document.launch is not None and words(document.launch) == PROGRAMS[program]
    for word in document.launch.words:
        assert (
            word.text is None
            or word.text.strip("'\"") in word.span.text
            or word.text.isdigit()
            or word.span.text.startswith("x")
        )


@pytest.mark.parametrize(
    "program", ["x = 1\n", "import subprocess\nsubprocess.run(make())\n", "import subprocess\nsubprocess.run(['ls'])\n"]
)
def test_a_program_without_one(program: str) -> None:
    assert [document.launch for document in load(Source(program, "run.py"))] == [None]


MARKDOWN = """# Run é
```bash
$ torchrun a.py --x \\
>   --y 1
Epoch 1: torchrun
```
~~~python
torchrun = 1
~~~
* with a list:
  ```
  torchrun a.py ... --z 2
  ```
```sh
echo "never closed
torchrun a.py
```
"""


def test_the_blocks_of_a_markdown_file_are_scripts_of_their_own() -> None:
    documents = load(Source(MARKDOWN, "README.md"))
    launches = [document.launch for document in documents if document.launch is not None]
    assert [words(launch) for launch in launches] == [["--x", "--y", "1"], ["--z", "2"]]
    assert [launch.words[-1].span.line for launch in launches] == [4, 12]
    assert [launch.open for launch in launches] == [False, True]
    assert [(document.run, document.runs) for document in documents] == [(0, 2), (1, 2)]


def test_markdown_is_looked_for_when_it_is_asked_for(cli: object, tmp_path: object) -> None:
    from pathlib import Path

    (Path(str(tmp_path)) / "README.md").write_text(MARKDOWN)
    (Path(str(tmp_path)) / "run.sh").write_text("echo\n")
    without, with_it = cli("check", ".", "-v"), cli("check", ".", "-v", "--include-markdown")  # type: ignore[operator]
    assert "README.md" not in without.out + without.err and "README.md" in with_it.out + with_it.err
