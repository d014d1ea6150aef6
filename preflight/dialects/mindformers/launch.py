"""A launch of run_mindformer.py: the YAML file that it names, and the options that override the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from preflight.dialects import Reading, Surroundings
from preflight.dialects.device_and_release import listed_devices, rank_table, which
from preflight.dialects.mindformers.config_kind_and_loading import VERSIONS, kind_of
from preflight.loaders.document import Count, Document, Launch, Setting, Unknown, Word
from preflight.run.arguments import REMOVE, Arguments
from preflight.run.cluster import Cluster
from preflight.run.request import Request, Target
from preflight.run.training_plan import Plan
from preflight.run.value import Origin, Value, derived, unknown
from preflight.source.finding import Edit
from preflight.source.record import replace
from preflight.source.typing_without_import import Any

NAMES = {
    "mode": "context.mode",
    "device_id": "context.device_id",
    "device_target": "context.device_target",
    "strategy_load_checkpoint": "parallel.strategy_ckpt_load_file",
    "train_dataset_dir": "train_dataset.data_loader.dataset_dir",
    "eval_dataset_dir": "eval_dataset.data_loader.dataset_dir",
    "do_sample": "model.model_config.do_sample",
    "epochs": "runner_config.epochs",
    "batch_size": "runner_config.batch_size",
    "gradient_accumulation_steps": "runner_config.gradient_accumulation_steps",
    "sink_mode": "runner_config.sink_mode",
}
"""Options whose names differ from their keys in the config."""
_BOOLEANS = frozenset(
    "do_eval auto_trans_ckpt only_save_strategy use_parallel profile sink_mode do_sample trust_remote_code".split()
)
_TEXTS = frozenset(
    (
        "run_mode device_target load_checkpoint src_strategy_path_or_dir output_dir register_path remote_save_url "
        "train_dataset_dir"
    ).split()
)
_APART = frozenset(
    [
        "config",
        "predict_data",
        "modal_type",
        "predict_batch_size",
        "adapter_id",
        "options",
        "num_samples",
        "register_path",
    ]
)


def read_launch(document: Document, surroundings: Surroundings) -> Reading:
    """Read the config that a launch names, overridden by the launch's options."""
    launch = document.launch
    assert launch is not None
    given = dict(_options(launch))
    named = given.get("config")
    config = surroundings.read(document, named.text) if named is not None and named.text is not None else None
    if config is None or config.tree is None:
        return _unread(document, surroundings, named)
    ranks = rank_table(document, surroundings)
    listed = (listed_devices(ranks, document),) if ranks is not None else ()
    request = _request(launch, surroundings.request, *(int(value.raw) for value in listed))
    around = surroundings._replace(request=request)
    if kind_of(config.tree) == "pynative":
        from preflight.dialects.mindformers.pynative_config import read_pynative

        reading = read_pynative(config, config.tree, around)
    else:
        from preflight.dialects.mindformers.graph_config import read_graph

        reading = read_graph(config, around, overrides(launch, document.run))
    cluster = _cluster(reading.cluster, launch, surroundings.request, listed)
    if cluster.device is None:
        device, where = which(document, surroundings)
        cluster = replace(cluster, device=device, named=where)
    return reading._replace(
        documents=(document, *reading.documents, *([ranks] if ranks is not None else [])), cluster=cluster
    )


def overrides(launch: Launch, run: int = 0) -> dict[str, Value]:
    """The values by which the launch's options override the file, by dotted name."""
    found: dict[str, Value] = {}
    flags = {(word.parts[0].text or "").lstrip("-"): word.parts[0] for word in launch.words}
    for option, word in _options(launch):
        if option in _APART:
            continue
        raw: Any = Unknown(word.because) if word.text is None else _value(option, word.text)
        raw = Unknown("it is set on one branch of a condition only") if word.maybe else raw
        flag = flags.get(option, word)
        setting = Setting((f"--{option}",), raw, word.span, flag.span, word.uses, word.editable, word.maybe, run)
        origin = Origin.UNKNOWN if isinstance(raw, Unknown) else Origin.WRITTEN
        found[NAMES.get(option, option)] = Value(
            raw, origin, setting, "given on the command line", edits=_Editor(f"--{option}", word, run)
        )
    return found


class _Editor:
    """Edits of an option of the launch."""

    def __init__(self, flag: str, word: Word, run: int) -> None:
        self.flag, self.word, self.run = flag, word, run

    def __call__(self, value: object) -> tuple[Edit, ...]:
        if value is REMOVE:
            return (Edit("remove", (self.flag,), None, self.word.span, self.run),)
        return (Edit("set", (self.flag,), value, self.word.span, self.run),)


def _options(launch: Launch) -> Iterator[tuple[str, Word]]:
    """Options with their first value; "--a.b=2" and "--a.b 2" are equal."""
    words = list(launch.words)
    for at, word in enumerate(words):
        flag, value = word.parts
        if flag.text is None or not flag.text.startswith("--"):
            continue
        following = words[at + 1] if at + 1 < len(words) else None
        chosen = value if value is not None else following
        if chosen is not None and not (value is None and (chosen.text or "").startswith("--")):
            yield flag.text[2:], chosen


def _value(option: str, text: str) -> Any:
    """A value converted like upstream's parser does."""
    if option in _TEXTS:
        return text
    if option in _BOOLEANS or option == "resume_training":
        return text.lower() == "true" if text.lower() in ("true", "false") else text
    try:
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        pass
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _request(launch: Launch, request: Request, *listed: int) -> Request:
    """The caller's request, completed from the launcher, otherwise from a rank table."""
    if request.devices is not None:
        return request
    started = (count.value for count in launch.world if isinstance(count.value, int) and not count.placeholder)
    world = next(chain(started, listed), None)
    per_node = launch.per_node.value if launch.per_node is not None and isinstance(launch.per_node.value, int) else None
    return request._replace(world_size=world, devices_per_node=request.devices_per_node or per_node)


def _cluster(cluster: Cluster, launch: Launch, request: Request, listed: tuple[Value, ...]) -> Cluster:
    said = (*(_counted(count) for count in launch.world), *listed)
    if request.devices is not None or not said:
        return replace(cluster, said=said)
    return replace(
        cluster,
        said=said,
        count=next((value for value in said if value.known), cluster.count) if cluster.count.known else cluster.count,
    )


def _counted(count: Count) -> Value:
    setting = Setting((), count.value, count.span, count.span, editable=False) if count.span is not None else None
    if isinstance(count.value, Unknown):
        return Value(count.value, Origin.UNKNOWN, setting, count.value.because)
    return Value(count.value, Origin.WRITTEN, setting, count.source)


def _unread(document: Document, surroundings: Surroundings, named: Word | None) -> Reading:
    """A run whose config is not available: all of its values are unknown."""
    because = f"{named.text or named.because} is not read" if named is not None else "the launch names no config"
    wanted = surroundings.request.target
    target = Target(
        "mindformers", wanted.version if wanted is not None and wanted.version in VERSIONS else VERSIONS[-1]
    )
    arguments = Arguments(
        target,
        {},
        {"clashes": derived(())},
        lambda name: unknown(because),
        open=True,
        versions={"mindformers": target.version},
    )
    assert document.launch is not None
    said = tuple(_counted(count) for count in document.launch.world)
    return Reading((document,), target, arguments, Plan(target=target), Cluster(said=said))
