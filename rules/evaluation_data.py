"""Checks of the data that a run evaluates on."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.loaders.document import Unknown, Word
from preflight.run.value import Value
from preflight.source.lazy_regex import lazy_pattern

PAIRS = (
    ("train_data_path", "valid_data_path", "eval_iters"),
    ("train_files", "val_files", "test_freq"),
    ("prompt_data", "eval_prompt_data", "eval_interval"),
    ("dataset", "val_dataset", ""),
)
"""Options of training data, of evaluation data, and of how much is evaluated: Megatron, verl, slime and ms-swift."""
LONGEST = 80
"""Characters of a name that a message shows: of a longer path the end, which distinguishes the files."""
_VARIABLE = lazy_pattern(r"\$\w{1,80}")
_APART = lazy_pattern(r"[\[\]'\",\s]{1,20}")
_NUMBER = lazy_pattern(r"[\d.eE+-]{1,40}")


@rule(
    id="validates-on-training-data",
    severity=Severity.WARNING,
    reads=tuple(name for names in PAIRS for name in names[:2]),
)
def validates_on_training_data(job: Job) -> Iterator[Finding]:
    """The run evaluates on data that it trains on.

    ## What it does
    Compares the files of the training data with those of the evaluation data, where a program has an option for each:
    `--train-data-path` and `--valid-data-path` of Megatron, `data.train_files` and `data.val_files` of verl,
    `--prompt-data` and `--eval-prompt-data` of slime, and `--dataset` and `--val_dataset` of ms-swift. It reports a
    file that is given, with the same spelling, for both, if the run evaluates regularly (`--eval-iters`,
    `trainer.test_freq`, `--eval-interval`). A data set of Energon (`--dataloader-type external`) may be given for both:
    it contains its own splits.

    ## Why is this bad?
    The run measures how well the model remembers its training data. The score rises although the model does not improve on other data, and the best checkpoint is the one that has
    memorized the most. The name of a variable or a
    file may have been copied from the line of the training data.

    ## Example
        data.train_files=$HOME/data/math/train.parquet data.val_files=$HOME/data/math/train.parquet

    Use instead:

        data.train_files=$HOME/data/math/train.parquet data.val_files=$HOME/data/math/test.parquet

    ## References
    Megatron-LM core_v0.16.0, megatron/training/arguments.py, --train-data-path and --valid-data-path; verl v0.9.0,
    verl/trainer/main_ppo.py, create_rl_dataset
    """
    for training, evaluation, amount in PAIRS:
        trained, evaluated = job.arguments.given(training), job.arguments.given(evaluation)
        if trained is None or evaluated is None or (amount and not _positive(job, amount)):
            continue
        if training == "train_data_path" and job.arguments.get("dataloader_type").raw == "external":
            continue
        shared = [name for name in _names(job, evaluated) if name in _names(job, trained)]
        if shared:
            name = shared[0] if len(shared[0]) <= LONGEST else f"…{shared[0][1 - LONGEST :]}"
            message = Message("{name:.80} is used for training and for evaluation", name=name)
            yield Finding(message, job.place(evaluated), related=trained.related, key=evaluated.key)


def _positive(job: Job, name: str) -> bool:
    """Whether an option is known and above 0."""
    raw = job.arguments.get(name).raw
    return isinstance(raw, int) and raw > 0


def _names(job: Job, value: Value) -> list[str]:
    """The data sets of an option. Variables that the script does not set keep their names."""
    if isinstance(value.raw, Unknown):
        texts = _typed(job, value)
    else:
        items = value.raw if isinstance(value.raw, list | tuple) else [value.raw]
        texts = [item for item in items if isinstance(item, str) and item != "None"]
    names = [name for text in texts for name in (_APART.split(text) if text.startswith("[") else [text])]
    return [name for name in names if name and not _NUMBER.fullmatch(name)]


def _typed(job: Job, value: Value) -> list[str]:
    """The words of an option with an unknown value, as far as they consist of text and variables."""
    option = str(value.setting.key[-1]) if value.setting is not None else ""
    for document in job.documents:
        words = document.launch.words if document.launch is not None else ()
        for at, word in enumerate(words):
            text = _shown(word) or ""
            if text.partition("=")[0].lstrip("+") == option:
                if "=" in text:
                    return [text.partition("=")[2]]
                rest = []
                for next_ in words[at + 1 :]:
                    part = _shown(next_)
                    if part is None or part.startswith("--"):
                        break
                    rest.append(part)
                return rest
    return []


def _shown(word: Word) -> str | None:
    """A word with the names of its unknown variables; None if a part of it is something else."""
    parts = [(one.text, one.because) for one in word.pieces or (word,)]
    if any(text is None and _VARIABLE.fullmatch(str(because)) is None for text, because in parts):
        return None
    return "".join(str(because) if text is None else text for text, because in parts)
