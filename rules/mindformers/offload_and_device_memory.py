"""Checks of offloading and the device memory of a process."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, Unverified, rule
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Node
from preflight.source.finding import Key

_FILE = "mindformers/modules/transformer/transformer.py"
_MOVED = {"1.5.0": 0, "1.7.0": -24, "2.1.0": -29}
_CHECKS = "mindformers/tools/check_rules.py"
_MOVED_CHECKS = {"1.5.0": 0, "1.7.0": -4, "2.1.0": 20}


@rule(id="bad-swap-value", severity=Severity.ERROR, frameworks=("mindformers",), reads=("swap_config",))
def bad_swap_value(job: Job) -> Iterator[Finding]:
    """The framework rejects the form of an entry in swap_config.

    ## What it does
    Checks `layer_swap` and `op_swap`, which are lists of mappings. Each mapping has `layers` (layer IDs, or true for
    all layers) and `backward_prefetch`, and in `op_swap` also `op_name`. The framework checks them even when `swap` is
    off. If an entry applies to all layers, the entries of the list cannot have different prefetch distances. With swap
    on, the distance must be a positive integer.

    ## Why is this bad?
    The parallel settings cannot be created, and every rank crashes right after the context is set up.

    ## Example
        swap_config: {swap: True, layer_swap: [{layers: [0, 1]}]}
    Use instead:
        swap_config: {swap: True, layer_swap: [{layers: [0, 1], backward_prefetch: 1}]}

    ## Fix safety
    Safe: the fix uses the default distance, which is one layer.

    ## References
    MindFormers v1.5.0, mindformers/modules/transformer/transformer.py:227-300, TransformerSwapConfig
    MindFormers v1.5.0, mindformers/tools/check_rules.py:317-330, _rule_swap_no_pp; the same again in
    mindformers/tools/check_rules.py:320,
    mindformers/tools/check_rules.py:324 and mindformers/tools/check_rules.py:344, in 1.7.0
    mindformers/tools/check_rules.py:316 and
    mindformers/tools/check_rules.py:340, in 2.1.0 mindformers/tools/check_rules.py:340 and
    mindformers/tools/check_rules.py:364
    """
    section = job.arguments.tree.get("swap_config") if job.arguments.tree is not None else None
    version = read_at(job.versions.get("mindformers", ""))
    if section is None or version not in _MOVED:
        return
    swap = section.get("swap")
    on = swap is not None and swap.value is True
    for name in ("layer_swap", "op_swap"):
        node = section.get(name)
        if node is not None and node.value is not None:
            fault = next(_setting(node, name, on), None)
            if fault is not None:
                message, where, (file, line), fix = fault
                upstream = f"{file}:{line + (_MOVED if file == _FILE else _MOVED_CHECKS)[version]}"
                yield Finding(message, where.span, key=("swap_config", name), fix=fix, upstream=upstream)


_Place = tuple[str, int]
_Fault = tuple[str, Node, _Place, Fix | None]


def _setting(node: Node, name: str, on: bool) -> Iterator[_Fault]:
    entries = node.items if node.kind == "sequence" else (node,)
    if node.kind == "scalar":
        message = Message("{name} is {node}; it must be a list of mappings", name=name, node=node.shown[:30])
        yield message, node, (_FILE, 236 if name == "layer_swap" else 248), None
        return
    everywhere, seen = False, None
    for index, entry in enumerate(entries):
        if entry.kind != "mapping":
            message = Message(_NO_MAPPING, index=index, name=name)
            yield message, entry, (_FILE, 266), None
            return
        if name == "op_swap" and entry.get("op_name") is None:
            yield Message("entry {index} of op_swap has no op_name", index=index), entry, (_FILE, 291), None
        yield from _operators(entry) if name == "op_swap" else ()
        yield from _layers(entry, name, index, on)
        ahead, layers = entry.get("backward_prefetch"), entry.get("layers")
        everywhere = everywhere or (layers is not None and layers.value is True)
        if everywhere and seen is not None and ahead is not None and ahead.value != seen.value:
            message = Message(_DISTANCES, name=name, seen=seen.shown, ahead=ahead.shown)
            yield message, ahead, (_FILE, 269), None
        key: Key = ("swap_config", name, index) if node.kind == "sequence" else ("swap_config", name)
        yield from _prefetch(entry, name, index, key, on)
        seen = ahead


_NO_MAPPING = "entry {index} of {name} must be a mapping with layers and backward_prefetch"
_DISTANCES = "{name} swaps all layers, but with backward_prefetch {seen} and {ahead}; it must be one value"


def _prefetch(entry: Node, name: str, index: int, key: Key, on: bool) -> Iterator[_Fault]:
    ahead = entry.get("backward_prefetch")
    if ahead is None:
        fix = Fix("fetch one layer ahead", (Edit("set", (*key, "backward_prefetch"), 1),), Safety.SAFE)
        message = Message("entry {index} of {name} has no backward_prefetch", index=index, name=name)
        yield message, entry, (_FILE, 271), fix
    elif on and (not isinstance(ahead.value, int) or ahead.value < 1):
        message = Message("backward_prefetch is {ahead}; it must be a positive integer", ahead=ahead.shown)
        yield message, ahead, (_CHECKS, 328), None


def _operators(entry: Node) -> Iterator[_Fault]:
    """The operators of an entry of op_swap: one, or a list of them."""
    named = entry.get("op_name")
    if named is None:
        return
    if named.kind == "mapping" or (named.kind != "sequence" and not isinstance(named.value, str)):
        message = Message("op_name is {shown}; it must be the name of an operator, or a list", shown=named.shown[:30])
        yield message, named, (_FILE, 292), None
    elif any(not isinstance(item.value, str) for item in named.items):
        message = Message("op_name is {shown}; every entry must be the name of an operator", shown=named.shown[:30])
        yield message, named, (_FILE, 297), None


def _layers(entry: Node, name: str, index: int, on: bool) -> Iterator[_Fault]:
    layers = entry.get("layers")
    if layers is None:
        yield Message("entry {index} of {name} has no layers", index=index, name=name), entry, (_FILE, 277), None
        return
    if layers.kind != "sequence" and not isinstance(layers.value, bool):
        must, place = "they must be a list of layer IDs, or true", (_FILE, 277)
    elif not _ids(layers):
        must, place = "each entry must be a layer ID", (_FILE, 281)
    elif on and any(item.kind == "sequence" for item in layers.items):
        must, place = "with swap on, they must be one flat list of layer IDs", (_CHECKS, 292)
    else:
        return
    message = Message("the layers of {name} are {layers}; {must}", name=name, layers=layers.shown[:30], must=must)
    yield message, layers, place, None


def _ids(layers: Node) -> bool:
    """Whether a list holds layer ids, or lists of them."""
    nested = all(item.kind == "sequence" for item in layers.items)
    return (
        all(_ids(item) for item in layers.items)
        if nested
        else all(isinstance(item.value, int) for item in layers.items)
    )


GIB = 2**30
_POOL = "a pool of {pool:g} GiB exceeds the {usable:.2f} GiB of {device} that a process can use"
_BOTH = (
    "a pool of {pool:g} GiB and {buffers:.1f} GiB of communication buffers exceed the {usable:.2f} GiB of {device} "
    "that a process can use"
)


@rule(id="pool-beyond-device", severity=Severity.WARNING, frameworks=("mindformers",))
def pool_beyond_device(job: Job) -> Iterator[Finding | Unverified]:
    """max_device_memory leaves no room for communication buffers.

    ## What it does
    Adds the pool size and the memory outside the pool, which consists of two HCCL buffers of `HCCL_BUFFSIZE` MB (200 by
    default) for each communicator of the layout. The sum must not exceed the device memory that a process can get,
    which is 60.97 GiB on a 64 GB Atlas A2 card.

    ## Why is this bad?
    The pool is allocated first. The communicators then cannot allocate their buffers, often only when a group runs its
    first collective, and the error mentions HCCL instead of memory.

    ## Example
    On a 64 GB card:

        context: {max_device_memory: "61GB"}

    Use instead:

        context: {max_device_memory: "58GB"}

    ## Fix safety
    There is no fix, because the possible size of the pool depends on the memory that the model needs, which `preflight
    memory` shows.

    ## References
    MindSpore, context.set_context(max_device_memory); HCCL, HCCL_BUFFSIZE: each communicator occupies two buffers
    exclusively
    """
    device, pool = job.cluster.device, job.cluster.memory
    if not pool.known or not pool.written:
        return
    if device is None or device.usable is None:
        yield Unverified("the device's memory is unknown")
        return
    if device.vendor != "ascend":
        return
    buffers = job.memory.outside
    if pool.raw + buffers > device.usable:
        message = Message(
            _BOTH if buffers else _POOL,
            pool=pool.raw / GIB,
            buffers=buffers / GIB,
            usable=device.usable / GIB,
            device=device.name,
        )
        yield Finding(message, span=job.place(pool), key=pool.key)
