"""FlagScale: an experiment and its training config, whose system, model and data become options."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline, silent_changes
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.parse_faults import BAD_CHOICE, BAD_VALUE
from preflight.frontends.dotted_config import Dotted, opener, typed
from preflight.frontends.flagscale_process_meshes import meshes
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.frontends.hydra_faults import REFUSED, of_missing
from preflight.frontends.megatron_run import package_of
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.options_by_release import at_stated
from preflight.frontends.published_architecture import trained
from preflight.frontends.section_options import Shape, flatten
from preflight.loaders.composition.hydra import composed
from preflight.loaders.composition.merging import mapping, put
from preflight.loaders.composition.resolved_values import Composed, omegaconf_values
from preflight.loaders.document import Document, Node, Problem, Unknown
from preflight.run.arguments import REMOVE
from preflight.run.value import Value, unknown
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.record import replace
from preflight.source.resolved_words import Needed, Reason
from preflight.source.spelling import nearest

NAME = "experiment"
GPT = ("train_gpt.py", "train_aquila_sft.py")
TOKENIZERS = {"train_rwkv.py": "RWKVTokenizer", "train_qwen2_5_vl.py": "Qwen2VLTokenizer"}
"""The default tokenizer of its entry scripts; the others use that of GPT-2."""
OTHERS = ("train_llava.py", "train_llava_onevision.py", *TOKENIZERS)
SHAPE = Shape(
    sections=(("train", "system"), ("train", "model"), ("train", "data")),
    left_out={
        **dict.fromkeys(("log_dir", "details_dir", "scripts_dir", "pids_dir"), REMOVE),
        **dict.fromkeys(("save", "load", "tensorboard_dir", "wandb_save_dir")),
    },
    environment=("experiment", "envs"),
    runner=("device_type_specific", "node_specific"),
)
TUNED = (
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "micro_batch_size"),
    *("expert_model_parallel_size", "sequence_parallel", "use_distributed_optimizer", "recompute_method"),
    *("recompute_granularity", "recompute_num_layers", "num_layers_per_virtual_pipeline_stage"),
    *("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"),
)
SHORTENED = (
    *("train_samples", "train_iters", "rampup_batch_size", "lr_warmup_samples", "lr_decay_samples", "save_interval"),
    "load",
)
"""Settings that the auto-tuner chooses, and those that it changes or drops to shorten runs
(flagscale/runner/auto_tuner/generate.py)."""


def world(run: Run) -> Value:
    """Processes of one node if there is no hostfile; otherwise those in the hostfile."""
    try:
        count = _processes(run) * _nodes(run)
    except (NotKnown, TypeError, ValueError) as error:
        return unknown(error.because if isinstance(error, NotKnown) else str(error))
    return trained(run, "runner_processes", count, "nodes × processes per node")


def _nodes(run: Run) -> int:
    """Only a hostfile or the cloud provides several nodes."""
    if run.action == "auto_tune":
        raise NotKnown("the auto-tuner starts separate runs")
    cloud = run.runner_type == "cloud"
    if run.hostfile is not None and not cloud:
        raise NotKnown(Reason("the number of devices is in the hostfile", Needed.WORLD_SIZE))
    nodes = run.runner_nodes
    return int(str(nodes).partition(":")[0]) if cloud and not run.per_node_task else 1


def _processes(run: Run) -> int:
    wanted, visible = run.runner_processes, run.visible_devices
    shown = len(visible.split(",")) if isinstance(visible, str) and visible else None
    found = [int(one) for one in (wanted, shown) if one is not None]
    return min(found) if found else 1


@derives("save", "load", "tensorboard_dir", "wandb_save_dir")
def folders(run: Run) -> None:
    """Checkpoints and logs are below the folder of the experiment unless configured separately."""
    for name, folder in (("save", "checkpoints"), ("load", "checkpoints"), ("tensorboard_dir", "tensorboard")):
        if name not in run.written:
            run.derive(name, posixpath.join(str(run.exp_dir), folder), "below exp_dir", of="exp_dir")
    if "wandb_save_dir" not in run.written:
        run.derive("wandb_save_dir", posixpath.join(str(run.exp_dir), "wandb"), "below exp_dir", of="exp_dir")


@derives("tokenizer_type", "entry_is_known", "entry_is_shipped")
def script(run: Run) -> None:
    """Its entry scripts of other models have different options and a different tokenizer."""
    name = str(run.entrypoint).rpartition("/")[2]
    run.derive("entry_is_known", name in GPT)
    run.derive("entry_is_shipped", True)
    if "tokenizer_type" not in run.written:
        run.derive("tokenizer_type", TOKENIZERS.get(name, "GPT2BPETokenizer"), name)


@derives("lora_target_modules", "lora_r")
def adapters(run: Run) -> None:
    """Adapters exist only if their type is set."""
    if run.peft_type is None:
        run.derive("lora_target_modules", None, "peft_type is not set")
    else:
        run.derive("lora_r", run.lora_dim, of="lora_dim")


@derives("ffn_hidden_size")
def gated(run: Run) -> None:
    """With multiple_of, two thirds of four times the hidden size, rounded up."""
    if run.ffn_hidden_size is None and run.swiglu and run.multiple_of is not None:
        size = int(4 * run.hidden_size * 2 / 3)
        if run.hidden_dim_multiplier is not None:
            size = int(size * run.hidden_dim_multiplier)
        unit = run.multiple_of
        run.derive("ffn_hidden_size", unit * ((size + unit - 1) // unit), f"multiples of {unit}", of="multiple_of")


@derives()
def tuned(run: Run) -> None:
    """The auto-tuner chooses the layout and shortens the run; values of a config without its experiment are used as
    written."""
    action = run.value("action")
    if action.raw == "auto_tune":
        for name in (*TUNED, *SHORTENED):
            run.lose(name, "the auto-tuner chooses it")
    for name in SHORTENED if not action.known else ():
        if name not in run.written:
            run.lose(name, "an auto-tuner may choose it")


@derives("transformer_pipeline_model_parallel_size")
def embedding_stage(run: Run) -> None:
    """The embedding may have a separate stage: the split of layers is not described."""
    if run.standalone_embedding_stage:
        for name in ("num_layers", "encoder_num_layers", "transformer_pipeline_model_parallel_size"):
            run.lose(name, "the embedding has a separate stage")


OF_OPTIONS = (UNREAD, BAD_CHOICE, BAD_VALUE)
"""Faults that depend on the options of a release: after 0.9.0, FlagScale trains with another Megatron (Megatron-LM-FL),
whose options are not described."""
FLAGSCALE = FrontEnd(
    "flagscale",
    "0.9.0",
    core="0.13.0",
    world=world,
    before=(tuned, folders, script, adapters, gated, meshes, embedding_stage),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS, *silent_changes.STEPS),
    unread="refused",
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """An experiment with its training config, or that config alone."""
    assert document.tree is not None
    if document.tree.get("experiment") is None:
        alone = mapping((), document.tree.span)
        key = Node("scalar", "train", document.tree.span)
        tree = put(alone, ("train",), key, omegaconf_values(document.tree))
        return _read(Dotted(Composed(tree, "the experiment is not read"), (document,)), surroundings, whole=True)
    other = opener(document, surroundings)
    found = composed(NAME, lambda name: document if name == NAME else other(document, f"{name}.yaml"))
    assert found is not None
    missing = f"{found.missing[0]} is not read" if found.missing else ""
    config = Composed(found.tree, missing)
    made = _read(Dotted(config, found.documents), surroundings, whole=not missing)
    told = (
        *of_missing(document, found.missing),
        *of_interpolations(config),
        *of_names(Composed(document.tree)),
        *of_counts(Composed(document.tree)),
    )
    return made._replace(arguments=replace(made.arguments, problems=(*made.arguments.problems, *told)))


NAMES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("experiment", "task", "type"): ("train", "inference", "serve", "compress", "rl"),
    ("experiment", "task", "backend"): ("megatron",),
    ("experiment", "runner", "type"): ("ssh", "cloud"),
    ("action",): ("run", "dryrun", "test", "stop", "query", "auto_tune"),
}
"""Words that run.py and runner_train.py compare."""


def of_names(config: Composed) -> Iterator[Problem]:
    """Words of the experiment that its runner does not know."""
    for path, known in NAMES.items():
        found = config.at(*path)
        if found.node is None or not isinstance(found.value, str) or found.value in known or "$" in found.value:
            continue
        near = nearest(found.value, known, 0.6)
        hint = Message("; did you mean {near}?", near=near) if near else ""
        values = {"key": ".".join(path), "choices": known, "value": found.value, "hint": hint}
        yield Problem(REFUSED, Message("{key} accepts {choices:and}, not {value}{hint}", **values), found.node.span)


COUNTS: Mapping[str, tuple[str, ...]] = {"nnodes": (), "nproc_per_node": ("auto", "cpu", "gpu", "xpu", "npu", "musa")}
"""Numbers of the runner that Python's int, or torchrun, reads, and words that torchrun accepts
(flagscale/runner/utils.py:293-330). The number of nodes is read only with a list of hosts or in the cloud
(runner_train.py:409-428, 721)."""


def of_counts(config: Composed) -> Iterator[Problem]:
    """Counts of the runner that are not numbers; a range of nodes is accepted."""
    for name, words in COUNTS.items():
        found = config.at("experiment", "runner", name)
        value, node = found.value, found.node
        if node is None or not isinstance(value, str) or "$" in value or value in words:
            continue
        hosts = config.at("experiment", "runner", "hostfile").value is not None
        read = name != "nnodes" or hosts or config.at("experiment", "runner", "type").value == "cloud"
        if read and not value.partition(":")[0].strip().lstrip("+").isdigit():
            message = Message("experiment.runner.{name} must be a number, not {value:.60}", name=name, value=value)
            yield Problem(REFUSED, message, node.span)


def of_interpolations(config: Composed) -> Iterator[Problem]:
    """Interpolations of a key of the experiment that it lacks: all of them are resolved before anything is started."""
    for section in ("experiment", "hydra", "train"):
        found = config.at(section)
        left: list[tuple[tuple[str, ...], Node]] = [((section,), found.node)] if found.node is not None else []
        while left:
            path, node = left.pop()
            if node.kind == "mapping":
                left += [((*path, str(one.key.value)), one.value) for one in node.entries if not one.shadowed]
            elif node.kind == "scalar" and (lost := config.dead(path, node)).startswith("experiment."):
                message = Message(
                    "{key} refers to {lost}, which the config does not have", key=".".join(path), lost=lost
                )
                yield Problem(REFUSED, message, node.span)


def _read(dotted: Dotted, surroundings: Surroundings, *, whole: bool) -> Reading:
    """whole: whether there are no other options."""
    entry = dotted.config.at("experiment", "task", "entrypoint").value
    own = not isinstance(entry, Unknown) and str(entry).rpartition("/")[2] not in (*GPT, *OTHERS)
    stated = surroundings.request.target is not None
    known = at_stated(FLAGSCALE, surroundings.request.target)
    made = flatten(known, typed(known, dotted, surroundings), dotted, SHAPE, stated=stated, foreign=own)
    made.parsed.open = own or not whole
    package = package_of(known, dotted.documents[0], surroundings)
    if package is None or (package.version and numbers(package.version) <= numbers(known.release)):
        return reading(known, dotted.documents[0], surroundings, made)
    made.parsed.faults = [fault for fault in made.parsed.faults if fault.kind not in OF_OPTIONS]
    found = reading(known, dotted.documents[0], surroundings, made)
    certainty = found.arguments.certainty._replace(has=lambda rule: False)
    return found._replace(arguments=replace(found.arguments, certainty=certainty))
