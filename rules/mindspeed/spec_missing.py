"""MindSpeed-LLM does not have the layer specification that --spec names.

## What it does
If the module of `--spec` belongs to the `mindspeed_llm` package, or to `modellink`, its name before 1.0, compares the
module and the function with those of `mindspeed_llm/tasks/models/spec`. It is an error if one letter is wrong or the
package has its former name. It is a warning if a digit is different, because the module may be a custom one. A module
that is in the checkout of the run is not reported.

## Why is this bad?
The import fails, and only one line is printed. The run then crashes when it builds the model, or builds the model with
other layers.

## Example
    --spec mindspeed_llm.tasks.models.spec.qwen33_spec layer_spec

Use instead `--spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec`.

## Fix safety
Unsafe: a different specification defines a different model.

## References
MindSpeed-LLM v2.0.0 to v26.1.0, mindspeed_llm/tasks/models/spec
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown
from preflight.source.spelling import nearest

PACKAGE = "mindspeed_llm"
FORMER = "modellink"
"""The name of the package before 1.0."""
FOLDER = "mindspeed_llm.tasks.models.spec"
MODULES = tuple(
    "bailing_spec deepseek4_spec deepseek_spec gemma2_spec grok_spec hunyuan_spec longcat_spec mamba_spec minicpm_spec "
    "minimax_spec mtp_spec phi35_moe_spec plm_spec qwen2_moe_spec qwen3_next_spec qwen3_spec".split()
)
"""The modules of all releases, and of the branch after v26.1.0."""
SUFFIX = "_spec"
FUNCTION = "layer_spec"
"""The name of the layer specification in every module."""
LEAST = 0.75


@rule(
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    id="mindspeed-llm/spec-missing",
    frameworks=("mindspeed-llm",),
    reads=("spec",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    value = job.arguments.given("spec")
    if value is not None and isinstance(value.raw, Unknown):
        yield Unverified(value.because)
    if value is None or not isinstance(value.raw, (list, tuple)) or len(value.raw) != 2:
        return
    module, function = map(str, value.raw)
    if job.text_of is not None and job.text_of(f"{module.replace('.', '/')}.py") is not None:
        return
    meant: tuple[str, ...]
    folder, _, name = module.rpartition(".")
    certain = True
    if module.startswith(f"{FORMER}."):
        wrong, meant = module, (PACKAGE + module.removeprefix(FORMER), function)
    elif not module.startswith(f"{PACKAGE}.") or (folder == FOLDER and name in MODULES):
        wrong, near = function, nearest(function, (FUNCTION,), LEAST)
        if folder != FOLDER or function == FUNCTION or near is None:
            return
        meant = (module, near)
    else:
        stem = nearest(
            name.removesuffix("s").removesuffix(SUFFIX), [one.removesuffix(SUFFIX) for one in MODULES], LEAST
        )
        known = f"{stem}{SUFFIX}" if stem is not None else None
        wrong, meant = module, (f"{FOLDER}.{known}", function) if known is not None else ()
        certain = known is not None and _figures(known) == _figures(name)
    if not meant and folder == FOLDER:
        return
    hint = Message("; did you mean {near}?", near=" ".join(meant)) if meant else ""
    edits = value.becomes(meant) if meant else ()
    title: str = Message("set --spec {module} {name}", module=meant[0], name=meant[-1]) if meant else ""
    yield Finding(
        Message("MindSpeed-LLM has no layer specification {wrong}{hint}", wrong=wrong, hint=hint),
        job.place(value),
        key=value.key,
        fix=Fix(title, edits) if edits else None,
        severity=Severity.ERROR if certain else Severity.WARNING,
    )


def _figures(name: str) -> str:
    return "".join(filter(str.isdigit, name))
