"""What a run knows from outside its options: its entry script, its machine, what may be added when it starts."""

from __future__ import annotations

from preflight.dialects.megatron.command_words import Spelled, has_sizes
from preflight.dialects.megatron.entries import Entry
from preflight.dialects.megatron.namespace import Run
from preflight.dialects.megatron.option_table import RELEASES, releases_with
from preflight.dialects.megatron.parse_faults import of_another_script
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.targets import ENTRIES
from preflight.run.cluster import Cluster
from preflight.run.value import Origin, Value, default, unknown
from preflight.source.pattern import lazy_pattern

LAYOUT = (
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("num_layers", "micro_batch_size", "global_batch_size"),
)
"""What another way to say the layout takes the place of."""
_SETS_LAYOUT = lazy_pattern(
    r"(pipe|parallel|layout|partition|shard|stage|strategy)[\w-]*-(config|file|json|plan|path)$|-(layout|strategy)-"
)


def seed(run: Run, parsed: Parsed, spelled: Spelled, cluster: Cluster, entry: Entry | None = None) -> None:
    """What the run knows from outside its options."""
    open_up(parsed, spelled)
    run.effective["world_size"] = cluster.count
    run.derive("entry", spelled.entry)
    _seed_entry(run, parsed, entry)
    run.derive("entry_is_known", _is_pretraining(run, parsed, spelled) if spelled.yaml else spelled.entry in ENTRIES)
    device = cluster.device
    known = (
        Value(device.architecture, Origin.DERIVED, note=device.name)
        if device is not None
        else unknown("the device is not given")
    )
    run.effective["device_architecture"] = known
    if run.written.get("yaml_cfg") is not None:
        for name in run.table.defaults:
            run.lose(name, "the file that --yaml-cfg names cannot be read here")
    for name in parsed.suspect:
        if name not in parsed.written:
            run.lose(name, "an option that may mean it cannot be read")
    if parsed.open:
        lose_defaults(run, parsed, "options may be added when the job starts")
    elif _has_own_options(run, parsed):
        lose_defaults(run, parsed, "the entry script has options of its own, and may have other defaults")
    if option := _foreign_layout(spelled):
        for name in LAYOUT:
            run.lose(name, f"{option} may set the layout")


def _seed_entry(run: Run, parsed: Parsed, entry: Entry | None) -> None:
    """What the entry script says of itself, and the defaults that it hands over."""
    run.derive("entry_is_shipped", entry is not None and entry.sure)
    run.derive("entry_trains", entry is None or entry.trains)
    for name, raw in entry.defaults.items() if entry is not None else ():
        if name not in parsed.written and run.value(name).raw is None:
            run.effective[name] = default(raw, entry.place if entry is not None else "")


def _foreign_layout(spelled: Spelled) -> str:
    """An option of no release that names a file or plan of the layout: a fork's, as --flexpipe-config;
    "" for none."""
    names = ((word.text or "").partition("=")[0] for word in spelled.words)
    alike = (name for name in names if name.startswith("--") and _SETS_LAYOUT.search(name))
    return next((name for name in alike if not any(releases_with(one, name) for one in RELEASES)), "")


def open_up(parsed: Parsed, spelled: Spelled) -> None:
    """Whether options may be added: not those of whoever starts the script,
    unless the run lacks the sizes of the model without."""
    from_caller = bool(parsed.assumed) and not has_sizes(spelled.words)
    parsed.open = parsed.open or spelled.open or from_caller
    parsed.assumed = [] if parsed.open else parsed.assumed


def _is_pretraining(run: Run, parsed: Parsed, spelled: Spelled) -> bool:
    """Whether a YAML file, which does not name its entry script, is for one without options of its own."""
    return spelled.plain and not any(of_another_script(run.table, fault) for fault in parsed.faults)


def _has_own_options(run: Run, parsed: Parsed) -> bool:
    """Whether some options are none of the framework's, in no release of it: the entry script brings them."""
    described = run.value("entry_is_known").raw or run.value("entry_is_shipped").raw
    return not described and any(of_another_script(run.table, fault, (run.table.framework,)) for fault in parsed.faults)


def lose_defaults(run: Run, parsed: Parsed, because: str) -> None:
    """What nobody typed is not known."""
    for name in run.table.defaults:
        if name not in parsed.written:
            run.lose(name, because)
