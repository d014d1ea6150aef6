"""The README and the guide show real output; pages of rules are current; links are valid."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import ENGLISH, PAGES, ROOT, refreshed

from preflight import Report, Request, Severity, hookimpl, testing
from preflight.checking.engine import Policy, check_documents
from preflight.loaders import load as load_text
from preflight.plugins.manager import Plugins, load
from preflight.report.rule_pages import documented, pages
from preflight.source.source_file import Source
from preflight.source.translation_catalogue import catalogue


@pytest.mark.halved
@pytest.mark.parametrize(
    "page", [page for page in ENGLISH if "```console" in page.read_text(encoding="utf-8")], ids=lambda p: p.name
)
def test_shown_output_is_real(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == refreshed(page), "python tests/console.py rewrites it"


def test_pages_of_rules_are_fresh() -> None:
    folder = ROOT / "docs" / "rules"
    have = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}
    want = pages(documented(load().rules(None)))
    stale = sorted(name for name in {*have, *want} if have.get(name) != want.get(name))
    assert not stale, f"run `preflight rules --write-docs docs/rules`: {', '.join(stale[:5])}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
        if "rules/" in target and section:
            headings = re.findall(r"^##? (\S+)$", (page.parent / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert section in headings, f"{target} has no section {section}"
        assert section or "/rules/" not in f"/{target}" or target.endswith(("/README.md", "rules/")), (
            f"{target}: name the section of the rule"
        )


def test_every_hook_and_every_setting_is_in_the_guide() -> None:
    import json

    from preflight.plugins import hookspecs

    plugins, settings = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("plugins.md", "settings.md"))
    for hook in (name for name in vars(hookspecs) if name.startswith("preflight_")):
        assert f"| `{hook}` |" in plugins, hook
    for setting in json.loads((ROOT / "schemas" / "settings.json").read_text(encoding="utf-8"))["properties"]:
        assert setting in settings, setting


def test_every_page_of_the_guide_and_every_format_is_listed() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, page.name
    formats = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    for name in load().reporters():
        assert f"| `{name}` |" in formats, name


def test_the_settings_of_the_guide_are_settings(tmp_path: Path) -> None:
    from preflight.checking.configured_checker import Checker
    from preflight.checking.folder_settings import OwnDevices
    from preflight.run.settings_files import load as load_settings

    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "preflight.toml").write_text(text, encoding="utf-8")
    (tmp_path / "tools" / "env").mkdir(parents=True)
    settings = load_settings(tmp_path / "preflight.toml")
    assert Checker(settings, load([OwnDevices(settings.devices)])).settings.devices[0].name == "acme-one"


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """The plugins with the package that the guide shows, written as shown there."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for name, body in re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield load([importlib.import_module("acme_preflight")])
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_preflight"]:
        del sys.modules[name]


def test_the_package_of_the_guide_is_a_plugin(guide: Plugins, tmp_path: Path) -> None:
    cases = testing.load(tmp_path / "tests/rules/no_seed.yaml")
    assert len(cases) == 2
    for case in cases:
        case.verify(tmp_path, rules=["acme-no-seed"], plugins=guide)
    report = check_documents(
        load_text(Source("acme_trainer: 2\nranks: 4\n", "run.yaml")), guide, Request(device="a1"), Policy()
    )
    (job,) = report.jobs
    assert job.cluster.device is not None
    assert (job.plan.layout.data.raw, job.cluster.device.name) == (4, "acme-one")
    module, _, function = guide.reporters()["csv"].partition(":")
    assert getattr(importlib.import_module(module), function)(report, None) == "run.yaml,1,acme-no-seed,warning\n"


SIZES = "--layers 24 --width 1024 --heads 16"


def behind_the_front_end(guide: Plugins, options: str, text: str = "") -> Report:
    text, name = (text, "run.yaml") if text else (f"python acme_train.py {SIZES} {options}\n", "run.sh")
    report = check_documents(load_text(Source(text, name)), guide, Request(), Policy())
    assert not report.crashes
    return report


def test_the_front_end_of_the_guide_reads_its_own_keys(guide: Plugins, tmp_path: Path) -> None:
    report = behind_the_front_end(guide, "--devices 16 --tp 2 --pp 4 --batch 96")
    (job,) = report.jobs
    layout = job.plan.layout
    assert str(job.target) == "acme-train@3.1"
    assert (layout.world.raw, layout.tensor.raw, layout.pipeline.raw, layout.data.raw) == (16, 2, 4, 2)
    assert job.arguments.get("max_position_embeddings").raw == 4096
    assert not [f for f in report.findings if f.severity is Severity.ERROR]
    (case,) = testing.load(tmp_path / "tests/rules/whole_nodes.yaml")
    case.verify(tmp_path, rules=["acme-whole-nodes"], plugins=guide)


def test_the_front_end_of_the_guide_has_the_checks_of_megatron(guide: Plugins) -> None:
    def errors(options: str) -> dict[str, str]:
        return {
            f.rule: f.message for f in behind_the_front_end(guide, options).findings if f.severity is Severity.ERROR
        }

    assert "device-count" in errors("--devices 16 --tp 3 --batch 96")
    assert "batch-not-divisible" in errors("--devices 16 --tp 2 --batch 97")
    assert errors("--batch 96 --stages 4") == {
        "unread-key": "acme-train 3.1 has no key --stages and rejects the run",
    }


def test_what_megatron_refuses_is_mended_in_the_keys_of_the_front_end(guide: Plugins, tmp_path: Path) -> None:
    case = testing.Case(
        name="a batch that is no multiple",
        file="run.sh",
        text=f"python acme_train.py {SIZES} --batch 97 --micro-batch 4\n",
        found="run.sh:1:66: error: the global batch size 97 is not a multiple of micro-batch size 4 × "
        "data-parallel size 8 = 32 [batch-not-divisible]\n",
        fixed=f"python acme_train.py {SIZES} --batch 96 --micro-batch 4\n",
    )
    case.verify(tmp_path, rules=["batch-not-divisible"], plugins=guide)


def test_the_front_end_of_the_guide_reads_a_flat_file_where_its_sign_is_one(
    guide: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = importlib.import_module("acme_preflight")
    front_ends = [one for one in signs.preflight_dialects() if one.name == "acme-train"]
    of_files = front_ends[0]._replace(sign=lambda document: document.tree is not None and document.tree.get("heads"))
    monkeypatch.setattr(signs, "preflight_dialects", hookimpl(lambda: [of_files]))
    text = "devices: 16\ntp: 2\nlayers: 24\nwidth: 1024\nheads: 16\nbatch: 97\n"
    found = {f.rule: f.message for f in behind_the_front_end(load([signs]), "", text).findings}
    assert found["batch-not-divisible"].startswith("the global batch size 97 is not a multiple")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_modules_that_contributors_are_sent_to_exist(page: str) -> None:
    for name in re.findall(r"`([a-z_*/]+\.py)`", (ROOT / page).read_text(encoding="utf-8")):
        assert any(ROOT.glob(name)) or any((ROOT / "preflight").glob(name)) or "my_fault" in name, name


def test_the_packages_of_the_guide_are_those_of_the_house() -> None:
    import test_house

    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", text, re.MULTILINE)
    told = [tuple(name.removesuffix(".py") for name in re.findall(r"`([^`]+)`", names)) for _, names in rows]
    assert told == test_house.FLOORS


def test_the_refusal_of_sbatch_in_the_guide_is_that_of_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from preflight.cli import run

    launch = (
        "srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 \\\n"
        "  --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --mock-data --lr 1e-4 \\\n"
        "  --tensor-model-parallel-size 4 --tokenizer-type NullTokenizer --vocab-size 1000 \\\n"
        "  --micro-batch-size 1 --global-batch-size 63 --train-iters 100\n"
    )
    (tmp_path / "gpt").write_text("#!/bin/bash\n" + "\n" * 5 + launch, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["gate", "--script", "gpt", "--output-format", "text", "--timeout", "60"]) == 1
    told = [f"sbatch: error: {line}" for line in capsys.readouterr().err.splitlines()]
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    assert re.findall(r"^sbatch: error: .*$", page, re.MULTILINE)[:-1] == told


def test_the_files_looked_at_are_listed_as_in_the_guide() -> None:
    from preflight.job import Site
    from preflight.report.text import seen

    head = next(iter(seen(Site(host="login1"))))
    assert f"\n{head}\n" in (ROOT / "docs" / "site-checks.md").read_text(encoding="utf-8")


MESSAGE = re.compile(r"^\s*\S+:\d+:\d+: (?:error|warning|note): (.*) \[[\w/-]+\]$", re.MULTILINE)


@pytest.mark.parametrize("name", ["gallery.md", "site-checks.md"])
def test_messages_that_no_test_prints_are_those_of_today(name: str) -> None:
    """The outputs of these pages need files of others: their messages are at least filled-in templates."""
    known = catalogue("zh")
    shown = MESSAGE.findall((ROOT / "docs" / name).read_text(encoding="utf-8"))
    assert shown and not [message for message in shown if known.of(message) == message]
