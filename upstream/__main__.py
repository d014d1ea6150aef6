"""The command line of the maintainers' tools: python -m upstream COMMAND"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from upstream.behave import behave
from upstream.checkout import NoRevision
from upstream.compact import entries, short
from upstream.conform import conform
from upstream.defects import TABLE, candidates, written
from upstream.diff import diff
from upstream.examples import TABLES
from upstream.extraction import changes, scoped, sites_of
from upstream.frameworks import FRAMEWORKS, FRONT_ENDS, MEGATRON, Framework
from upstream.options import NoOptions, options
from upstream.repositories import VARIABLE, WHEELS, NoRepository, Repositories
from upstream.stale import pinned, stale
from upstream.uncovered import INTERPRETED, release_of, uncovered
from upstream.update import NoNumpy, chosen, update
from upstream.write import SCHEMAS, write


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(prog="python -m upstream", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--repository", action="append", default=[], metavar="[FRAMEWORK=]PATH", help="a clone or bare repository"
    )
    shared.add_argument("--python", default=sys.executable, help="the Python that runs the frameworks' own code")
    for name, about in (
        ("options", "the option table of a release"),
        ("checks", "its checks, or with --all also its silent changes"),
    ):
        command = commands.add_parser(name, parents=[shared], help=about)
        command.add_argument("--framework", default=MEGATRON.name, choices=FRAMEWORKS)
        command.add_argument("--tag", required=True, help="a release, tag, branch or commit")
        command.add_argument("--all", action="store_true", help="every file, and what it changes silently")
    command = commands.add_parser("diff", parents=[shared], help="what is new, changed and gone between two releases")
    command.add_argument("--framework", default=MEGATRON.name, choices=FRAMEWORKS)
    command.add_argument("old")
    command.add_argument("new")
    command = commands.add_parser("conform", parents=[shared], help="compare labels with the validators of a release")
    command.add_argument("--framework", default=MEGATRON.name, choices=[MEGATRON.name])
    command.add_argument("--tag", required=True, help="a release")
    command.add_argument("--labels", type=Path, required=True, help="labelled runs: JSON lines, packed or not")
    command.add_argument("--limit", type=int, default=0, help="only the first so many of them")
    command.add_argument("--mutations", type=int, default=0, help="as many runs with an option more, less or otherwise")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--preflight", action="store_true", help="compare preflight's verdicts, too")
    command = commands.add_parser("behave", parents=[shared], help="what programs say of the rules' own examples")
    command.add_argument("--framework", default=MEGATRON.name, choices=list(TABLES))
    command.add_argument("--tag", action="append", default=[], help="a release, tag, branch or commit; else all")
    command.add_argument("--preflight", action="store_true", help="compare preflight's verdicts, too")
    command = commands.add_parser("uncovered", parents=[shared], help="the refusals of a release that no rule tells")
    command.add_argument("release", metavar="FRAMEWORK@RELEASE")
    command.add_argument("--count", type=int, default=2000, help="random mutations, beside every option once")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--scripts", type=Path, action="append", help="a folder with further published runs")
    command = commands.add_parser("defects", parents=[shared], help="fixes that may be of further known defects")
    command.add_argument("--framework", default=MEGATRON.name, choices=[*FRAMEWORKS, *FRONT_ENDS])
    command.add_argument("--ranges", action="store_true", help="write the releases of those that are known instead")
    command.add_argument("--out", type=Path, default=SCHEMAS)
    command.add_argument("revisions", nargs="*", metavar="OLD NEW", help="releases, tags, branches or commits")
    command = commands.add_parser("write", parents=[shared], help="write schemas/<framework>/")
    command.add_argument("frameworks", nargs="+", choices=FRAMEWORKS)
    command.add_argument("--out", type=Path, default=SCHEMAS)
    command = commands.add_parser("update", parents=[shared], help="describe, try and ship what is new upstream")
    command.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=", ".join(FRAMEWORKS))
    command.add_argument("--mirrors", type=Path, help=f"the folder that holds the repositories, else {VARIABLE}")
    command.add_argument(
        "--wheels", type=Path, help="the folder that holds wheels, else `wheels` beside the repositories"
    )
    command.add_argument("--offline", action="store_true", help="do not ask the package index")
    command.add_argument("--again", action="store_true", help="try again what failed before")
    command.add_argument("--report", type=Path, help="write the report to this file")
    command.add_argument("--check", action="store_true", help="only rewrite what is described; 1 where a byte differs")
    return whole


def main(words: Sequence[str]) -> int:
    """Run a command; returns 2 if a repository or a release's parser is unavailable."""
    given = parser().parse_args(words)
    if given.command == "uncovered":
        given.framework, _, given.tag = given.release.partition("@")
        if given.framework not in INTERPRETED:
            print(f"{given.framework} is none of {', '.join(INTERPRETED)}", file=sys.stderr)
            return 2
    if given.command == "update":
        return _update(given)
    first = given.frameworks[0] if given.command == "write" else given.framework
    repositories = Repositories(given.repository, first)
    try:
        return _run(given, repositories)
    except (NoRepository, NoRevision, NoOptions) as error:
        print(error, file=sys.stderr)
        return 2


def _run(given: argparse.Namespace, repositories: Repositories) -> int:
    if given.command == "write":
        for name in given.frameworks:
            for path in write(FRAMEWORKS[name], repositories, given.python, given.out):
                print(path)
        return 0
    framework = (FRAMEWORKS | FRONT_ENDS)[given.framework]
    if given.command == "diff":
        evidence = SCHEMAS / framework.name / "evidence.json"
        print(*diff(framework, repositories, (given.old, given.new), given.python, evidence), sep="\n")
        return 0
    if given.command == "defects":
        return _defects(given, framework, repositories)
    if given.command == "behave":
        print(*behave(framework, repositories, SCHEMAS / framework.name, given.tag, given.preflight), sep="\n")
        return 0
    if given.command == "conform":
        release = framework.release(given.tag)
        print(*conform(framework, repositories, release, given.labels, vars(given)), sep="\n")
        return 0
    if given.command == "uncovered":
        release = release_of(framework, given.tag)
        print(*uncovered(framework, repositories, release, vars(given)), sep="\n")
        return 0
    source = repositories.checkout(framework, given.tag)
    if given.command == "options":
        release = next(
            (one for one in framework.releases if given.tag in (one.name, one.revision)), framework.releases[-1]
        )
        table = options(framework, repositories, release._replace(revision=source.revision), given.python)
        print(entries({"framework": framework.name, "commit": source.commit, "options": table}), end="")
        return 0
    for site in sites_of(framework, source):
        if given.all or scoped(framework, site):
            change = changes(framework, site)
            print(
                short(
                    [
                        f"{site.file}:{site.line}",
                        site.function,
                        "change" if change else site.kind,
                        site.hash,
                        site.shown,
                    ]
                )
            )
    return 0


def _update(given: argparse.Namespace) -> int:
    """Describe new releases, or verify that the described ones would be written again unchanged."""
    if unknown := set(given.frameworks) - FRAMEWORKS.keys():
        print(f"{', '.join(sorted(unknown))}: known are {', '.join(FRAMEWORKS)}", file=sys.stderr)
        return 2
    for variable, folder in ((VARIABLE, given.mirrors), (WHEELS, given.wheels)):
        if folder is not None:
            os.environ[variable] = str(folder.resolve())

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    frameworks = chosen(given.frameworks)
    try:
        if given.check:
            differing = 0
            for name in stale(frameworks, Repositories(given.repository, pinned=pinned()), given.python, say):
                print(f"{name} would be written otherwise", flush=True)
                differing += 1
            return 1 if differing else 0
        lines = list(update(frameworks, Repositories(given.repository), given.python, given.offline, given.again, say))
    except (NoRepository, NoRevision, NoOptions, NoNumpy) as error:
        print(error, file=sys.stderr)
        return 2
    if given.report:
        given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(*lines, sep="\n")
    return 0


def _defects(given: argparse.Namespace, framework: Framework, repositories: Repositories) -> int:
    """List candidates between two revisions, or write the affected releases of the known defects."""
    path = given.out / framework.name / TABLE
    if given.ranges:
        path.write_text(written(framework, repositories, given.out), encoding="utf-8")
        print(path)
        return 0
    if len(given.revisions) != 2:
        print("name two revisions, OLD and NEW, or --ranges", file=sys.stderr)
        return 2
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    old, new = given.revisions
    print(*candidates(framework, repositories, old, new, known), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
