"""MindSpeed-LLM's FSDP2 entry: YAML sections become options; PyTorch's FSDP2 trains, and Megatron takes no part."""

from __future__ import annotations

import json
from collections.abc import Iterator

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout
from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.dialects.megatron.parser_input import Spelled, spell_environment
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.frontends.dotted_config import above, opener
from preflight.frontends.flat_options import FileWriter, typed
from preflight.frontends.front_end import FrontEnd, of_front_end
from preflight.frontends.megatron_run import Typed
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.options_by_release import at_stated
from preflight.frontends.published_architecture import lose_network
from preflight.loaders.document import Document, Node, Word
from preflight.run.published_models import published
from preflight.run.value import Value
from preflight.source.finding import Edit
from preflight.source.record import replace

STATE = "mindspeed_llm/fsdp2/distributed/parallel_state.py"
DERIVED = frozenset({"published_heads", "published_experts", "devices"})
"""Names in its checks that no key sets."""


def world(run: Run) -> Value:
    """The devices of the launch, otherwise the product over which parameters are sharded, which must be all devices."""
    count = run.value("world_size")
    return count if count.known else run.value("fsdp2_parallel_fsdp_size")


@derives("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_tensor_parallel_size", "bf16")
def forced(run: Run) -> None:
    """One stage, and no tensor parallelism: the parameters are sharded over all devices."""
    run.derive("tensor_model_parallel_size", 1, "FSDP2 shards over all devices")
    run.derive("pipeline_model_parallel_size", 1, "FSDP2 has one stage")
    run.derive("expert_tensor_parallel_size", 1, "experts are not split")
    run.derive("bf16", run.fsdp2_parallel_param_dtype == "bf16", of="fsdp2_parallel_param_dtype")


@derives("global_batch_size")
def batches(run: Run) -> None:
    """The accumulated batch of each rank, over all ranks except those that share a sequence (trainer.py:156)."""
    ranks = run.world_size // run.context_parallel_size
    size = run.micro_batch_size * run.fsdp2_training_gradient_accumulation_steps * ranks
    run.derive("global_batch_size", size, "per device × accumulation × ranks", of="micro_batch_size")


@derives()
def network(run: Run) -> None:
    """The network is the model's; values that only Megatron has are unknown."""
    lose_network(run, FSDP2.keys)


@derives("published_heads", "published_experts", "devices")
def sizes(run: Run) -> None:
    """Sizes of the named model as published: estimates for warnings."""
    run.derive("devices", run.world_size)
    given = run.written.get("model_path")
    model = published((given.raw,)) if given is not None and isinstance(given.raw, str) else None
    for name, size in (("published_heads", "heads"), ("published_experts", "experts")):
        if model is None:
            run.lose(name, "it is in the model's config.json")
        else:
            run.derive(name, model.sizes.get(size, 0), f"{model.name} as published", of="model_path")


APART = (
    *("megatron/", "mindspeed/", "pretrain_", "gpt_builders", "model_provider"),
    *(f"mindspeed_llm/{folder}/" for folder in ("core", "training", "features_manager", "tasks", "mindspore")),
)
"""Megatron, MindSpeed's features and those of MindSpeed-LLM's other entries take no part."""
FSDP2 = FrontEnd(
    "mindspeed-llm-fsdp2",
    "26.1.0",
    core="0.18.0",  # used only for the names of its arguments
    world=world,
    before=(forced, batches, network),
    after=(sizes,),
    steps=(*layout.STEPS, *batch.STEPS),
    unread="dropped",
    apart=APART,
    shortened=True,
)


class SectionsWriter(FileWriter):
    """Writes keys of sections."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edit that sets an option."""
        return tuple(
            edit._replace(key=tuple(str(edit.key[0]).split(".", 1))) if len(edit.key) == 1 else edit
            for edit in super().put(name, value)
        )

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """The file contains no environment."""
        return ()


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A config, or a launch whose first argument names one."""
    front_end = at_stated(FSDP2, surroundings.request.target)
    if document.launch is None:
        return reading(front_end, document, surroundings, _in_file(front_end, document, surroundings))
    words = document.launch.words
    path = words[0].text or "" if words else ""
    if not path.endswith((".yaml", ".yml")):
        return reading(front_end, document, surroundings, typed(front_end, document, surroundings))
    found = above(document, path, opener(document, surroundings))
    rest = replace(document, launch=document.launch._replace(words=words[1:]))
    over = typed(front_end, rest, surroundings)
    if found is None:
        over.parsed.open = True
        return reading(front_end, document, surroundings, over)
    below = _in_file(front_end, found, surroundings)
    joined = {word.text.partition("=")[0] for word in words if word.text is not None and "=" in word.text}
    for name, value in below.parsed.written.items():  # a value in the file overrides one that follows a blank
        if name not in over.parsed.written or not joined.intersection(over.parsed.spelt.get(name, ())):
            over.parsed.written[name] = value
    over.parsed.faults += below.parsed.faults
    return reading(front_end, document, surroundings, over._replace(documents=(document, found)))


def _in_file(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Typed:
    """The options generated from a file."""
    parsed = Parsed()
    writer = SectionsWriter(front_end, parsed, document)
    words = tuple(_words(document.tree)) if document.tree is not None else ()
    parse(words, front_end.keys, _path, document.run, parsed, writer.put)
    parsed.faults = list(of_front_end(front_end, parsed.faults, stated=surroundings.request.target is not None))
    spelled = Spelled((), lambda option: (option,), spell_environment(surroundings.request.environment), yaml=True)
    return Typed(parsed, spelled, writer, (document,))


def _path(option: str) -> tuple[str, ...]:
    return tuple(option.removeprefix("--").split(".", 1))


def _words(tree: Node) -> Iterator[Word]:
    """`--section.key value` for each entry of a section, as the program generates them (arguments.py:944)."""
    for section in tree.entries:
        for entry in section.value.entries if section.value.kind == "mapping" else ():
            if entry.shadowed or entry.value.plain() is None:
                continue
            yield Word(f"--{section.key.value}.{entry.key.value}", entry.key.span)
            if entry.value.kind == "sequence":
                yield from (Word(str(item.plain()), item.span, editable=False) for item in entry.value.items)
            elif entry.value.kind == "mapping":
                yield Word(json.dumps(entry.value.plain(), default=str), entry.value.span, editable=False)
            else:
                yield Word(str(entry.value.plain()), entry.value.span, editable=entry.value.style == "")
