"""The prompt template belongs to another family of models.

## What it does
For fine-tuning with `--prompt-type`, compares the family of the template with the model family that the file name, the
tokenizer, the checkpoint and `--spec` indicate, if they agree on one. Templates without a family (`default`, `empty`,
`chatml`, `alpaca` and others) are not compared, and neither are distilled models. For Llama and DeepSeek, the
generation is compared as well.

## Why is this bad?
The template decides which tokens begin and end a turn. With the tokens of another model, the loss is computed on a
format that the model has never seen, and the tuned model does not stop where it should.

## Example
    torchrun posttrain_gpt.py --stage sft --tokenizer-name-or-path /models/Llama-3-8B --prompt-type llama2

Use instead:

    torchrun posttrain_gpt.py --stage sft --tokenizer-name-or-path /models/Llama-3-8B --prompt-type llama3

## References
MindSpeed-LLM v26.1.0, configs/finetune/templates.json; mindspeed_llm/tasks/preprocess/templates.py, register_template
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.source.lazy_regex import lazy_pattern

FAMILIES = {
    "qwen": "qwen",
    "llama": "llama",
    "deepseek": "deepseek",
    "glm": "glm",
    "mistral": "mistral",
    "mixtral": "mistral",
    "baichuan": "baichuan",
    "gemma": "gemma",
    "intern": "intern",
    "hunyuan": "hunyuan",
}
"""Parts of the names of models and templates, and the family that they belong to."""
GENERATIONS = ("llama", "deepseek")
"""Families whose templates differ by generation, and are named after it."""
OTHERS = ("distill", "seed", "bailing", "ling", "minicpm", "phi", "grok", "plm", "kimi", "longcat", "minimax")
"""Names of models that have the template of another family, or are of a family that has no template."""
LONGEST = 300
_FAMILY = lazy_pattern("(" + "|".join(FAMILIES) + r")(?:lm)?[-_ v]{0,2}(?:r1|coder|v)?[-_]?(\d)?")


@rule(
    severity=Severity.WARNING,
    id="mindspeed-llm/prompt-of-another-model",
    frameworks=("mindspeed-llm",),
    reads=("prompt_type",),
)
def check(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("prompt_type")
    if value is None or not isinstance(value.raw, str) or not (own := _families((value.raw,))):
        return
    paths = job.plan.model.names.raw
    spec = job.arguments.given("spec")
    texts = [job.documents[0].source.name.rpartition("/")[2]]
    texts += [str(path).rstrip("/").rpartition("/")[2] for path in paths] if isinstance(paths, tuple) else []
    texts += [str(spec.raw[0])] if spec is not None and isinstance(spec.raw, (list, tuple)) and spec.raw else []
    named = _families(texts)
    if len(own) != 1 or len(named) != 1 or any(word in text.lower() for text in texts for word in OTHERS):
        return
    (family, generations), (model, others) = *own.items(), *named.items()
    if family == model and (family not in GENERATIONS or not generations or not others or generations & others):
        return
    message = Message(
        "--prompt-type {type} is a template of {family}, but this run names {model}",
        type=value.raw,
        family=_label(family, generations),
        model=_label(model, others),
    )
    yield Finding(message, job.place(value), key=value.key)


def _families(texts: list[str] | tuple[str, ...]) -> dict[str, set[str]]:
    """The families in the texts, and the digits that follow their names."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for match in _FAMILY.finditer(text[-LONGEST:].lower()):
            found.setdefault(FAMILIES[match[1]], set()).update(match[2] or "")
    return found


def _label(family: str, generations: set[str]) -> str:
    return " ".join((family, *sorted(generations))) if family in GENERATIONS else family
