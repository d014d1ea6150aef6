"""The keys of ms-swift: the fields of its argument classes."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from preflight.dialects.megatron.options import table
from upstream.frontends.rows import Row

OLDER = "swift/megatron/argument/megatron_args.py"
"""Megatron's arguments in 3.x. They are None if the model determines them; the defaults of the other models are set
later (`_set_default`), and are those of Megatron."""
PRECISION = ("bf16", "fp16")
SWIFT = {  # the classes that make the parser of `megatron rlhf`, from the first base to the last
    "swift/ray_utils/arguments.py": ("RayArguments",),
    "swift/arguments/base_args/model_args.py": ("ModelArguments",),
    "swift/arguments/base_args/template_args.py": ("TemplateArguments",),
    "swift/arguments/base_args/data_args.py": ("DataArguments",),
    "swift/arguments/base_args/quant_args.py": ("QuantizeArguments",),
    "swift/arguments/base_args/generation_args.py": ("GenerationArguments",),
    "swift/arguments/base_args/base_args.py": ("BaseArguments",),
    "swift/llm/argument/base_args/ray_args.py": ("RayArguments",),  # the rest of this folder: in 3.x
    "swift/llm/argument/base_args/model_args.py": ("ModelArguments",),
    "swift/llm/argument/base_args/template_args.py": ("TemplateArguments",),
    "swift/llm/argument/base_args/data_args.py": ("DataArguments",),
    "swift/llm/argument/base_args/quant_args.py": ("QuantizeArguments",),
    "swift/llm/argument/base_args/generation_args.py": ("GenerationArguments",),
    "swift/llm/argument/base_args/base_args.py": ("CompatArguments", "BaseArguments"),
    "swift/megatron/arguments/megatron_args.py": (
        "MegatronTunerMixin",
        "RLHFMegatronArgumentsMixin",
        "MegatronArguments",
    ),
    OLDER: (*("MegatronTunerMixin", "RLHFMegatronArgumentsMixin", "ExtraMegatronArguments", "MegatronArguments"),),
    "swift/megatron/argument/train_args.py": ("MegatronTrainArguments",),  # in 3.x
    "swift/megatron/arguments/megatron_base_args.py": ("MegatronBaseArguments",),
    "swift/megatron/arguments/sft_args.py": ("MegatronSftArguments",),
}
RLHF = ("swift/megatron/argument/rlhf_args.py", ("MegatronRLHFArguments",))
"""Options that only `megatron rlhf` has before 3.9; its defaults are those of no other command."""
EXPORTS = ("swift/megatron/arguments/export_args.py", "swift/megatron/argument/export_args.py")
EXPORT = ("MegatronExportArguments",)
"""Additional options of `megatron export`, or options with other defaults there."""
MEGATRONS = ("MegatronArguments", "MegatronExportArguments")
"""Classes whose fields have the same meaning as Megatron's arguments of that name."""
RENAMED = {
    **{"max_length": "seq_length", "output_dir": "save", "mcore_model": "load"},
    "dataloader_num_workers": "num_workers",
    **{"save_steps": "save_interval", "eval_steps": "eval_interval", "logging_steps": "log_interval"},
    **{"fp8_format": "fp8", "fp4_format": "fp4", "ddp_backend": "distributed_backend"},
    "muon_use_nesterov": "muon_nesterov",
    "manual_gc_steps": "manual_gc_interval",
    **{"max_epochs": "num_train_epochs", "adapter_load": "mcore_adapter"},  # in 3.x
    **{"ref_load": "mcore_ref_model", "ref_adapter_load": "mcore_ref_adapter"},
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
}
"""Keys of ms-swift with another name in Megatron."""


NAMED = {"attention_backend": ["auto", "flash", "flash_2", "flash_3", "flash_4", "fused", "local", "unfused"]}
"""Keys whose values name members of Megatron's AttnBackend, or a version (megatron_args.py:921-941)."""


def ms_swift(text: Callable[[str], str]) -> dict[str, Any]:
    """The fields of ms-swift's argument classes, which transformers turns into options."""
    below = table("megatron", "0.18.0").defaults
    keys: dict[str, Row] = {}
    for file, classes in SWIFT.items():
        keys |= _of_file(file, classes, text, below)
    for option, row in _of_file(*RLHF, text, below).items():
        keys.setdefault(option, [*row[:2], None, *row[3:]])
    if "--tuner_type" not in keys and "--train_type" in keys:  # its name until 4.0
        keys["--train_type"][0] = "tuner_type"
    export = {key: row for file in EXPORTS for key, row in _of_file(file, EXPORT, text, below).items()}
    return {"takes megatron": False, "dashes": True, "keys": keys, "export": export}


def _of_file(file: str, classes: Sequence[str], text: Callable[[str], str], below: Mapping[str, Any]) -> dict[str, Row]:
    """The options of some classes of a file, in their order; none if the release has no such file."""
    try:
        tree = ast.parse(text(file))
    except subprocess.CalledProcessError:
        return {}
    classes_of = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    keys: dict[str, Row] = {}
    for name in classes:
        for field in classes_of[name].body if name in classes_of else ():
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                own = field.target.id
                same = own if name in MEGATRONS and own in below else f"own_{own}" if own in below else own
                found = _swift_options(own, RENAMED.get(own, same), field)
                if file == OLDER and same == own and own not in PRECISION and found[f"--{own}"][2] is None:
                    found[f"--{own}"][2] = below.get(own)
                keys |= found
    return keys


def _swift_options(name: str, dest: str, field: ast.AnnAssign) -> dict[str, Row]:
    """The option of a field, and `--no_NAME` if it is a switch that is on by default."""
    of, default = ast.unparse(field.annotation), _field_default(field.value)
    choices: Sequence[Any] | None = NAMED.get(name)
    if "Literal" in of:
        choices = sorted(set(re.findall(r"'([^']*)'", of))) or sorted(map(int, re.findall(r"\b\d+\b", of))) or None
    word = next((kind for kind in ("bool", "int", "float") if re.search(rf"\b{kind}\b", of)), "str")
    whole = "Literal" in of and not any(isinstance(one, str) for one in choices or ())
    kind = "yesno" if word == "bool" else "int" if whole else "str" if "dict" in of or "Literal" in of else word
    nargs = "+" if "List[" in of else "?" if kind == "yesno" else None
    found: Row = [dest, kind, default, nargs, choices]
    while len(found) > 3 and found[-1] is None:
        found.pop()
    negated = {f"--no_{name}": [dest, "false", True]} if kind == "yesno" and default is True else {}
    return {f"--{name}": found, **negated}


def _field_default(value: ast.expr | None) -> Any:
    """A literal default, or that of a dataclass field; None if code computes it."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        said = {one.arg: one.value for one in value.keywords}
        made = said.get("default_factory")
        inner = made.body if isinstance(made, ast.Lambda) else None
        return (
            []
            if made is not None and inner is None
            else _field_default(inner if inner is not None else said.get("default"))
        )
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None


RELEASES = (
    *("v3.4.1", "v3.5.3", "v3.6.4", "v3.7.3", "v3.8.3", "v3.9.3", "v3.10.3", "v3.11.3", "v3.12.6"),
    *("v4.0.4", "v4.1.3", "v4.2.3", "v4.3.2", "v4.4.3", "v4.5.0"),
)
