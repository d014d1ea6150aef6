"""Refusals of a front end's own code whose keys are options, evaluated over the options of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from preflight import schemas
from preflight.dialects.megatron.parsing import Parsed
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.refusal_rows import Row, identity
from preflight.frontends.refusals import of_code
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Document, Node, Problem, Unknown, Word
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span
from preflight.source.spelling import anagram_of, nearest, typing_errors

FOLDER = "frontends/refusals"
SLIP = 0.75
"""The similarity from which a name is a misspelling of another one."""
ENTRY = "entry"
"""The name under which conditions read the script of a launch."""


InSource = Callable[[str, str], bool]


class Beside(NamedTuple):
    """An option of an engine that a front end passes on, which its table does not list."""

    spelled: tuple[str, ...]
    default: int | bool


ENGINES: Mapping[str, Mapping[str, Beside]] = {
    "slime": {
        "sglang_pp_size": Beside(("--sglang-pp-size", "--sglang-pipeline-parallel-size"), 1),
        "sglang_dp_size": Beside(("--sglang-dp-size", "--sglang-data-parallel-size"), 1),
        "sglang_pipeline_parallel_size": Beside(("--sglang-pp-size", "--sglang-pipeline-parallel-size"), 1),
        "sglang_data_parallel_size": Beside(("--sglang-dp-size", "--sglang-data-parallel-size"), 1),
        "sglang_enable_dp_attention": Beside(("--sglang-enable-dp-attention",), False),
    }
}
"""SGLang's options (python/sglang/srt/server_args.py) with the prefix of slime."""


class Options(Composed):
    """The options of a run as a config: what was written, and the defaults of its release."""

    def __init__(self, front_end: FrontEnd, parsed: Parsed, document: Document) -> None:
        self.front_end, self.parsed, self.document = front_end, parsed, document
        self.own = Source("", front_end.name)
        launch = document.launch
        self.entry = os.path.basename(launch.entry.text or "") if launch is not None else ""
        super().__init__(self._node(None, self.own.span(0)))

    def _node(self, value: object, span: Span) -> Node:
        return Node("scalar", value, span)

    def _argument(self, name: str) -> str:
        """The name of the argument that an option of this name sets."""
        options = self.front_end.keys.options
        flag = options.get(f"--{name}") or options.get(f"--{name.replace('_', '-')}")
        return flag.dest if flag is not None else name

    def at(self, *path: str | int) -> Found:
        """The value of an option, by its name."""
        name = self._argument(str(path[0])) if len(path) == 1 else ""
        beside = ENGINES.get(self.front_end.name, {}).get(name)
        written = self.parsed.written.get(name)
        if beside is not None and not self.parsed.open:
            return self._beside(beside, path)
        if written is not None and written.setting is not None:
            known = not isinstance(written.raw, Unknown)
            value = list(written.raw) if isinstance(written.raw, tuple) else written.raw
            return Found(value if known else Unknown(written.because), self._node(value, written.setting.span), path)
        if written is not None or self.parsed.open:
            return Found(Unknown("the launch may have more options"), None, path)
        if name == ENTRY:
            return Found(self.entry, self._node(self.entry, self.own.span(0)), path)
        defaults = self.front_end.keys.defaults
        if name not in defaults:
            return Found(None, None, path, absent=True)
        default = list(defaults[name]) if isinstance(defaults[name], tuple) else defaults[name]
        return Found(default, self._node(default, self.own.span(0)), path)

    def _beside(self, option: Beside, path: tuple[str | int, ...]) -> Found:
        """The value of an engine's option: the last one given, else the default."""
        words = self.document.launch.words if self.document.launch is not None else ()
        found = Found(option.default, self._node(option.default, self.own.span(0)), path)
        for at, word in enumerate(words):
            name, equal, value = (word.text or "").partition("=")
            if name not in option.spelled:
                continue
            if option.default is False:
                found = Found(True, self._node(True, word.span), path)
                continue
            own = word if equal else words[at + 1] if at + 1 < len(words) else None
            text = value if equal else own.text if own is not None else None
            if own is None or text is None or not text.isdigit():
                return Found(Unknown("the option of the engine is unknown"), None, path)
            found = Found(int(text), self._node(int(text), own.span), path)
        return found


@cache
def rows(front_end: str, release: str) -> tuple[tuple[Row, bool], ...]:
    """The refusals of a release, each with whether all described releases have it."""
    found = schemas.read(f"{FOLDER}/{front_end}")
    every = frozenset(found["releases"])
    return tuple(
        (Row(place, tuple(when)), every == frozenset(releases))
        for place, when, releases in found["refusals"]
        if release in releases
    )


REWARDS = ("toolbench", "math", "accuracy", "format", "react_format", "cosine", "repetition", "soft_overlong")
"""swift/rewards/orm.py, orms."""
PLUGINS = ("external_plugins", "custom_register_path")
"""Files that may register more names; the second is ms-swift 3's name (swift/arguments/base_args/base_args.py)."""
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "real", "fipo")
"""swift/megatron/trainers/grpo_trainer.py, loss_func."""
OF_PAIRS: Mapping[str, tuple[str, ...]] = {"kto": ("kto", "apo_zero_unpaired")}
"""trl/trainer/kto_trainer.py:1159 (0.24.0). The loss of DPO is computed without this option
(swift/megatron/trainers/dpo_trainer.py:42)."""
READS = (".jsonl", ".parquet")
"""slime/utils/data.py, read_file."""


def of_values(options: Options, in_source: InSource | None) -> Iterator[Problem]:
    """Values that the front end looks up in its own names or endings."""
    if options.front_end.name == "slime":
        yield from _of_slime(options, in_source)
    elif (losses := OF_PAIRS.get(str(options.at("rlhf_type").value))) is not None:
        for value, near, place in _slips(options.at("loss_type"), losses):
            template = "--loss_type accepts {choices:and}, not {value}; did you mean {near}?"
            yield Problem(REFUSED, Message(template, choices=losses, value=value, near=near), place)
    elif options.at("rlhf_type").value == "grpo":
        plugins = any(options.at(one).value for one in PLUGINS)
        rewards = () if plugins else REWARDS
        for name, known in (("loss_type", LOSSES), ("reward_funcs", rewards)):
            for value, near, place in _slips(options.at(name), known):
                template = "--{name} accepts {choices:and}, not {value}; did you mean {near}?"
                yield Problem(REFUSED, Message(template, name=name, choices=known, value=value, near=near), place)


def _slips(found: Found, known: Sequence[str]) -> Iterator[tuple[str, str, Span]]:
    """The words of an option that resemble a known one, each with that one and its place."""
    for value in found.value if isinstance(found.value, list) else [found.value]:
        near = nearest(value, known, SLIP) if isinstance(value, str) and value not in known else ""
        if near and found.node is not None:
            yield str(value), near, found.node.span


FUNCTIONS = tuple(
    f"slime.rollout.{one}"
    for one in (
        *("sft_rollout.generate_rollout", "sglang_rollout.generate_rollout", "sleep_rollout.sleep"),
        *("fully_async_rollout.generate_rollout_fully_async", "forge_load.generate_rollout"),
        *("filter_hub.dynamic_sampling_filters.check_reward_nonzero_std", "sglang_rollout.generate_rollout_async"),
        *("filter_hub.dynamic_sampling_filters.check_reward_nonzero_std_with_fallback", "sglang_rollout.generate"),
        *("on_policy_distillation.reward_func", "on_policy_distillation.post_process_rewards"),
        *("sglang_streaming_rollout.generate_streaming", "sglang_rollout.generate_and_rm"),
    )
)
"""slime's own functions that options name, with the folder of their module."""
NAMING = ("rollout_function_path", "eval_function_path", "custom_reward_post_process_path")
GENERATES = "slime.rollout.sglang_rollout.generate_rollout"
OF_GENERATION = ("dynamic_sampling_filter_path", "custom_generate_function_path", "custom_rm_path")
"""Functions that only slime's own rollout calls (slime/rollout/sglang_rollout.py:253, 393; rm_hub/__init__.py:62)."""
ALMOST = 0.95


def _is_replayed(options: Options) -> bool:
    """Whether a run may start no SGLang, because it trains on saved rollouts (slime/utils/arguments.py:1553)."""
    switches = (options.at("debug_train_only"), options.at("load_debug_rollout_data"))
    return not all(found.known and found.value in (False, None) for found in switches)


def _of_functions(options: Options, in_source: InSource | None) -> Iterator[Problem]:
    """Misspelt functions of slime. A name with other digits or more words may be one that the user added."""
    generates = not _is_replayed(options) and options.at("rollout_function_path").value == GENERATES
    for option in (*NAMING, *(OF_GENERATION if generates else ())):
        found = options.at(option)
        name = found.value
        if not isinstance(name, str) or found.node is None or name in FUNCTIONS:
            continue
        near = nearest(name, FUNCTIONS, ALMOST) or anagram_of(name, FUNCTIONS)
        path, _, function = name.removeprefix("slime.").rpartition(".")
        if (
            not near
            or _shape(near) != _shape(name)
            or (in_source and in_source(f"{path.replace('.', '/')}.py", function))
        ):
            continue
        message = Message("slime has no function {name:.90}; did you mean {near}?", name=name, near=near)
        yield Problem(REFUSED, message, found.node.span)


def _shape(name: str) -> str:
    """The separators and digits of a name."""
    return "".join(letter for letter in name if not letter.isalpha())


def _of_slime(options: Options, in_source: InSource | None) -> Iterator[Problem]:
    yield from _of_functions(options, in_source)
    launch = options.document.launch
    if not _is_replayed(options):
        yield from of_sglang(launch.words if launch is not None else (), "--sglang-")
    data = options.at("prompt_data")
    name = str(data.value).partition("@[")[0].rpartition("/")[2]
    own = any(one in options.parsed.written for one in ("data_source_path", "rollout_function_path"))
    read = (
        own or name.endswith(READS) or (in_source is not None and in_source("utils/data.py", os.path.splitext(name)[1]))
    )
    if isinstance(data.value, str) and data.node is not None and "." in name and not read:
        message = Message("slime reads prompts from {formats:and} files, not from {name:.80}", formats=READS, name=name)
        yield Problem(REFUSED, message, data.node.span)
    reference, switch, penalty = (options.at(one) for one in ("ref_load", "use_kl_loss", "kl_coef"))
    needed = switch if switch.value is True else penalty
    used = (switch.value is True or penalty.value not in (0, None)) and needed.known
    missing = reference.known and reference.value is None
    if used and missing and needed.node is not None and needed.node.span.source is not options.own:
        message = Message("slime needs --ref-load, the reference model of the KL penalty, but it is not given")
        yield Problem(REFUSED, message, needed.node.span)


def of_written(front_end: FrontEnd, tree: Node, document: Document, known: Sequence[Problem]) -> Iterator[Problem]:
    """The refusals that the written keys of a config decide alone: its other values are unknown."""
    listed = rows(front_end.name, front_end.release)
    common = {identity(row) for row, everywhere in listed if everywhere}
    yield from of_code(
        [row for row, _ in listed],
        Composed(tree, "the recipe is not read"),
        front_end.keys.label,
        first=document.source,
        sure=lambda row, typed: front_end.stated or identity(row) in common,
        known=known,
    )


def of_options_code(
    front_end: FrontEnd, parsed: Parsed, document: Document, in_source: InSource | None = None
) -> Iterator[Problem]:
    """The refusals of a run's options by the code of its front end. A release older than the described ones may have
    other options for what is not given. in_source: whether a file of the program in the checkout has a name in quotes.
    """
    known = rows(front_end.name, front_end.release)
    words = document.launch.words if document.launch is not None else ()
    by_file = any((word.text or "").partition("=")[0] == "--config" for word in words)
    common = {identity(row) for row, everywhere in known if everywhere}
    options = Options(front_end, parsed, document)
    yield from of_values(options, in_source)
    yield from of_code(
        [row for row, _ in known],
        options,
        front_end.keys.label,
        own=options.own,
        first=document.source,
        sure=lambda row, typed: front_end.stated or identity(row) in common,
        known=parsed.faults,
        otherwise=None if document.launch is None or by_file or front_end.older else document.launch.entry.span,
    )


SGLANG_INTEGERS = frozenset(
    [
        *("max-running-requests", "max-queued-requests", "chunked-prefill-size"),
        *("page-size", "pipeline-parallel-size", "pp-size", "data-parallel-size", "dp-size"),
        *("expert-parallel-size", "ep-size", "ep-num-redundant-experts", "moe-dense-tp-size", "cuda-graph-max-bs"),
        *("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens", "stream-interval"),
        *("decode-log-interval", "random-seed", "torch-compile-max-bs", "server-concurrency", "max-mamba-cache-size"),
    ]
)
SGLANG_NUMBERS = frozenset(
    ["mem-fraction-static", "watchdog-timeout", "schedule-conservativeness", "mamba-full-memory-ratio"]
)
"""Options of type int and float (python/sglang/srt/server_args.py, ServerArgs.add_cli_args, v0.5.5)."""
SGLANG_BACKENDS = (
    *("triton", "torch_native", "flex_attention", "nsa", "cutlass_mla", "fa3", "fa4", "flashinfer", "flashmla"),
    *("trtllm_mla", "trtllm_mha", "dual_chunk_flash_attn", "aiter", "wave", "intel_amx", "ascend", "intel_xpu"),
)
SGLANG_WORDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("attention-backend", "prefill-attention-backend", "decode-attention-backend"), SGLANG_BACKENDS),
    "speculative-algorithm": ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
    "moe-a2a-backend": ("none", "deepep", "mooncake"),
    "deepep-mode": ("normal", "low_latency", "auto"),
    "kv-cache-dtype": ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1"),
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "load-balance-method": ("round_robin", "shortest_queue", "minimum_tokens"),
    "schedule-policy": ("lpm", "random", "fcfs", "dfs-weight", "lof", "priority"),
    "disaggregation-transfer-backend": ("mooncake", "nixl", "ascend", "fake"),
}
"""Options with choices, and their words."""
SGLANG_SWITCHES = (
    *("tp-size", "tensor-parallel-size"),
    *("enable-dp-attention", "enable-dp-lm-head", "cuda-graph-bs", "enable-deterministic-inference"),
    *("disable-radix-cache", "disable-cuda-graph", "disable-overlap-schedule", "tool-call-parser", "reasoning-parser"),
    *("enable-deepep-moe", "enable-metrics", "disable-custom-all-reduce", "enable-mixed-chunk"),
)
"""Some of its switches and other options."""


def of_sglang(words: Sequence[Word], prefix: str) -> Iterator[Problem]:
    """The options behind a prefix that SGLang's parser refuses. Its releases accept different words, so only a word
    that is plainly another one is a mistake."""
    for at, word in enumerate(words):
        name, equal, value = (word.text or "").partition("=")
        option = name.removeprefix(prefix)
        yield from _misspelt(word, option, prefix) if option != name else ()
        if option == name or not (option in SGLANG_INTEGERS or option in SGLANG_NUMBERS or option in SGLANG_WORDS):
            continue
        own = word if equal else words[at + 1] if at + 1 < len(words) else None
        text = value if equal else own.text if own is not None else None
        if own is None or not text or own.maybe or text.startswith("--"):
            continue
        if option in SGLANG_WORDS:
            near = anagram_of(text, SGLANG_WORDS[option])
            if near:
                message = Message(
                    "{name} has no value {value:.60}; did you mean {near}?", name=name, value=text, near=near
                )
                yield Problem(REFUSED, message, own.span)
        elif not _is_number(text, whole=option in SGLANG_INTEGERS):
            kind: str = Message("an integer") if option in SGLANG_INTEGERS else Message("a number")
            yield Problem(
                REFUSED, Message("{name} must be {kind}, not {value:.60}", name=name, kind=kind, value=text), own.span
            )


def _misspelt(word: Word, option: str, prefix: str) -> Iterator[Problem]:
    """A misspelt option of SGLang: the parser accepts beginnings of its options, and drops other words."""
    known = (*SGLANG_INTEGERS, *SGLANG_NUMBERS, *SGLANG_WORDS, *SGLANG_SWITCHES)
    near = () if any(one.startswith(option.replace("_", "-")) for one in known) else typing_errors(option, known)
    if near:
        template = "SGLang has no option {name}, so it is dropped; did you mean {near}?"
        message = Message(template, name=f"{prefix}{option}", near=f"{prefix}{near[0]}")
        yield Problem(UNREAD, message, word.span, harmless=True, unknown_option=True)


def _is_number(text: str, *, whole: bool) -> bool:
    """Whether Python reads a text as a number."""
    try:
        return (int(text) if whole else float(text)) is not None
    except ValueError:
        return False
