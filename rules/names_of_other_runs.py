"""Checks of names that state what the run does."""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.run.published_models import Published, published
from preflight.source.lazy_regex import lazy_pattern

LONGEST = 300
_ENDS = r"(?=$|[^a-z0-9.])"
_SIZE = r"[-_=]?(\d{1,3})(?=$|[^a-z0-9.]|[vcedpt]p)"
PARALLEL = {
    Message("tensor-parallel size"): ("tp", lazy_pattern(rf"(?<![a-z])tp{_SIZE}")),
    Message("pipeline-parallel size"): ("pp", lazy_pattern(rf"(?<![a-z])pp{_SIZE}")),
    Message("context-parallel size"): ("cp", lazy_pattern(rf"(?<![a-z])cp{_SIZE}")),
}
TRAINED = {
    Message("micro-batch size"): ("mbs", lazy_pattern(rf"(?<![a-z])mbs[-_=]?(\d{{1,5}}){_ENDS}")),
    Message("global batch size"): ("gbs", lazy_pattern(rf"(?<![a-z])gbs[-_=]?(\d{{1,6}}){_ENDS}")),
    Message("sequence length"): (
        "seq",
        lazy_pattern(rf"(?<![a-z])seq[-_]?(?:len(?:gth)?)?[-_=]?(\d{{3,7}}|\d{{1,4}}k){_ENDS}"),
    ),
}
RATE = {Message("learning rate"): ("lr", lazy_pattern(rf"(?<![a-z])lr[-_=]?(\d(?:\.\d{{1,4}})?e-\d{{1,2}}){_ENDS}"))}
"""Facts, a part of each word that states them, and the words: llama_tp8pp2, qwen3-seq4096-gbs512, adam_lr3e-4."""
OUTPUTS = ("save", "tensorboard_dir", "wandb_exp_name", "wandb_save_dir", "experiment_name", "output_dir")
"""Arguments that name what the run writes."""
POLICIES = frozenset({"verl", "nemo-rl", "slime", "areal", "skyrl", "mindspeed-rl"})
"""Front ends that run several models, each with its own layout and batch."""


@rule(id="name-of-another-run", severity=Severity.WARNING)
def name_of_another_run(job: Job) -> Iterator[Finding]:
    """A name states a value that the run does not have.

    ## What it does
    Reads the tensor-, pipeline- and context-parallel sizes in the name of the file, and these sizes, the batch sizes, the
    sequence length, the learning rate and the published model in the names of what the run writes: `--save`,
    `--tensorboard-dir`, and the names of experiments. Only usual forms are read, such as `tp8`, `pp2`, `gbs512`,
    `seq4096` and `lr3e-4`. If a name states a fact twice with different values, it is not compared, and neither is the
    name of a file in which another branch sets the value. For front ends that train a policy, only the learning rate
    and the model are compared, because they run several models.

    A model is only compared if the tokenizer or the weights name another one, and the sizes of the run do not agree with
    the named one. A name that states both models, and the folder that a run with `--finetune` both loads and saves, are
    not compared.

    ## Why is this bad?
    One of the two is left over from another run. Either the run trains with a wrong value, or its checkpoints and logs
    are kept under a wrong name, possibly among those of that run.

    ## Example
        torchrun pretrain_gpt.py --tensor-model-parallel-size 4 --save /ckpt/llama_tp8_pp2

    Use instead:

        torchrun pretrain_gpt.py --tensor-model-parallel-size 4 --save /ckpt/llama_tp4_pp2

    ## References
    Megatron-LM core_v0.17.0, megatron/training/arguments.py, --save: nothing compares the name of the folder
    """
    policy = job.target.framework in POLICIES
    facts = RATE if policy else {**PARALLEL, **TRAINED, **RATE}
    names: list[tuple[str, Value | None]] = [(_last(job.documents[0].source.name).rpartition(".")[0], None)]
    for name in OUTPUTS:
        value = job.arguments.given(name)
        if value is not None and isinstance(value.raw, str) and not (name == "save" and _is_reused(job, value.raw)):
            names.append((value.raw, value))
    for text, value in names:
        read = facts if value is not None else {} if policy else PARALLEL
        lowered = text[-LONGEST:].lower()
        for fact, (part, pattern) in read.items():
            stated = set(pattern.findall(lowered)) if part in lowered else set()
            own = _own(job, fact) if stated else ()
            if len(stated) != 1 or not own or _agrees(word := stated.pop(), own):
                continue
            if value is not None or not _assigned(job, part, word):
                template = "the name {name!r} states the {fact} {word}, but this run has {own}"
                name = _last(text) if value is None else _part(text, pattern)
                message = Message(template, name=name, fact=fact, word=word, own=own[0])
                yield Finding(message, job.place(value))
                return
        if value is not None and (other := _other_model(job, text)) is not None:
            template = "the name {name!r} states the model {model}, but this run names {own}"
            message = Message(template, name=_last(text), model=other[0], own=other[1])
            yield Finding(message, job.place(value))
            return


def _is_reused(job: Job, folder: str) -> bool:
    """Whether a run loads only the weights from the folder that it saves to: the name is that of the earlier run."""
    load, finetune = (job.arguments.given(name) for name in ("load", "finetune"))
    return load is not None and load.raw == folder and finetune is not None and finetune.raw is True


def _own(job: Job, fact: str) -> tuple[float, ...]:
    """The value of the run, and others that a name may mean; empty if it is unknown."""
    plan, get = job.plan, job.arguments.get
    values = {
        "tensor-parallel size": (plan.layout.tensor,),
        "pipeline-parallel size": (plan.layout.pipeline,),
        "context-parallel size": (plan.layout.context,),
        "micro-batch size": (plan.batch.micro,),
        "global batch size": (plan.batch.total,),
        "sequence length": (plan.model.sequence, get("max_position_embeddings")),
        "learning rate": (get("lr"), get("min_lr"), get("critic_lr")),
    }[fact]
    numbers = [value.raw for value in values if isinstance(value.raw, (int, float)) and value.raw is not True]
    return tuple(numbers) if numbers and numbers[0] == values[0].raw else ()


def _agrees(word: str, own: tuple[float, ...]) -> bool:
    if word.endswith("k"):
        return any(number in (int(word[:-1]) * 1024, int(word[:-1]) * 1000) for number in own)
    return float(word) in own


def _assigned(job: Job, part: str, word: str) -> bool:
    """Whether a branch of the script that is not taken gives the value: TP=8."""
    return re.search(rf"(?i)\b{part}\w{{0,20}}[=:]\W{{0,4}}{word}\b", job.documents[0].source.text) is not None


def _last(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2][-80:]


def _part(text: str, pattern: re.Pattern[str]) -> str:
    """The last folder or file of a path that states a fact."""
    return next((one[-80:] for one in reversed(text.split("/")) if pattern.search(one.lower())), _last(text))


def _model_of(job: Job) -> Published | None:
    """The published model that the tokenizer or the weights name."""
    names = job.plan.model.names.raw
    return published([one for one in names if isinstance(one, str)]) if isinstance(names, tuple) else None


def _other_model(job: Job, text: str) -> tuple[str, str] | None:
    """The model that a name states, and the one of the run, if the run cannot be of the first."""
    named, own = published([text]), _model_of(job)
    if named is None or own is None or named.name == own.name or "distill" in text.lower():
        return None
    if text.lower().count(family := _family(own)) > (family == _family(named)):
        return None
    hidden, layers = job.plan.model.hidden.raw, job.plan.model.layers.raw
    sizes = (named.sizes.get("hidden"), named.sizes.get("layers"))
    if sizes == (own.sizes.get("hidden"), own.sizes.get("layers")):
        return None
    if isinstance(hidden, int) and (hidden == sizes[0] or hidden != own.sizes.get("hidden")):
        return None
    return (named.name, own.name) if not isinstance(layers, int) or layers != sizes[1] else None


def _family(model: Published) -> str:
    """The letters that a model's name begins with."""
    return re.split(r"[^a-z]", model.name.lower(), maxsplit=1)[0]


PADDED = 1.02
"""Rows of an embedding, as a multiple of those of another model with the same tokenizer: models pad them differently."""
TOKENIZERS = ("tokenizer_name_or_path", "tokenizer_model")


@rule(id="tokenizer-of-another-model", severity=Severity.WARNING, reads=(*TOKENIZERS, "load"))
def tokenizer_of_another_model(job: Job) -> Iterator[Finding]:
    """The tokenizer belongs to another model than the weights that the run loads.

    ## What it does
    Compares the published model that the path of the tokenizer names with the one that `--load` names. The finding is
    reported if the sizes of their vocabularies differ by more than 2%. Distilled models are not compared, because they
    keep the tokenizer of the model that they were made from.

    ## Why is this bad?
    The loaded embedding has a row for each token of the model's own tokenizer. With other tokens, the weights do not
    load, or each token gets the row of an unrelated one and the loss starts as if the model were untrained.

    ## Example
        torchrun posttrain_gpt.py --stage sft --load /ckpt/llama-3-8b --tokenizer-name-or-path /models/Qwen2.5-7B

    Use instead:

        torchrun posttrain_gpt.py --stage sft --load /ckpt/llama-3-8b --tokenizer-name-or-path /models/llama-3-8b

    ## References
    Megatron-LM core_v0.17.0, megatron/training/training.py: the vocabulary of the tokenizer sizes the embedding
    """
    load = job.arguments.given("load")
    value = next((v for name in TOKENIZERS if (v := job.arguments.given(name)) is not None), None)
    if load is None or value is None or not isinstance(load.raw, str) or not isinstance(value.raw, str):
        return
    if "distill" in (load.raw + value.raw).lower():
        return
    weights, tokenizer = published([load.raw]), published([value.raw])
    if weights is None or tokenizer is None:
        return
    rows, tokens = weights.sizes.get("vocab"), tokenizer.sizes.get("vocab")
    if rows is None or tokens is None or max(rows, tokens) <= PADDED * min(rows, tokens):
        return
    template = (
        "the tokenizer is of {tokenizer}, whose vocabulary has {tokens} entries, but the weights are of {weights}, with "
        "{rows}"
    )
    message = Message(template, tokenizer=tokenizer.name, tokens=tokens, weights=weights.name, rows=rows)
    yield Finding(message, job.place(value))
