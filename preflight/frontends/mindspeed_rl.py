"""MindSpeed-RL: sections of a Hydra config become options of MindSpeed-LLM, for the actor on its devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.run_derivation import MINDSPEED_STEPS
from preflight.frontends.described_releases import contracts
from preflight.frontends.dotted_config import Dotted, hydra, typed
from preflight.frontends.front_end import FrontEnd, doubted, unread
from preflight.frontends.hydra_faults import REFUSED, of_missing
from preflight.frontends.megatron_run import Typed, words_of_code
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.options_by_release import at_release, at_stated
from preflight.frontends.published_architecture import trained
from preflight.frontends.section_options import SectionWriter, layered, read_sections
from preflight.loaders.composition.merging import mapping
from preflight.loaders.composition.overrides import apply
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Problem, Setting
from preflight.run.request import Target
from preflight.run.training_plan import Plan
from preflight.run.value import Origin, Value, default, derived, unknown
from preflight.source.finding import Edit, Message
from preflight.source.record import replace
from preflight.source.spelling import nearest

TRAINING, ACTOR, RL, GENERATE = "megatron_training", "actor_config", "rl_config", "generate_config"
ROLES = {"ref_config": "reference", "critic_config": "critic"}
OTHERS = ("ref_config", "reward_config", "critic_config", "vit_config")
INTEGRATED = ("ref_config", "reward_config")
"""Sections that the shared worker of all roles does not accept (train_grpo.py:203)."""
WORKER = "mindspeed_rl/workers/base_worker.py"


def world(run: Run) -> Value:
    """The devices of the actor; a config without roles is started by a launcher."""
    count = run.value("actor_npus")
    if not isinstance(count.raw, int):
        return run.value("world_size")
    return trained(run, "actor_npus", count.raw, "devices of the actor")


@derives("global_batch_size")
def batches(run: Run) -> None:
    """An RL batch counts prompts, each with several samples (base_worker.py:141 with train_grpo.py:78)."""
    if "prompts" in run.written:
        run.derive("global_batch_size", run.prompts * run.n_samples_per_prompt, "prompts × samples", of="prompts")


@derives("pad_to_multiple_of")
def padding(run: Run) -> None:
    """Independent of the config (megatron_config.py:402)."""
    ranks = run.tensor_model_parallel_size * run.context_parallel_size
    run.derive("pad_to_multiple_of", ranks, "tensor × context parallel")


@derives("generation_ranks")
def generation(run: Run) -> None:
    """The replicas that generate on the actor's devices (validate_config.py:159)."""
    each = run.infer_tensor_parallel_size * run.infer_pipeline_parallel_size
    run.derive("generation_ranks", run.actor_npus // each)


@derives("verifiers", "verifier_weights", "metric_is_verified")
def rewards(run: Run) -> None:
    """The number of metrics, and whether one of them is the metric by which groups are filtered."""
    run.derive("verifiers", len(run.verifier_function), of="verifier_function")
    run.derive("verifier_weights", len(run.verifier_weight), of="verifier_weight")
    run.derive("metric_is_verified", run.filter_groups_metric in run.verifier_function, of="verifier_function")


MINDSPEED_RL = FrontEnd(
    "mindspeed-rl",
    "2.3.0",
    core="0.12.1",
    on=Target("mindspeed-llm", "2.3.0"),
    world=world,
    spawns=True,
    before=(batches, padding),
    after=(generation, rewards),
    steps=MINDSPEED_STEPS,
    unread="refused",
    apart=("pretrain_", "megatron/training/tokenizer", "megatron/core/datasets", "mindspeed_llm/tasks/preprocess"),
)
OLD_KEYS = frozenset(
    [
        *("variable_seq_lengths", "cp_attention_mask_type", "moe_intermediate_size", "multi_head_latent_attention"),
        *("n_group", "topk_group", "qk_nope_head_dim", "qk_rope_head_dim", "routed_scaling_factor"),
        *("rope_scaling_beta_fast", "rope_scaling_beta_slow"),
    ]
)
"""Keys of releases before 2.3 that have been removed since."""


class Writer(SectionWriter):
    """Writes a batch of samples as a number of prompts."""

    samples: object = 1

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument."""
        if name == "global_batch_size" and self.samples != 1:
            whole = isinstance(value, int) and isinstance(self.samples, int) and self.samples > 0
            if not whole or value % self.samples:  # type: ignore[operator]
                return ()
            value = value // self.samples  # type: ignore[operator]
        return super().put("global_batch_size" if name == "prompts" else name, value)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A config with its model, and the overrides of the launch that names it."""
    found = hydra(document, surroundings)
    own = (document,) if document.launch is not None else ()
    documents = (*own, *found.documents) if found is not None else (document,)
    tree, _ = apply(found.tree, found.overrides) if found is not None else (mapping((), document.source.span(0)), ())
    config = Composed(tree)
    front_end = _release(config, surroundings.request.target)
    made = _typed(front_end, Dotted(config, documents, found.overrides if found is not None else ()), surroundings)
    open_launch = document.launch is not None and document.launch.open
    made.parsed.open = found is None or bool(found.missing) or open_launch or _model_is_missing(config)
    if found is not None and found.missing:
        made.parsed.faults += of_missing(found.documents[0], found.missing)
    made.parsed.faults += _unknown_models(config)
    result = reading(front_end, document, surroundings, made)
    if config.at(RL).node is None:
        return result
    return result._replace(plan=_in_lengths(result))


def _in_lengths(reading: Reading) -> Plan:
    """The plan with sequences as long as prompts and responses; seq_length applies only to the dataset."""
    plan, told = reading.plan, reading.arguments
    prompt, response = told.get("max_prompt_length").raw, told.get("sampling_max_tokens").raw
    known = isinstance(prompt, int) and isinstance(response, int)
    longest = derived(prompt + response, "prompt + response") if known else unknown("how long a response is")
    varying = derived(True, "sequences keep their length")
    return replace(plan, batch=replace(plan.batch, varying=varying), model=replace(plan.model, sequence=longest))


def _release(config: Composed, wanted: Target | None) -> FrontEnd:
    """The requested release, otherwise the one that knows the keys of the config."""
    if wanted is not None and wanted.version:
        return at_stated(MINDSPEED_RL, wanted)
    keys = layered(config, (TRAINING, ACTOR)).keys()
    return MINDSPEED_RL if keys.isdisjoint(OLD_KEYS) else at_release(MINDSPEED_RL, contracts(MINDSPEED_RL.name)[0])


CLASSES = "mindspeed_rl/config_cls"
FILES = {GENERATE: "generate_config.py", RL: "rl_config.py"}
"""The folder of the classes that read its configs, and the files of its sections except those of models."""


def _typed(front_end: FrontEnd, dotted: Dotted, surroundings: Surroundings) -> Typed:
    """The actor's options, the values of the other sections, and the layouts of the other roles."""
    config = dotted.config
    writer = Writer(front_end, dotted, (TRAINING, ACTOR))
    made = typed(front_end, dotted, surroundings, writer)
    parsed = made.parsed
    read_sections(writer, parsed, {"ray_dapo": "ray_grpo"})  # base_worker.py:201
    strange = [(section, doubted(one, surroundings)) for section, one in _unknown_keys(front_end, config, writer)]
    for section in dict.fromkeys(section for section, _ in strange):
        file = f"{CLASSES}/{FILES.get(section, 'megatron_config.py')}"
        own = words_of_code(file, dotted.documents[-1], surroundings)
        parsed.faults += [one for of, one in strange if of == section and one.span.text not in own]
    if config.at(RL).node is not None:
        _prompts(writer, parsed)
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": default("1", f"{WORKER}:131"), **made.spelled.environment}
    return made._replace(parsed=parsed, spelled=replace(made.spelled, environment=environment))


def _prompts(writer: Writer, parsed: Parsed) -> None:
    """The batch under another name, because Megatron receives a different one."""
    samples = parsed.written.get("n_samples_per_prompt")
    writer.samples = samples.raw if samples is not None else 1
    for section in INTEGRATED:
        found = writer.dotted.config.at(section)
        if found.key is not None and found.node is not None:
            setting = Setting((section,), section, found.key.span, found.key.span, editable=False)
            parsed.written["separate_section"] = Value(section, Origin.WRITTEN, setting)
    batch = parsed.written.get("global_batch_size")
    if batch is not None:
        parsed.written["prompts"] = batch._replace(edits=partial(writer.put, "prompts"))
    for section, role in ROLES.items():
        for key, flag in MINDSPEED_RL.keys.options.items():
            shared = parsed.written.get(flag.dest) is None and key.startswith(f"{section}.")
            below = writer.dotted.config.at(TRAINING, key.partition(".")[2]) if shared else None
            if below is not None and isinstance(below.value, int):
                parsed.written[f"{role}_{key.partition('.')[2]}"] = derived(below.value, TRAINING)


def _unknown_keys(front_end: FrontEnd, config: Composed, writer: SectionWriter) -> Iterator[tuple[str, Problem]]:
    """Keys that no class has, each with its section."""
    options = front_end.keys.options
    for key, one in writer.found.items():
        if key not in options and (typed := one.key or one.node) is not None:
            path = tuple(map(str, one.path))
            yield path[0], unread(front_end, key, typed.span, path=path, shown=".".join(path))
    for section in OTHERS:
        node = config.at(section).node
        for entry in node.entries if node is not None else ():
            key = str(entry.key.value)
            if key.replace("-", "_") not in options and key != "model":
                yield section, unread(front_end, key, entry.key.span, path=(section, key), shown=f"{section}.{key}")
    inner = {name.rpartition(".")[0] for name in options if name.count(".") == 2}
    for section in (RL, GENERATE, *sorted(inner)):
        node = config.at(*section.split(".")).node
        for entry in node.entries if node is not None else ():
            key = f"{section}.{str(entry.key.value).replace('-', '_')}"
            if key not in options and key not in inner:
                path = (*section.split("."), str(entry.key.value))
                yield section, unread(front_end, key, entry.key.span, path=path)


def _unknown_models(config: Composed) -> Iterator[Problem]:
    """Misspelt names of the model whose config belongs to a role."""
    models = config.at("model").node
    names = [str(one.key.value) for one in models.entries] if models is not None else []
    for section in (TRAINING, ACTOR, *OTHERS):
        found = config.at(section, "model")
        known = found.node is None or not isinstance(found.value, str) or found.value in names
        near = None if known else nearest(str(found.value), names, 0.6)
        if near and found.node is not None:
            template = "there is no model config {name}; did you mean {near}?"
            yield Problem(REFUSED, Message(template, name=found.value, near=near), found.node.span)


def _model_is_missing(config: Composed) -> bool:
    """Whether the named model has no config."""
    named = [config.at(section, "model").value for section in (TRAINING, ACTOR)]
    return any(isinstance(one, str) and config.at("model", one).node is None for one in named)
