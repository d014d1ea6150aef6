"""Megatron-Bridge: a YAML file or dotted overrides over a recipe, or the literal part of the recipe itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, Step, derives
from preflight.dialects.megatron.parsing import Parsed
from preflight.frontends.dotted_config import Dotted, DottedWriter, typed
from preflight.frontends.front_end import FrontEnd, unread
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.megatron_run import started_code, without_named
from preflight.frontends.option_refusals import of_written
from preflight.frontends.options_by_release import part_of
from preflight.frontends.published_architecture import OFF as TRAINERS
from preflight.frontends.release_detection import at_shown
from preflight.frontends.typed_fields import not_numbers
from preflight.loaders.composition.overrides import Override, apply, read_override
from preflight.loaders.composition.resolved_values import Composed, omegaconf_values
from preflight.loaders.document import MAX_DIGITS, Document, Node, Problem, Word
from preflight.run.arguments import REMOVE
from preflight.run.published_models import published
from preflight.source.finding import Edit, Key

RECIPES = "run_recipe.py"
"""Bridge's own runner."""
FILES = ("--config-file", "--config_file")
_KEYS = {
    ("--max_steps", "-ms"): "train.train_iters",
    ("--global_batch_size", "-gb"): "train.global_batch_size",
    ("--micro_batch_size", "-mb"): "train.micro_batch_size",
    ("--seq_length", "-sl"): "dataset.seq_length",
    ("--tensor_model_parallel_size", "-tp"): "model.tensor_model_parallel_size",
    ("--pipeline_model_parallel_size", "-pp"): "model.pipeline_model_parallel_size",
    ("--context_parallel_size", "-cp"): "model.context_parallel_size",
    ("--virtual_pipeline_model_parallel_size", "-vp"): "model.virtual_pipeline_model_parallel_size",
    ("--expert_model_parallel_size", "-ep"): "model.expert_model_parallel_size",
    ("--expert_tensor_parallel_size", "-etp"): "model.expert_tensor_parallel_size",
    ("--lr",): "optimizer.lr",
    ("--min_lr",): "optimizer.min_lr",
    ("--warmup_iters",): "scheduler.lr_warmup_iters",
    ("--save_interval",): "checkpoint.save_interval",
}
OPTIONS = {option: key for options, key in _KEYS.items() for option in options}
"""Options of the runner that correspond to a key (scripts/training/run_recipe.py:116-134 of 0.6.0)."""


def launched(document: Document, surroundings: Surroundings) -> Dotted:
    """The overrides of a launch over its file; the underlying recipe is not read."""
    assert document.launch is not None
    words = document.launch.words
    file = _file(document, words, surroundings)
    own = (document.launch.entry.text or "").rpartition("/")[2] == RECIPES
    behind = [one for word in words if (one := read_override(word)) is not None and "." in one.key]
    overrides = (*(_options(words) if own else ()), *behind)
    tree = omegaconf_values(file.tree) if file is not None and file.tree is not None else _empty(document)
    tree, _ = apply(tree, overrides, complete=False)
    documents = (document,) if file is None else (document, file)
    return Dotted(Composed(tree), documents, overrides)


def _empty(document: Document) -> Node:
    return Node("mapping", (), document.start)


def _file(document: Document, words: Sequence[Word], surroundings: Surroundings) -> Document | None:
    """The override file that a launch names, if it can be read."""
    texts = [word.text or "" for word in words]
    for at, text in enumerate(texts):
        option, equal, value = text.partition("=")
        if option in FILES:
            path = value if equal else "".join(texts[at + 1 : at + 2])
            found = surroundings.read(document, path) if path else None
            mapping = found is not None and found.tree is not None and found.tree.kind == "mapping"
            return found if mapping else None
    return None


def _options(words: Sequence[Word]) -> Iterator[Override]:
    """The options that correspond to keys, as overrides; a later key=value takes precedence."""
    for word, value in pairwise(words):
        key = OPTIONS.get(word.text or "")
        if key is not None:
            yield Override("set", key, word, word.span, Node("scalar", _number(value), value.span), value)


def _number(word: Word) -> object:
    """A value of one of these options; they are all numbers."""
    text = word.text
    if text is None or len(text) > MAX_DIGITS:
        return word.value
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class RecipeWriter(DottedWriter):
    """Creates the edits of a recipe."""

    def at(self, path: Key, value: object) -> tuple[Edit, ...]:
        """The edit at a literal; none if the assigned value is computed, or in another function."""
        document = self.dotted.documents[0]
        node = document.tree.get(*path) if document.tree is not None else None
        plain = isinstance(value, bool | int | float | str) or value is None
        if value is REMOVE or not plain or node is None or node.kind != "scalar" or node.style:
            return ()
        return (Edit("set", path, value, node.span, document.run),)

    def _added(self, key: str, value: object) -> tuple[Edit, ...]:
        return ()


TARGET = "_target_"


def unread_keys(front_end: FrontEnd, dotted: Dotted) -> Iterator[Problem]:
    """Unknown keys: those in a file are skipped with a warning, a launch with one is refused, in a recipe they have no
    effect."""
    sections: Mapping[str, Sequence[str]] = part_of(front_end, "sections")
    for document in dotted.documents:
        if document.tree is not None:
            yield from _in_tree(front_end._replace(unread="skipped"), document, sections)
    for override in dotted.overrides:
        path = override.path
        if override.action == "set" and len(path) == 2 and _strange(sections, *path):
            yield unread(front_end._replace(unread="refused"), override.key, override.key_span)


def _in_tree(front_end: FrontEnd, document: Document, sections: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    assert document.tree is not None
    program = document.kind == "python"
    for section in document.tree.entries:
        of = section.value
        if of.kind != "mapping" or section.shadowed or of.get(TARGET) is not None:
            continue
        for entry in of.entries:
            path = (str(section.key.value), str(entry.key.value))
            if not entry.shadowed and _strange(sections, *path):
                found = unread(
                    front_end._replace(unread="dropped") if program else front_end, ".".join(path), entry.key.span
                )
                yield found._replace(fix=None) if program else found._replace(keys=path)


def _strange(sections: Mapping[str, Sequence[str]], section: str, name: str) -> bool:
    known = sections.get(section)
    return known is not None and name not in known


TRANSFORMER = "src/megatron/bridge/models/transformer_config.py"
RUNNER = "scripts/training/recipe_runner.py"
RECIPE = "it may be set in the recipe, which is not read"
APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds and trains the network with its own code."""
OFF = (TRAINERS - {"eval_global_batch_size", "eval_micro_batch_size"}) | {
    *("tensor_parallel_num_weight_shards", "expert_tensor_parallel_num_weight_shards"),
    *("encoder_seq_length", "encoder_num_layers", "encoder_tensor_model_parallel_size"),
    "encoder_pipeline_model_parallel_size",
}
"""Settings that no recipe changes invisibly."""
UNEVEN = frozenset(
    [
        *("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "pipeline_model_parallel_layout"),
        *("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"),
    ]
)
"""Settings that the config.json of a published model does not contain."""
DERIVED = frozenset({"model_layers"})
"""Names in its checks that no key sets."""
PRECISION = frozenset(
    [
        *("bf16", "fp16", "params_dtype", "accumulate_allreduce_grads_in_fp32", "fp8", "fp8_recipe", "fp8_margin"),
        *("fp8_amax_history_len", "fp8_amax_compute_algo", "fp8_param_gather", "fp4", "fp4_recipe", "fp4_param_gather"),
        *("first_last_layers_bf16", "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"),
    ]
)
"""Settings of mixed_precision, which override other values (training/mixed_precision.py:138-156)."""
OVERLAP = frozenset(
    [
        *("overlap_grad_reduce", "overlap_param_gather", "align_param_gather", "tp_comm_overlap", "overlap_p2p_comm"),
        *("delay_wgrad_compute", "overlap_moe_expert_parallel_comm", "defer_embedding_wgrad_compute"),
        *("wgrad_deferral_limit", "batch_p2p_comm", "overlap_param_gather_with_optimizer_step"),
    ]
)
"""Settings of comm_overlap, which override other values (training/comm_overlap.py:376-600)."""


@derives(*PRECISION, *OVERLAP)
def set_by_others(run: Run) -> None:
    """Two sections override values of others; a precision is a name, or an object that is not read."""
    for section, names in (("mixed_precision", PRECISION), ("comm_overlap", OVERLAP)):
        given = run.value(section)
        for name in names if not given.written or given.raw is not None else ():
            run.lose(name, f"{section} may set it")
    precision = run.value("mixed_precision")
    if precision.written and isinstance(precision.raw, str) and precision.raw.startswith(("bf16", "fp16")):
        for half in ("bf16", "fp16"):
            run.derive(half, precision.raw.startswith(half), of="mixed_precision")


@derives("sequence_parallel")
def sequence_parallel(run: Run) -> None:
    """On a single rank there is nothing to split."""
    if run.tensor_model_parallel_size == 1 and run.value("sequence_parallel").written:
        run.switch("sequence_parallel", False, "the tensor-parallel size is 1", f"{TRANSFORMER}:177")


@derives("seq_length")
def length(run: Run) -> None:
    """Bridge's own runner uses the dataset's length for the model."""
    if run.entry != RECIPES or not run.value("dataset_seq_length").written:
        return
    if run.value("seq_length").written:
        run.switch("seq_length", run.dataset_seq_length, "the dataset has this length", f"{RUNNER}:457")
    run.derive("seq_length", run.dataset_seq_length, "length of the dataset", of="dataset_seq_length")


@derives("use_distributed_optimizer")
def distributed_optimizer(run: Run) -> None:
    """It is on if the optimizer or the gradients request it."""
    other = run.value("ddp_use_distributed_optimizer").raw
    if other is True:
        run.derive("use_distributed_optimizer", True, of="ddp_use_distributed_optimizer")
    elif other is not False and run.value("use_distributed_optimizer").raw is False:
        run.lose("use_distributed_optimizer", RECIPE)


@derives()
def beneath(run: Run) -> None:
    """The underlying recipe may set any missing value; settings that no recipe changes invisibly are off."""
    for name in run.table.defaults:
        if name not in run.written:
            run.lose(name, RECIPE)
    for name in OFF - run.written.keys():
        run.effective[name] = run.default(name)
    run.derive("entry", run.entry.rpartition("/")[2])


@derives()
def made_here(run: Run) -> None:
    """If a recipe creates the model from a published one, nothing below it sets any of these values."""
    for name in UNEVEN - run.written.keys() if run.value("hf_model_id").written else ():
        if not run.effective[name].written:
            run.effective[name] = run.default(name)


def nulls(parsed: Parsed) -> tuple[Step, tuple[str, ...]]:
    """An explicit null is known, and counts as not set."""
    taken = {name: value for name, value in parsed.written.items() if value.raw is None}
    for name in taken:
        del parsed.written[name]

    def step(run: Run) -> None:
        run.effective.update(taken)

    return step, ()


@derives("expert_tensor_parallel_size")
def expert_tensor(run: Run) -> None:
    """Without a separate size it is 1 if experts are distributed, not the size of the other layers."""
    if run.expert_tensor_parallel_size is None and run.expert_model_parallel_size > 1:
        run.derive("expert_tensor_parallel_size", 1, "experts are spread", of="expert_tensor_parallel_size")


@derives("cp_comm_type", "recompute_modules", "offload_modules")
def lists(run: Run) -> None:
    """One name applies to every layer; a string instead of a module list is searched for their names."""
    for name in ("recompute_modules", "offload_modules"):
        if isinstance(run.value(name).raw, str):
            run.lose(name, "it is a string and not a list")
    if isinstance(run.value("cp_comm_type").raw, str):
        run.derive("cp_comm_type", [run.cp_comm_type], of="cp_comm_type")


@derives("cpu_offloading_num_layers")
def offloading(run: Run) -> None:
    """A number of layers counts only if offloading is on."""
    if not run.cpu_offloading:
        run.derive("cpu_offloading_num_layers", 0, "cpu_offloading is off")


@derives("group_query_attention")
def groups(run: Run) -> None:
    """Groups exist if their number is set."""
    run.derive("group_query_attention", run.num_query_groups is not None, of="num_query_groups")


@derives("model_layers")
def layers(run: Run) -> None:
    """The layers of the model: as written, otherwise as published for the named model; for warnings."""
    if run.value("num_layers").written:
        run.derive("model_layers", run.num_layers, of="num_layers")
        return
    model = published((run.hf_model_id,)) if isinstance(run.hf_model_id, str) else None
    if model is None:
        raise NotKnown("it is in the model's config.json")
    run.derive("model_layers", model.sizes["layers"], f"{model.name} as published", of="hf_model_id")


@derives("dataset_target")
def dataset(run: Run) -> None:
    """The class of the dataset by its name; None if it is not set."""
    made = run.value("dataset_target").raw
    run.derive("dataset_target", made.rpartition(".")[2] if isinstance(made, str) else None)


@derives("virtual_pipeline_model_parallel_size", "microbatch_group_size_per_vp_stage")
def stages(run: Run) -> None:
    """Virtual stages are passed on unchanged."""
    key = "num_virtual_stages_per_pipeline_rank"
    run.derive("virtual_pipeline_model_parallel_size", run.num_virtual_stages_per_pipeline_rank, of=key)


SIZES = (
    *("train.train_iters", "train.global_batch_size", "train.micro_batch_size", "model.seq_length"),
    *(f"model.{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert")),
    *("model.context_parallel_size", "model.num_layers", "model.hidden_size", "model.num_attention_heads"),
    *("optimizer.lr", "optimizer.min_lr", "scheduler.lr_warmup_iters"),
)
"""Numbers with which every run calculates."""
FIELDS = (lists, offloading, groups, layers, dataset)
BRIDGE = FrontEnd(
    "megatron-bridge",
    "0.6.0",
    core="0.19.0",
    before=(beneath, sequence_parallel, length, distributed_optimizer, set_by_others, expert_tensor, *FIELDS),
    after=(stages,),
    steps=(
        *layout.STEPS,
        *pipeline.STEPS,
        *network_sizes.STEPS,
        *(s for s in batch.STEPS if s is not batch.train_iters),
    ),
    unread="skipped",
    apart=APART,
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A recipe, a file of overrides, or a launch with overrides."""
    if document.launch is not None:
        found = launched(document, surroundings)
    else:
        assert document.tree is not None
        tree = document.tree if document.kind == "python" else omegaconf_values(document.tree)
        found = Dotted(Composed(tree), (document,))
    known = at_shown(BRIDGE, document, surroundings) or BRIDGE
    writer = RecipeWriter(known, found) if document.kind == "python" else None
    made = typed(known, found, surroundings, writer)
    made.parsed.faults += without_named(unread_keys(known, found), started_code(document, surroundings))
    made.parsed.faults += not_numbers(found.config, SIZES)
    if document.kind != "python":
        made.parsed.faults += of_written(known, found.config.root, document, made.parsed.faults)
    made.parsed.open = True  # the underlying recipe may set all other values
    first, *rest = known.before
    model = (made_here,) if document.kind == "python" else ()
    front_end = known._replace(before=(first, nulls(made.parsed), *model, *rest))
    return reading(front_end, document, surroundings, made)
