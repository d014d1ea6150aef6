"""slime: Megatron's options and its own on one command line, which Ray starts."""

from __future__ import annotations

from itertools import pairwise

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.parse_faults import BAD_CHOICE, UNKNOWN_FLAG
from preflight.dialects.megatron.parsing import Parsed
from preflight.frontends import colocated_models
from preflight.frontends.flat_options import typed
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.frontends.front_end_detection import SLIME_ENTRIES, entry
from preflight.frontends.megatron_run import package_of, with_own_options
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.option_refusals import of_options_code
from preflight.frontends.published_architecture import complete
from preflight.frontends.release_detection import of_options
from preflight.loaders.document import Document, Problem
from preflight.program.checkout.front_end_discovery import FrontEndPackage
from preflight.run.value import Value, unknown
from preflight.source.lazy_regex import lazy_pattern

ARGUMENTS = "slime/backends/megatron_utils/arguments.py"
REWARDS = "rollout/rm_hub/__init__.py"
"""The file of slime's package that chooses the function of a reward."""
APART = (
    *("megatron/training/training.py", "megatron/training/initialize.py", "megatron/training/datasets"),
    *("megatron/core/datasets", "megatron/rl", "pretrain_", "gpt_builders", "model_provider"),
)
"""slime builds the network, loads the data and trains with its own code."""


def world(run: Run) -> Value:
    """The actor's nodes times its devices per node."""
    try:
        count = run.actor_num_nodes * run.actor_num_gpus_per_node
    except NotKnown as error:
        return unknown(error.because)
    return run.value("actor_num_gpus_per_node").derived(count, "actor nodes × devices per node")._replace(edits=None)


@derives("global_batch_size")
def batch(run: Run) -> None:
    """Steps per rollout determine the batch: rollout batch x samples per prompt // steps."""
    if run.global_batch_size is None and run.num_steps_per_rollout is not None:
        samples = run.rollout_batch_size * run.n_samples_per_prompt
        note = f"{samples} samples / {run.num_steps_per_rollout} steps per rollout"
        run.derive("global_batch_size", samples // run.num_steps_per_rollout, note, of="num_steps_per_rollout")


@derives("use_distributed_optimizer", "bf16", "seq_length", "max_position_embeddings")
def forced(run: Run) -> None:
    """Values that it always sets before Megatron validates."""
    run.switch("use_distributed_optimizer", True, "slime always uses it", f"{ARGUMENTS}:149")
    run.switch("bf16", not run.fp16, "slime trains in bf16 unless --fp16 is given", f"{ARGUMENTS}:151")
    if run.seq_length is None:
        run.derive("seq_length", 4096, "slime's placeholder")
    run.derive("max_position_embeddings", run.seq_length, "the sequence length")


@derives("tokenizer_model", "tokenizer_type")
def tokenizer(run: Run) -> None:
    """The Hugging Face checkpoint contains the tokenizer."""
    if not run.tokenizer_model and run.hf_checkpoint:
        if not run.tokenizer_type:
            run.derive("tokenizer_type", "HuggingFaceTokenizer", "slime's default")
        run.derive("tokenizer_model", run.hf_checkpoint, "the Hugging Face checkpoint", of="hf_checkpoint")


@derives()
def network(run: Run) -> None:
    """All values are explicit; an unknown one comes from the checkpoint."""
    complete(run)


@derives("train_iters")
def length(run: Run) -> None:
    """Steps follow from the rollouts; their number per epoch follows from the data."""
    if run.num_rollout is None:
        raise NotKnown("the number of rollouts is in the data")
    samples = run.num_rollout * run.rollout_batch_size * run.n_samples_per_prompt
    run.derive("train_iters", samples // run.global_batch_size, "rollouts × samples / batch", of="num_rollout")


@derives("variable_seq_lengths", "moe_token_dispatcher_type")
def after(run: Run) -> None:
    """Values that it sets after Megatron has validated."""
    run.derive("variable_seq_lengths", True, "slime packs samples of any length")
    if run.moe_token_dispatcher_type == "allgather":
        cause = "allgather does not support sequences of variable length"
        run.switch("moe_token_dispatcher_type", "alltoall", cause, f"{ARGUMENTS}:83")


SLIME = FrontEnd(
    "slime",
    "0.3.1",
    core="0.16.0",
    world=world,
    spawns=True,
    before=(network, batch, forced, tokenizer, length),
    models=("hf_checkpoint",),
    after=(after,),
    unread="dropped",
    apart=APART,
    planned=colocated_models.slime,
    elsewhere=("--sglang-", "--vllm-", "--router-"),
    since={"slime/batch-above-rollout": "0.3.0", "slime/samples-left-over": "0.3.0"},
)


def _by_fsdp(document: Document) -> bool:
    """Whether FSDP trains, also at a release that no longer has this backend."""
    texts = [word.text or "" for word in document.launch.words] if document.launch is not None else []
    return ("--train-backend", "fsdp") in pairwise(texts) or "--train-backend=fsdp" in texts


def _of_fsdp(fault: Problem) -> bool:
    """Whether a fault is about the options of this backend, which has a separate parser
    (slime/backends/fsdp_utils/arguments.py:64 in 0.2.1), or about a release that may be one of these."""
    return fault.kind in (UNKNOWN_FLAG, UNREAD) or (fault.kind == BAD_CHOICE and fault.in_use)


_BACKEND = lazy_pattern(r"\bSLIME_BACKEND\W{1,8}(\w+)")


def _another_trains(document: Document) -> bool:
    """Whether the script sets the variable with which older releases choose another parser and trainer."""
    named = _BACKEND.findall(document.source.text)
    return bool(named) and named[-1].lower() != "megatron"


def _with_rewards(front_end: FrontEnd, parsed: Parsed, package: FrontEndPackage | None) -> FrontEnd:
    """The front end without the check of rewards, if the code in the checkout names the run's own reward."""
    reward = parsed.written.get("rm_type")
    if package is None or reward is None or not isinstance(reward.raw, str) or not package.says(REWARDS, reward.raw):
        return front_end
    return front_end._replace(lacks=front_end.lacks | {"slime/unknown-reward"})


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of train.py or train_async.py; with --debug-rollout-only, or if another backend trains, none of
    Megatron's checks run."""
    front_end = of_options(SLIME, document, surroundings)
    front_end = with_own_options(front_end, document, surroundings)
    found = typed(front_end, document, surroundings)
    if entry(document) not in SLIME_ENTRIES:  # a script that calls its parser may add options
        found.parsed.faults = [one for one in found.parsed.faults if one.kind != UNREAD or one.fix is not None]
    package = package_of(front_end, document, surroundings)
    says = package.says if package is not None else None
    front_end = _with_rewards(front_end, found.parsed, package)
    only = found.parsed.written.get("debug_rollout_only")
    if _by_fsdp(document):
        front_end = front_end._replace(apart=("megatron/",))
        found.parsed.faults = [fault for fault in found.parsed.faults if not _of_fsdp(fault)]
    elif only is not None and only.raw is not False:
        front_end = front_end._replace(apart=("megatron/",))
        found.parsed.faults += of_options_code(front_end, found.parsed, document, says)
    elif _another_trains(document):
        front_end = front_end._replace(apart=("megatron/",))
        found.parsed.faults = [fault for fault in found.parsed.faults if fault.kind not in (UNKNOWN_FLAG, UNREAD)]
    else:
        found.parsed.faults += of_options_code(front_end, found.parsed, document, says)
    return reading(front_end, document, surroundings, found)
