"""Chinese: the catalogue is complete, output is translated on request, columns are aligned."""

from __future__ import annotations

import gettext
import io
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Ran
from templates import templates

from preflight.api import installed
from preflight.checking.engine import Policy
from preflight.source.finding import Message, placeholders
from preflight.source.translation import LOCALE, VARIABLE, asked, columns, cut, local, padded, phrases, speaking
from preflight.source.translation_catalogue import FOLDER, Catalogue, catalogue
from preflight.testing import load

ROOT = Path(__file__).parent.parent
NAMES = ("preflight fix --unsafe", "query key value", "the rank table")
"""Terms without a Chinese name."""
CHINESE = {"PREFLIGHT_LANG": "zh"}
WORDS = re.compile(r"(?<![-\w./])[a-z]{2,}( [a-z]{2,}){2}(?![-\w.])")
"""English that is no name: three words and more."""
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|不是正则表达式：.*|不是合法的 JSON：.*|gated delta net")
"""Text from a config, words of Python, names."""
FEW = 3
"""Findings of new rules that may be assembled in an unrecognizable way."""


@pytest.fixture(scope="module")
def every() -> dict[str, list[str]]:
    return templates()


@pytest.fixture(scope="module")
def left(every: dict[str, list[str]]) -> Callable[[str], bool]:
    """Whether a text has a part without a translation yet: it is printed in English."""
    missing = every.keys() - chinese().keys()
    known = Catalogue(dict.fromkeys(missing, "未"))

    def is_left(text: str) -> bool:
        if not isinstance(text, Message):
            return known.of(text) != text
        return text.template in missing or any(is_left(part) for part in text.values.values() if isinstance(part, str))

    return is_left


@pytest.fixture
def nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, *LOCALE):
        monkeypatch.delenv(name, raising=False)


def chinese() -> dict[str, str]:
    return dict(catalogue("zh").translations)


@pytest.mark.slow
def test_what_is_left_for_whoever_keeps_the_catalogue_is_listed(every: dict[str, list[str]]) -> None:
    missing, gone = every.keys() - chinese().keys(), chinese().keys() - every.keys()
    if missing or gone:
        told = [f"not translated, told in English: {text}" for text in sorted(missing)]
        told += [f"translated, and said nowhere: {text}" for text in sorted(gone)]
        warnings.warn("python tests/update_catalogue.py:\n" + "\n".join(told), stacklevel=1)
    assert all(local(text) == text for text in missing)


def test_translations_have_the_placeholders_of_their_sentence() -> None:
    differ = {a: b for a, b in chinese().items() if placeholders(a) != placeholders(b)}
    assert differ == {}


def test_translations_are_chinese_and_no_placeholder_text() -> None:
    other = [a for a, b in chinese().items() if b.isascii() and len(a.split()) > 2 and a not in NAMES]
    assert other == []


def test_the_compiled_catalogue_is_the_text_one() -> None:
    pytest.importorskip("babel")
    from update_catalogue import as_mo, compiled, read

    texts = [gettext.GNUTranslations(io.BytesIO(data)) for data in (as_mo(read("zh")), compiled("zh").read_bytes())]
    ours, built = (vars(one)["_catalog"] | {"": ""} for one in texts)  # the head names the version of Babel
    assert ours == built
    assert compiled("zh").is_relative_to(FOLDER)


def test_findings_are_told_in_chinese(real_cli: Callable[..., Ran]) -> None:
    ran = real_cli("check", str(ROOT / "examples" / "mindspeed"), "--lang", "zh", "--no-cache", "--isolated")
    assert ran.code == 1
    assert "错误: " in ran.out
    assert "= 修复: " in ran.out
    assert "发现 " in ran.out.splitlines()[-3] + ran.out.splitlines()[-4]
    assert " error: " not in ran.out


@pytest.mark.parametrize("folder", ["megatron", "mindformers", "mindspeed"])
def test_every_message_of_the_examples_has_a_translation(folder: str, left: Callable[[str], bool]) -> None:
    from preflight import check

    report = check(sorted((ROOT / "examples" / folder).iterdir()))
    assert report.findings
    with speaking(asked(["--lang", "zh"])):
        for finding in report.findings:
            assert local(finding.message) != finding.message or left(finding.message)
            for fix in filter(None, (finding.fix, *finding.alternatives)):
                assert local(fix.title) != fix.title or left(fix.title)


@pytest.mark.slow
def test_findings_of_every_fixture_are_chinese(tmp_path: Path, left: Callable[[str], bool]) -> None:
    english = [
        f"{rule}: {told}"
        for rule, told in sorted(set(of_fixtures(tmp_path, left)))
        if rule != "own-check"  # the program's own words
        if not re.search("[\u4e00-\u9fff]", told) or WORDS.search(QUOTED.sub("", told))
    ]
    assert len(english) <= FEW, "\n".join(english)


def of_fixtures(folder: Path, left: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The findings in faulty configs: rule and message or title of a fix, in Chinese."""
    plugins = installed()
    files = sorted((ROOT / "tests" / "rules").rglob("*.yaml"))
    for number, case in enumerate(case for path in files for case in load(path)):
        report = case.check(folder / str(number), plugins, Policy(options=case.options))
        with speaking(asked(["--lang", "zh"])):
            for finding in report.findings:
                titles = (fix.title for fix in filter(None, (finding.fix, *finding.alternatives)))
                yield from ((finding.rule, local(text)) for text in (finding.message, *titles) if not left(text))


def test_the_locale_chooses_for_text_only(
    real_cli: Callable[..., Ran], nobody_asks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    file = str(ROOT / "examples" / "megatron" / "model_config.yaml")
    assert "34 层不能被 4 个流水线阶段整除" in real_cli("check", file, "--no-cache").out
    found = json.loads(real_cli("check", file, "-f", "json").out)["findings"]
    assert "34 layers are not divisible by 4 pipeline stages" in [finding["message"] for finding in found]
    monkeypatch.setenv("LC_ALL", "C")
    assert "34 layers" in real_cli("check", file, "--no-cache").out


@pytest.mark.parametrize("words", [("--lang", "zh"), ("--lang=zh_CN.UTF-8",)])
def test_programs_get_chinese_where_the_call_says_so(real_cli: Callable[..., Ran], words: tuple[str, ...]) -> None:
    file = str(ROOT / "examples" / "megatron" / "model_config.yaml")
    found = json.loads(real_cli("check", file, "-f", "json", *words).out)["findings"]
    first = next(finding for finding in found if finding["rule"] == "megatron/layers-over-stages")
    assert (first["severity"], first["message"]) == ("error", "34 层不能被 4 个流水线阶段整除")


def test_a_page_for_people_is_chinese_throughout(
    real_cli: Callable[..., Ran], nobody_asks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    page = real_cli("check", str(ROOT / "examples" / "megatron" / "model_config.yaml"), "-f", "html").out
    assert '<html lang="zh">' in page and "34 层不能被 4 个流水线阶段整除" in page
    frame = re.sub(r"(?s)<(style|script|pre|details|table|dl).*?</\1>|<option>.*?</option>|<[^>]*>", " ", page)
    words = set(re.findall(r"(?<![\w/.-])[a-z]{4,}(?![\w/.-])", re.sub(r"\S*[/_.]\S*", " ", frame)))
    assert words <= {"preflight", "check", "safe", "unsafe", "full", "uniform"}, words


def test_a_language_without_catalogue_is_refused(real_cli: Callable[..., Ran]) -> None:
    ran = real_cli("check", ".", "--lang", "fr")
    assert (ran.code, ran.err) == (2, "preflight: --lang must be one of en, zh, not 'fr'\n")


def test_errors_are_told_in_chinese(real_cli: Callable[..., Ran]) -> None:
    assert real_cli("check", "gone.yaml", "--lang", "zh").err == "preflight: gone.yaml: 不存在\n"


def test_who_asks_is_heard_in_order(nobody_asks: None) -> None:
    locale = {"LANG": "zh_CN.GB18030"}
    assert asked(["check"], locale).language == "zh"
    assert asked(["check"], {**locale, "LC_MESSAGES": "en_US.UTF-8"}).language == "en"
    assert asked(["check"], {**locale, VARIABLE: "en"}).language == "en"
    assert asked(["check", "--lang", "zh"], {VARIABLE: "en"}).language == "zh"
    assert asked(["check", "--", "x", "--lang", "zh"], {}).language == "en"
    assert asked(["gate-serve"], locale).language == "en"
    assert (asked(["check"], locale).explicit, asked(["check"], CHINESE).explicit) == (False, True)


def test_columns_stay_in_line(real_cli: Callable[..., Ran]) -> None:
    file = str(ROOT / "examples" / "megatron" / "train_8b.sh")
    ran = real_cli("memory", file, "--lang", "zh", "--world-size", "64", "--device", "h100", "--set", "vocab_size=9999")
    lines = ran.out.splitlines()
    head = next(line for line in lines if "每个 rank 的 GiB" in line)
    rows = [line for line in lines if line.startswith(("  权重 ", "  稳态 ", "  激活值：注意力输出 "))]
    assert len(rows) == 3
    assert {columns(row) for row in rows} == {columns(head)}


def test_a_screen_fits_its_terminal() -> None:
    assert (columns("层数 4"), padded("层", 4), padded("层", 4, right=True)) == (6, "层  ", "  层")
    assert (cut("流水线并行", 7), cut("流水线", 6), cut("abc", 0)) == ("流水线…", "流水线", "abc")


def test_an_english_check_loads_no_catalogue(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("use_parallel: True\nrun_mode: train\n")
    code = "import sys; from preflight.cli import run; run(['check', 'a.yaml']); print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert not {"gettext", "preflight.source.translation_catalogue"} & set(ran.stderr.split())


def test_a_terminal_without_utf8_is_no_crash(tmp_path: Path) -> None:
    file = ROOT / "examples" / "megatron" / "model_config.yaml"
    call = [sys.executable, "-m", "preflight", "check", str(file), "--lang", "zh"]
    for encoding in ("ascii", "gb18030"):
        environ = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        ran = subprocess.run(call, cwd=tmp_path, env=environ, capture_output=True)
        assert ran.returncode == 1
        assert b"Traceback" not in ran.stderr
    assert "错误" in ran.stdout.decode("gb18030")


def test_plain_texts_are_recognized() -> None:
    words = {
        "set {option} {value}": "设置 {option} {value}",
        "{title}, which changes {what}": "{title}，它会改变{what}",
        "the tokens per step": "每步 token 数",
        "there is no rule {rule}{hint}": "没有规则 {rule}{hint}",
        "; did you mean {name}?": "；是否想写 {name}？",
        "{number} steps": "{number} 步",
        "the text {value!r}": "文本 {value!r}",
    }
    told = Catalogue(words)
    assert told.of("set --a 1, set --b 2, which changes the tokens per step").startswith("设置 --a 1，设置 --b 2")
    assert told.of("there is no rule 'x'; did you mean 'y'?") == "没有规则 'x'；是否想写 'y'？"
    assert told.of("set of many steps") == "set of many steps"
    assert told.of("the text 3e-4") == "文本 3e-4"
    assert (told.of("12,000 steps"), told.phrases("3 steps, x")) == ("12,000 步", "3 步，x")


def test_messages_are_filled_anew() -> None:
    told = Catalogue({"{a:and} of {b:.1f}": "{b:.1f} 的 {a:、}", "half {c}": "一半{c}", "of it": "它"})
    assert told.of(Message("{a:and} of {b:.1f}", a=("x", Message("half {c}", c="of it")), b=2.25)) == "2.2 的 x、一半它"


def test_lists_are_joined_and_parts_translated() -> None:
    told = Catalogue(
        {"{flags} are lost": "{flags} 丢失", "weights": "权重", "it is lost": "它丢失", "{x} is lost": "{x} 丢"}
    )
    assert told.of(Message("{flags} are lost", flags=("--a", "--b"))) == "--a、--b 丢失"
    assert told.of(Message("{term} {size:.1f}", term=Message("weights"), size=1.25)) == "权重 1.2"
    assert told.of(Message("{one}; {other}", one=Message("{x} is lost", x="--a"), other=Message("it is lost"))) == (
        "--a 丢；它丢失"
    )


def test_english_is_left_as_it_is() -> None:
    assert (local("No problems found"), phrases("1 file, 2 runs")) == ("No problems found", "1 file, 2 runs")


def test_every_translation_takes_the_values_of_its_sentence() -> None:
    for sentence, translation in chinese().items():
        lists = set(re.findall(r"\{([\w.]+):[a-z]+\}", sentence))
        texts = set(re.findall(r"\{([\w.]+):\.\d+\}", sentence))
        values = {name: ("a", "b") if name in lists else "a" if name in texts else 1 for name in placeholders(sentence)}
        assert Message(translation, **values)
        assert not re.search(r"[\u4e00-\u9fff][,;:?!]|  ", str(Message(translation, **values))), translation
