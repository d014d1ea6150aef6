"""ms-swift: its options, in a command or a flat YAML file; the model determines the network."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline, silent_changes
from preflight.dialects.megatron.checkpoint_overrides import FILLED, FORCED
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.pipeline import parse_layout
from preflight.dialects.megatron.unmodelled_memory import ADAPTED
from preflight.frontends import colocated_models
from preflight.frontends.flat_options import behind_file, typed_in_file
from preflight.frontends.front_end import FrontEnd
from preflight.frontends.megatron_run import Typed
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.option_refusals import of_options_code
from preflight.frontends.options_by_release import of_part
from preflight.frontends.published_architecture import build
from preflight.frontends.release_detection import of_options
from preflight.loaders.document import Document, Entry, Setting
from preflight.run.published_models import published
from preflight.run.training_plan import Inference, Plan
from preflight.run.value import Origin, Value, assumed, derived, unknown
from preflight.source.record import replace
from preflight.source.spelling import nearest

ARGUMENTS = "swift/megatron/arguments/megatron_args.py"
NETWORK = (FORCED | FILLED | {"vocab_size", "qk_layernorm", "multi_latent_attention", "window_size"}) - {
    *("seq_length", "moe_grouped_gemm", "moe_token_dispatcher_type", "mtp_num_layers", "ckpt_format")
}
"""The values in the model's config.json."""
ALL = ("all-linear", "all-embedding", "all-router")
"""Words that represent many target modules (swift/megatron/utils/utils.py:96-124)."""
OLDER = {"__train_type": "tuner_type", "__load": "mcore_model"}
DERIVED = frozenset({"published_layers", "bare_prediction_stage", "misspelt_target"})
"""Names in its checks that no key sets."""
TYPES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "float32": "fp16"}


@derives(*NETWORK)
def network(run: Run) -> None:
    """The network is that of the named model; none of it is in the options."""
    for name in () if build(run) else NETWORK:
        run.settled.add(name)
        run.lose(name, "it is in the model's config.json")
    given = run.written.get("model")
    if given is not None and isinstance(given.raw, str):
        run.derive("tokenizer_model", given.raw, "the model", of="model")


@derives("published_layers")
def layers(run: Run) -> None:
    """The layers of the named model as published; an estimate for warnings."""
    given = run.written.get("model") or run.written.get("load")
    model = published((given.raw,)) if given is not None and isinstance(given.raw, str) else None
    if model is None:
        raise NotKnown("it is in the model's config.json")
    run.derive("published_layers", model.sizes["layers"], f"{model.name} as published", of="model")


@derives("bare_prediction_stage")
def prediction(run: Run) -> None:
    """The first stage, counted from 1, with only multi-token-prediction layers; 0 if there is none."""
    stages = parse_layout(run.pipeline_model_parallel_layout or "").stages
    bare = [at for at, stage in enumerate(stages, 1) if "m" in stage and "t" not in stage]
    run.derive("bare_prediction_stage", bare[0] if bare else 0, of="pipeline_model_parallel_layout")


@derives("bf16", "fp16")
def precision(run: Run) -> None:
    """As set, otherwise the model's own type."""
    if run.bf16 is None or run.fp16 is None:
        if run.torch_dtype is None:
            raise NotKnown("the type is in the model's config.json")
        wanted = TYPES.get(str(run.torch_dtype).removeprefix("torch."))
        for name in ("bf16", "fp16"):
            if run.value(name).raw is None:
                run.derive(name, wanted == name, of="torch_dtype")


@derives("seq_length")
def sequence(run: Run) -> None:
    """Packing has a separate length."""
    if run.packing_length is not None:
        run.derive("seq_length", run.packing_length, "the length of packing", of="packing_length")
    elif run.seq_length is None:
        raise NotKnown("the longest sequence is in the model's config.json")


@derives("variable_seq_lengths", "padding_free")
def padding(run: Run) -> None:
    """Packed samples are not padded; unpadded samples keep their length."""
    if run.packing:
        run.derive("padding_free", True, "packing pads nothing", of="packing")
    run.derive("variable_seq_lengths", bool(run.padding_free) and not run.packing, of="padding_free")


@derives("recompute_granularity")
def recomputation(run: Run) -> None:
    """`none` means no recomputation."""
    if run.recompute_granularity == "none":
        run.derive("recompute_granularity", None, "none", of="recompute_granularity")


@derives("sequence_parallel", "use_distributed_optimizer", "overlap_p2p_comm", "num_virtual_stages_per_pipeline_rank")
def switched(run: Run) -> None:
    """Settings that ms-swift always changes."""
    if run.tensor_model_parallel_size <= 1:
        run.switch("sequence_parallel", False, "the tensor-parallel size is 1", f"{ARGUMENTS}:892")
    if "muon" in run.optimizer:
        run.switch("use_distributed_optimizer", False, "Muon does not have one", f"{ARGUMENTS}:980")
    elif run.use_megatron_fsdp:
        run.switch("use_distributed_optimizer", True, "Megatron-FSDP needs it", f"{ARGUMENTS}:911")
    if run.num_virtual_stages_per_pipeline_rank == 1:
        run.derive("num_virtual_stages_per_pipeline_rank", None, "1 is none")
    if run.num_virtual_stages_per_pipeline_rank is None and run.pipeline_model_parallel_layout is None:
        run.derive("overlap_p2p_comm", False, "there are no virtual stages")


@derives("lr")
def rates(run: Run) -> None:
    """The learning rates of full training and of adapters; it decays over all steps."""
    if run.lr is None:
        run.derive("lr", 1e-5 if run.tuner_type == "full" else 1e-4, "ms-swift's default", of="tuner_type")


@derives("save")
def output(run: Run) -> None:
    """Checkpoints are always written."""
    if run.save is None:
        run.derive("save", "megatron_output", "ms-swift's default")


@derives("accumulate_allreduce_grads_in_fp32")
def gradients(run: Run) -> None:
    """bf16 weights with fp32 gradients are reduced in fp32."""
    if run.bf16 and run.main_grads_dtype == "fp32":
        run.derive("accumulate_allreduce_grads_in_fp32", True, "bf16 gradients add up in fp32", of="bf16")


@derives("lora_r", "lora_target_modules")
def adapters(run: Run) -> None:
    """All linears have an adapter unless some are named; a loaded adapter's own file names its linears."""
    if run.adapters or run.mcore_adapter:
        raise NotKnown("it is in the adapters' config")
    if run.tuner_type == "full":
        return
    named = [str(name) for name in run.target_modules]
    if run.target_regex or run.modules_to_save or run.tuner_type == "lora_llm":
        named.append("others")
    wanted = [*ADAPTED[:4], *(name for name in named if name != "all-linear")] if "all-linear" in named else named
    run.derive("lora_target_modules", wanted, of="target_modules")
    run.derive("lora_r", run.lora_rank, of="lora_rank")


@derives("misspelt_target")
def targets(run: Run) -> None:
    """A misspelt word for all target modules; "" if there is none."""
    named = [str(name) for name in run.target_modules or ()]
    slips = [name for name in named if name not in ALL and (nearest(name, ALL, 0.8) or _bare(name) in map(_bare, ALL))]
    run.derive("misspelt_target", slips[0] if slips else "", of="target_modules")


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


@derives("rlhf_type", "generation_batch_size", "steps_per_generation")
def generation(run: Run) -> None:
    """The steps of generation and their batch size determine each other."""
    kind = run.rlhf_type or ("dpo" if run.entry == "rlhf" else None)
    run.derive("rlhf_type", kind, of="rlhf_type")
    if kind not in ("grpo", "gkd"):
        return
    steps, size, batch_size = run.steps_per_generation, run.generation_batch_size, run.global_batch_size
    if size is None:
        run.derive(
            "generation_batch_size", batch_size * (steps or 1), "global batch × steps", of="steps_per_generation"
        )
    elif steps is None:
        run.derive("steps_per_generation", size // batch_size, "generation batch / global batch")
    if kind == "gkd":
        run.derive("num_generations", 1, "distillation creates one")


MS_SWIFT = FrontEnd(
    "ms-swift",
    "4.5.2",
    core="0.18.0",
    before=(
        *(network, layers, prediction, precision, sequence, padding),
        *(recomputation, switched, rates, output, gradients, adapters),
    ),
    steps=(
        *(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
        *(silent_changes.params_dtype, silent_changes.single_values, silent_changes.recompute_modules),
    ),
    after=(generation, targets),
    unread="refused",
    apart=(
        "megatron/training/",
        "megatron/core/datasets",
        "megatron/rl",
        "megatron/legacy",
        "pretrain_",
        "gpt_builders",
    ),
    elsewhere=("--config", "--colocate_groups"),
    shortened=True,
    models=("model", "mcore_model"),
    planned=colocated_models.ms_swift,
)

TRAINS = ("pt", "sft", "rlhf")
"""Its commands that train."""
TRAINED = ("micro_batch_size", "global_batch_size", "train_iters", "lr", "lr_decay_iters", "lr_warmup_fraction")


def exporting(front_end: FrontEnd) -> FrontEnd:
    """The front end of a conversion: its own options and defaults besides those of training (ms-swift v4.5.2,
    swift/megatron/arguments/export_args.py)."""
    own = front_end.keys.with_own(of_part(front_end, "export"))
    return front_end._replace(before=(*front_end.before, untrained), after=(), planned=_converts, own=own)


@derives()
def untrained(run: Run) -> None:
    """There are no steps and no batches."""
    for name in TRAINED:
        run.lose(name, "an export does not train")


def _converts(plan: Plan, run: Run) -> Plan:
    """Only weights, without an optimizer."""
    return replace(plan, inference=Inference(enabled=derived(True, "an export does not train")))


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A `megatron` launch, with options from a file if that comes first, or such a file alone."""
    known = of_options(MS_SWIFT, document, surroundings)
    if document.launch is not None:
        front_end = exporting(known) if document.launch.entry.text == "export" else known
        found = _older(behind_file(front_end, document, surroundings))
        if document.launch.entry.text in TRAINS:
            found.parsed.faults += of_options_code(known, found.parsed, document)
        return reading(front_end, document, surroundings, found)
    roles = [entry for entry in document.tree.entries if entry.value.get("gpus") is not None] if document.tree else []
    front_end = known._replace(unread="skipped", world=partial(_of_role, roles)) if roles else known
    return reading(front_end, document, surroundings, typed_in_file(front_end, document, surroundings))


def _older(typed: Typed) -> Typed:
    """Values that a 3.x launch sets by names that this release lacks, only for the estimates."""
    texts = [word.text for word in typed.spelled.words]
    for option, text in pairwise(texts):
        name = OLDER.get((option or "").replace("-", "_"))
        if name is not None and text is not None and name not in typed.parsed.written:
            typed.parsed.written[name] = assumed(text, f"{option} of other releases")
    return typed


def _of_role(roles: list[Entry], run: Run) -> Value:
    """The devices of the role `train` in a file for Ray."""
    node = next((entry.value.get("gpus") for entry in roles if entry.key.value == "train"), None)
    if node is None or not isinstance(node.value, int):
        return unknown("the file assigns no devices to training")
    return Value(node.value, Origin.WRITTEN, Setting(("train", "gpus"), node.value, node.span, node.span))
