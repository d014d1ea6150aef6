"""Runs other checkers on the same files, and writes docs/comparison.md.

python benchmarks/comparison.py        needs yamllint, check-jsonschema, shellcheck and traincheck (of
                                       the package traincheck-lint) on the path

The files are the cases of tests/rules in which a rule of preflight reports an error that stops the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from preflight.testing import load  # noqa: E402

PAGE = ROOT / "docs" / "comparison.md"
SCHEMA = "mindformers/json/legacy-1.5.0"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
SHELL = (".sh", ".bash", ".slurm", ".sbatch")


def faulty(folder: Path) -> dict[str, list[Path]]:
    """The files of cases with an error, written into a folder: YAML files and scripts."""
    found: dict[str, list[Path]] = {"YAML": [], "scripts": []}
    number = 0
    for path in sorted((ROOT / "tests" / "rules").rglob("*.yaml")):
        for case in load(path):
            if ": error: " not in case.found or not case.text:
                continue
            number += 1
            file = folder / f"{number}{Path(case.file).suffix}"
            file.write_text(case.text, encoding="utf-8")
            if file.suffix in SHELL:
                found["scripts"].append(file)
            elif file.suffix in (".yaml", ".yml"):
                found["YAML"].append(file)
    return found


def yamllint(files: list[Path]) -> set[str]:
    """Files in which yamllint reports an error, with its relaxed rules: line lengths are nobody's fault here."""
    words = ["yamllint", "-d", "relaxed", "-f", "parsable", *map(str, files)]
    out = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return {line.partition(":")[0] for line in out.splitlines() if "[error]" in line}


def jsonschema(files: list[Path], folder: Path) -> set[str]:
    """MindFormers files that check-jsonschema refuses by the schema that preflight publishes."""
    ours = [file for file in files if _is_mindformers(file)]
    schema = folder / "schema.json"
    schema.write_text((ROOT / "schemas" / f"{SCHEMA}.json").read_text(encoding="utf-8"), encoding="utf-8")
    words = ["check-jsonschema", "--schemafile", str(schema), "-o", "json", *map(str, ours)]
    out = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    data = json.loads(out or "{}")
    return {one["filename"] for one in [*data.get("errors", []), *data.get("parse_errors", [])]}


def _is_mindformers(file: Path) -> bool:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        return True
    return isinstance(data, dict) and ("model" in data or "parallel_config" in data)


def shellcheck(files: list[Path], level: str) -> Counter[str]:
    """Reports of shellcheck by file."""
    words = ["shellcheck", "-s", "bash", "-S", level, "-f", "gcc", *map(str, files)]
    out = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return Counter(line.partition(":")[0] for line in out.splitlines() if line)


def bash(files: list[Path]) -> int:
    """Scripts that bash itself does not parse."""
    return sum(subprocess.run(["bash", "-n", str(file)], capture_output=True).returncode != 0 for file in files)


def traincheck(files: list[Path]) -> int:
    """Files in which traincheck-lint reports a violation; what it only wants verified on the machine does not count."""
    words = ["traincheck", "check"]
    return sum(subprocess.run([*words, str(file)], capture_output=True).returncode == 1 for file in files)


def table() -> str:
    """The rows of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = faulty(folder)
        configs, scripts = files["YAML"], files["scripts"]
        errors, all_ = shellcheck(scripts, "error"), shellcheck(scripts, "style")
        rows = [
            ("preflight", f"{len(configs)} of {len(configs)}", f"{len(scripts)} of {len(scripts)}"),
            ("yamllint, relaxed, errors", f"{len(yamllint(configs))} of {len(configs)}", "–"),
            (
                "check-jsonschema, with the schema that preflight publishes",
                f"{len(jsonschema(configs, folder))} of {len(configs)}",
                "–",
            ),
            ("shellcheck, errors", "–", f"{len(errors)} of {len(scripts)}"),
            ("shellcheck, every level", "–", f"{len(all_)} of {len(scripts)}, {sum(all_.values())} reports"),
            (
                "traincheck-lint, violations",
                f"{traincheck(configs)} of {len(configs)}",
                f"{traincheck(scripts)} of {len(scripts)}",
            ),
            ("bash -n", "–", f"{bash(scripts)} of {len(scripts)}"),
        ]
    head = "| tool | YAML files | scripts |\n|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Write the measured part of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
