"""mcore_adapter: Megatron behind transformers' training arguments, in ROLL's YAML by role or in a flat file of
LLaMA-Factory."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.dialects.megatron.options import Flag
from preflight.frontends.dotted_config import Dotted, above, after, hydra, opener, typed
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.frontends.megatron_run import Typed
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.options_by_release import at_stated, part_of
from preflight.frontends.published_architecture import lose_network, trained
from preflight.loaders.composition.merging import mapping
from preflight.loaders.composition.overrides import Override, apply, read_override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Node, Problem, Setting
from preflight.program.checkout.framework_discovery import Files
from preflight.run.published_models import published
from preflight.run.value import Origin, Value, derived, unknown
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import nearest

CONFIG = "mcore_adapter/src/mcore_adapter/models/model_config.py"
ARGUMENTS = "mcore_adapter/src/mcore_adapter/training_args.py"
STRATEGY, TRAINING = "strategy_args.strategy_config", "training_args"
ROLES = ("actor_train", "student_train", "sft_train", "student")
"""Strategies that train, in the pipelines of ROLL."""
SLIP = 0.85
"""The similarity from which an unknown key is reported as a misspelling of a field."""
DERIVED = frozenset(
    ["rl_samples_per_rank", "samples_per_update", "published_layers", "all_stages", "learns_by_rewards", "role_name"]
)
"""Names in its checks that no key sets."""


def role(tree: Node | None) -> str:
    """The role that Megatron trains in a ROLL config; "" if there is none."""
    for name in ROLES:
        strategy = tree.get(name, "strategy_args", "strategy_name") if tree is not None else None
        if strategy is not None and strategy.value == "megatron_train":
            return name
    return ""


def devices(text: object) -> int | None:
    """The number of devices that a mapping names, which ROLL evaluates; None if it is not read."""
    try:
        return len(_listed(ast.parse(str(text).strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _listed(node: ast.expr) -> Sequence[int]:
    """The numbers in a list, in `list(range(…))`, or in a sum of these."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_number(one) for one in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_listed(node.left), *_listed(node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id == "list" and len(node.args) == 1:
            return _listed(node.args[0])
        if node.func.id == "range" and 1 <= len(node.args) <= 3:
            found = range(*map(_number, node.args))
            if len(found) <= 1_000_000:
                return found
    raise ValueError("no list of devices")


def _number(node: ast.expr) -> int:
    found = ast.literal_eval(node)
    if not isinstance(found, int):
        raise ValueError("no number")
    return found


def world(run: Run) -> Value:
    """The devices of the trained role; a flat file is started by a launcher."""
    count = run.value("role_devices")
    if not isinstance(count.raw, int):
        return run.value("world_size") if count.raw is None else count
    return trained(run, "role_devices", count.raw, "training devices")


@derives(
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("expert_model_parallel_size", "mtp_num_layers", "recompute_modules", "sequence_parallel", "overlap_p2p_comm"),
)
def forced(run: Run) -> None:
    """Sizes that are not set are 1, except for those in the config of the model."""
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        if run.value(name).known and run.value(name).raw is None:
            run.derive(name, 1, "not given")
    if run.expert_model_parallel_size is None:
        run.derive("expert_model_parallel_size", 1, "not given")
    if run.mtp_num_layers == 0:
        run.derive("mtp_num_layers", None, "0 is none")
    if isinstance(run.recompute_modules, str):
        run.derive("recompute_modules", run.recompute_modules.split(","), of="recompute_modules")
    if run.tensor_model_parallel_size > 1 and run.expert_model_parallel_size > 1 and not run.sequence_parallel:
        run.derive("sequence_parallel", True, "experts with tensor parallelism need it")
    elif run.sequence_parallel and run.tensor_model_parallel_size <= 1:
        run.switch("sequence_parallel", False, "the tensor-parallel size is 1", f"{CONFIG}:326")
    if run.num_virtual_stages_per_pipeline_rank is None:
        run.derive("overlap_p2p_comm", False, "there are no virtual stages")


@derives("recompute_method", "recompute_num_layers")
def recomputation(run: Run) -> None:
    """Full recomputation without a method recomputes each layer."""
    if run.recompute_granularity == "full" and run.recompute_method is None and run.recompute_num_layers is None:
        run.derive("recompute_method", "uniform", "the default of full recomputation")
        run.derive("recompute_num_layers", 1, "the default of full recomputation")


@derives("bf16", "fp16", "params_dtype", "accumulate_allreduce_grads_in_fp32")
def precision(run: Run) -> None:
    """The type of the role's model, or the switch; gradients of bf16 are accumulated in fp32."""
    if run.bf16 is not True and run.role_dtype == "bf16":
        run.derive("bf16", True, of="role_dtype")
    if run.fp16 is not True and run.role_dtype == "fp16":
        run.derive("fp16", True, of="role_dtype")
    run.derive("params_dtype", "bf16" if run.bf16 else "fp16" if run.fp16 else "fp32", of="bf16")
    if run.bf16:
        run.derive("accumulate_allreduce_grads_in_fp32", True, "bf16 gradients are accumulated in fp32", of="bf16")


@derives("global_batch_size", "micro_batch_size", "samples_per_update")
def batches(run: Run) -> None:
    """The batch is accumulated on each rank; a preference pair is two samples (dpo_config.py:79)."""
    ranks = run.world_size // (
        run.tensor_model_parallel_size * run.pipeline_model_parallel_size * run.context_parallel_size
    )
    micro, steps = run.micro_batch_size, run.mca_gradient_accumulation_steps
    if run.role_chosen is not None:
        micro *= 2
        run.derive("micro_batch_size", micro, "two samples a pair", of="micro_batch_size")
    run.derive("samples_per_update", micro * steps, of="mca_gradient_accumulation_steps")
    of = "mca_gradient_accumulation_steps" if "mca_gradient_accumulation_steps" in run.written else "micro_batch_size"
    if ranks:
        run.derive("global_batch_size", micro * steps * ranks, "per device × accumulation × data parallel", of=of)
    else:
        run.lose("global_batch_size", "the layout has more ranks than there are devices")
    if run.role_dynamic_batches:
        run.lose("micro_batch_size", "micro-batches are filled up to a token limit")


@derives("rl_samples_per_rank", "learns_by_rewards")
def rollouts(run: Run) -> None:
    """The samples of a rollout on which each data-parallel rank trains."""
    run.derive("learns_by_rewards", run.role_rewards is not None)
    ranks = run.world_size // (
        run.tensor_model_parallel_size * run.pipeline_model_parallel_size * run.context_parallel_size
    )
    samples = run.rollout_batch_size * run.num_return_sequences
    if ranks and samples % ranks == 0:
        run.derive("rl_samples_per_rank", samples // ranks, of="rollout_batch_size")
    else:
        run.lose("rl_samples_per_rank", "the rollout cannot be divided over the ranks")


@derives("seq_length", "max_position_embeddings", "variable_seq_lengths")
def lengths(run: Run) -> None:
    """Prompt plus response, or the length at which samples are cut."""
    if run.seq_length is None and run.response_length is not None:
        run.derive("seq_length", run.prompt_length + run.response_length, "prompt + response", of="response_length")
    elif run.seq_length is None:
        run.lose("seq_length", "the length of a sample is not given")
    run.lose("max_position_embeddings", "it is in the model's config.json")
    run.derive("variable_seq_lengths", run.mca_variable_seq_lengths, of="mca_variable_seq_lengths")


@derives("train_iters", "lr_warmup_iters", "lr_warmup_fraction", "lr_decay_style")
def schedule(run: Run) -> None:
    """The length of the training follows from the data."""
    for name in ("train_iters", "lr_warmup_iters", "lr_warmup_fraction", "lr_decay_style"):
        run.lose(name, "it depends on the number of steps")


@derives("published_layers", "all_stages")
def layers(run: Run) -> None:
    """The layers of the named model as published, including what counts as a layer; an estimate for warnings."""
    run.derive("all_stages", run.pipeline_model_parallel_size * (run.num_virtual_stages_per_pipeline_rank or 1))
    given = run.written.get("model_path")
    model = published((given.raw,)) if given is not None and isinstance(given.raw, str) else None
    if model is None:
        run.lose("published_layers", "it is in the model's config.json")
        return
    more = bool(run.account_for_embedding_in_pipeline_split) + bool(run.account_for_loss_in_pipeline_split)
    run.derive("published_layers", model.sizes["layers"] + more, f"{model.name} as published", of="model_path")


@derives()
def network(run: Run) -> None:
    """Values that are not set and have no key come from the model."""
    lose_network(run, MCORE_ADAPTER.keys)


@derives("virtual_pipeline_model_parallel_size", "microbatch_group_size_per_vp_stage")
def stages(run: Run) -> None:
    """Virtual stages are passed on unchanged; a group has as many micro-batches as pipeline ranks."""
    name = "num_virtual_stages_per_pipeline_rank"
    run.derive("virtual_pipeline_model_parallel_size", run.num_virtual_stages_per_pipeline_rank, of=name)
    run.derive("microbatch_group_size_per_vp_stage", run.pipeline_model_parallel_size, "the pipeline ranks")


APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds and trains the network with its own code."""
MCORE_ADAPTER = FrontEnd(
    "mcore-adapter",
    "0.3.0",
    core="0.18.0",
    world=world,
    spawns=True,
    before=(forced, recomputation, precision, batches, lengths, schedule, layers, network),
    after=(stages, rollouts),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
    unread="refused",
    apart=APART,
    models=("model_path",),
)
"""As in ROLL v0.3.0; LLaMA-Factory v0.9.5 installs it from there."""
WORKER = "roll/pipeline/base_worker.py"
_WHOLE_ROLLOUT = lazy_pattern(r"\bbackward_batch_size = data\.batch")
RESEMBLING = frozenset({"moe_aux_loss_coef"})
"""Keys of LLaMA-Factory itself that resemble a field."""
FLAT = {"seq_length": "cutoff_len", "model_path": "model_name_or_path"}
"""Names in LLaMA-Factory's flat file."""


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A config, or a launch with the config that it names."""
    opened = opener(document, surroundings)
    config = document if document.launch is None else _named(document, opened)
    found = hydra(config, surroundings) if config is not None and config.launch is None else None
    tree = found.tree if found is not None else config.tree if config is not None else None
    overrides = tuple(_overrides(document)) if config is not document else ()
    tree, _ = apply(tree if tree is not None else mapping((), document.source.span(0)), overrides)
    own = found.documents if found is not None else (config,) if config is not None else ()
    documents = (document, *own) if config is not document else own or (document,)
    section = role(tree)
    composed = Composed(tree)
    known = at_stated(MCORE_ADAPTER, surroundings.request.target)
    front_end = known._replace(options=tuple(_flags(known, section)))
    made = typed(front_end, Dotted(composed, documents, overrides), surroundings)
    missing = config is None or (found is not None and bool(found.missing))
    made.parsed.open = missing or _is_open(document) or _trains_otherwise(document, section)
    _counted(made, composed, section)
    made.parsed.written["role_name"] = derived(section, "the training role")
    made.parsed.faults += _slips(known, tree, section)
    front_end = front_end._replace(lacks=front_end.lacks | _changed(document, surroundings))
    return reading(front_end, document, surroundings, made)


def _changed(document: Document, surroundings: Surroundings) -> frozenset[str]:
    """The checks that a checkout of ROLL lacks: a worker that updates with the whole rollout does not divide it."""
    path, around = document.source.path, surroundings.around
    if path is None or around is None or around.isolated or surroundings.request.target is not None:
        return frozenset()
    whole = _WHOLE_ROLLOUT.search(Files(checkout_root(path)).text(WORKER) or "") is not None
    return frozenset(["mcore-adapter/samples-over-updates"]) if whole else frozenset()


def _trains_otherwise(document: Document, section: str) -> bool:
    """Whether a ROLL launch has a config in which Megatron trains no role."""
    return document.launch is not None and document.launch.entry.text != "train" and not section


def _is_open(document: Document) -> bool:
    return document.launch is not None and document.launch.open


def _named(document: Document, opened: object) -> Document | None:
    """The config of a launch: a file after `train`, or the one that --config_name names, in its folder."""
    launch = document.launch
    assert launch is not None and callable(opened)
    if launch.entry.text == "train":
        path = next((word.text or "" for word in launch.words), "")
        return above(document, path, opened) if path.endswith((".yaml", ".yml")) else None
    name, folder = after(document, "--config_name"), after(document, "--config_path")
    if not name:
        return None
    start = os.path.dirname(launch.entry.text or "")
    places = [os.path.join(start, folder, f"{name}.yaml")] if folder else []
    return next((one for place in (*places, f"{name}.yaml") if (one := above(document, place, opened))), None)


def _overrides(document: Document) -> Iterator[Override]:
    """key=value of a launch of LLaMA-Factory."""
    words = document.launch.words if document.launch is not None else ()
    if document.launch is not None and document.launch.entry.text == "train":
        yield from (one for word in words[1:] if (one := read_override(word)) is not None)


def _flags(front_end: FrontEnd, section: str) -> Iterator[Flag]:
    """The keys as the config has them: below a role, or flat."""
    rows, strategy, training = front_end.keys.options, part_of(front_end, "strategy"), part_of(front_end, "training")
    if not section:
        yield from rows.values()
        flat = {flag.dest: flag for flag in rows.values()}
        yield from (flat[dest]._replace(option=name) for dest, name in FLAT.items())
        return
    for name, flag in rows.items():
        places = [f"{section}.{TRAINING}.{name}"] if name in training else []
        places += [f"{section}.{STRATEGY}.{name}"] if name in strategy else []
        for place in places or [name.replace("role.", f"{section}.")]:
            yield flag._replace(option=place)
    for name in training:  # the strategy's arguments include those of transformers
        if name not in strategy:
            yield rows[name]._replace(option=f"{section}.{STRATEGY}.{name}")


def _counted(made: Typed, config: Composed, section: str) -> None:
    """Mappings as their number of devices; entries of the config's model other than its fields."""
    for name, value in tuple(made.parsed.written.items()):
        if name.endswith("_devices"):
            count = devices(value.raw) if value.known else None
            if count is None:
                made.parsed.written[name] = unknown("the mapping is not read")
            else:
                made.parsed.written[name] = value._replace(raw=count, edits=None)
    more = (f"{section}.{STRATEGY}." if section else "") + "additional_configs"
    node = config.at(*more.split(".")).node
    core = {flag.dest for flag in MCORE_ADAPTER.keys.core.options.values()}
    for entry in node.entries if node is not None else ():
        name = {"num_moe_experts": "num_experts"}.get(str(entry.key.value), str(entry.key.value))
        if name in core and name not in made.parsed.written and entry.value.kind == "scalar":
            setting = Setting(
                (*more.split("."), str(entry.key.value)), entry.value.value, entry.value.span, entry.key.span
            )
            made.parsed.written[name] = Value(entry.value.value, Origin.WRITTEN, setting)


def _slips(front_end: FrontEnd, tree: Node, section: str) -> Iterator[Problem]:
    """Unknown keys that are misspellings of an argument."""
    strategy, training = part_of(front_end, "strategy"), part_of(front_end, "training")
    below = tuple(f"{section}.{STRATEGY}".split(".")) if section else ()
    folder = tree.get(*below) if below else tree
    known = {*strategy, *training, *(() if front_end.stated else front_end.known), *(() if section else RESEMBLING)}
    for entry in folder.entries if folder is not None else ():
        name = str(entry.key.value)
        near = nearest(name, sorted(strategy), SLIP) if name not in known else None
        if near:
            message = Message(
                "{front_end} has no key {key} and rejects the run; did you mean {near}?",
                front_end=f"{front_end.name} {front_end.release}",
                key=name,
                near=near,
            )
            fix = (f"write {near}", entry.key.span, near)
            yield Problem(UNREAD, message, entry.key.span, (), fix, (*below, name), unknown_option=True)
