"""Writes the tables of doors, schemas/doors/<door>.json: python -m upstream.doors DOOR CLONE

Reads the parser of the release that the table names, off its syntax tree: nothing is imported or run.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from preflight.dialects.checkout.parser_options import OwnOption, own_options
from preflight.dialects.megatron.option_table import Flag, table
from upstream.door_classes import mindspeed_rl
from upstream.door_dataclasses import mindrlhf

SCHEMAS = Path(__file__).parent.parent / "schemas" / "doors"
Row = list[Any]
PATCHED = ("--post-self-attn-layernorm", "--post-mlp-layernorm", "--use-gated-attention", "--offload-optimizer-states")
"""Options that the commit under slime, and its patch (docker/patch/latest/megatron.patch), add to Megatron-LM 0.16."""


def slime(text: Callable[[str], str]) -> dict[str, Any]:
    """slime's own options, and the defaults that it changes in Megatron's parser."""
    code = text("slime/utils/arguments.py")
    below = table("megatron", "0.16.0").options
    resets = dict(_resets(ast.parse(code)))
    found = own_options(re.sub(r"(?<!def )reset_arg\(\s*parser,", "parser.add_argument(", code))
    defaults = {name: raw for name, raw in resets.items() if name in below and below[name].default != raw}
    keys = {one.option: row(one) for one in found if one.option not in below}
    keys |= {name: [name[2:].replace("-", "_"), "true", False] for name in PATCHED}
    keys["--sglang-mem-fraction-static"] = ["sglang_mem_fraction_static", "float", None]  # of SGLang's, which it takes
    return {"takes megatron": True, "defaults": defaults, "keys": keys}


SWIFT = {  # the classes that make the parser of `megatron rlhf`, from the first base to the last
    "swift/ray_utils/arguments.py": ("RayArguments",),
    "swift/arguments/base_args/model_args.py": ("ModelArguments",),
    "swift/arguments/base_args/template_args.py": ("TemplateArguments",),
    "swift/arguments/base_args/data_args.py": ("DataArguments",),
    "swift/arguments/base_args/quant_args.py": ("QuantizeArguments",),
    "swift/arguments/base_args/generation_args.py": ("GenerationArguments",),
    "swift/arguments/base_args/base_args.py": ("BaseArguments",),
    "swift/megatron/arguments/megatron_args.py": (
        "MegatronTunerMixin",
        "RLHFMegatronArgumentsMixin",
        "MegatronArguments",
    ),
    "swift/megatron/argument/megatron_args.py": (  # in 3.x
        *("MegatronTunerMixin", "RLHFMegatronArgumentsMixin", "ExtraMegatronArguments", "MegatronArguments"),
    ),
    "swift/llm/argument/base_args/base_args.py": ("BaseArguments",),
    "swift/llm/argument/base_args/data_args.py": ("DataArguments",),
    "swift/llm/argument/base_args/model_args.py": ("ModelArguments",),
    "swift/megatron/arguments/megatron_base_args.py": ("MegatronBaseArguments",),
    "swift/megatron/arguments/sft_args.py": ("MegatronSftArguments",),
}
RENAMED = {
    **{"max_length": "seq_length", "output_dir": "save", "mcore_model": "load"},
    "dataloader_num_workers": "num_workers",
    **{"save_steps": "save_interval", "eval_steps": "eval_interval", "logging_steps": "log_interval"},
    **{"fp8_format": "fp8", "fp4_format": "fp4", "ddp_backend": "distributed_backend"},
    "muon_use_nesterov": "muon_nesterov",
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
}
"""Keys of ms-swift that Megatron calls otherwise."""


def ms_swift(text: Callable[[str], str]) -> dict[str, Any]:
    """The fields of ms-swift's argument classes, of which transformers makes options."""
    below = table("megatron", "0.18.0").defaults
    keys: dict[str, Row] = {}
    for file, classes in SWIFT.items():
        try:
            tree = ast.parse(text(file))
        except subprocess.CalledProcessError:  # not in this release
            continue
        found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for name in classes:
            for field in found[name].body if name in found else ():
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    own = field.target.id
                    same = (
                        own if name == "MegatronArguments" and own in below else f"own_{own}" if own in below else own
                    )
                    keys |= _swift_options(own, RENAMED.get(own, same), field)
    return {"takes megatron": False, "dashes": True, "keys": keys}


def _swift_options(name: str, dest: str, field: ast.AnnAssign) -> dict[str, Row]:
    """The option of a field, and `--no_NAME` where it is a switch that is on."""
    of, default = ast.unparse(field.annotation), _field_default(field.value)
    choices = sorted(set(re.findall(r"'([^']*)'", of))) or None if "Literal" in of else None
    word = next((kind for kind in ("bool", "int", "float") if re.search(rf"\b{kind}\b", of)), "str")
    whole = "Literal" in of and choices is None
    kind = "yesno" if word == "bool" else "int" if whole else "str" if "dict" in of or "Literal" in of else word
    nargs = "+" if "List[" in of else "?" if kind == "yesno" else None
    found: Row = [dest, kind, default, nargs, choices]
    while len(found) > 3 and found[-1] is None:
        found.pop()
    negated = {f"--no_{name}": [dest, "false", True]} if kind == "yesno" and default is True else {}
    return {f"--{name}": found, **negated}


def _field_default(value: ast.expr | None) -> Any:
    """A literal default, or that of a dataclass field; None where it is made by code."""
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


def _resets(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The options whose default `reset_arg` changes."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "reset_arg":
            said = {one.arg: one.value for one in call.keywords}
            if "default" in said:
                yield ast.literal_eval(call.args[1]), ast.literal_eval(said["default"])


def row(one: OwnOption) -> Row:
    """An option as a row of the table: its destination, kind, default, number of values, choices, other spellings."""
    kind = one.kind or ("json" if isinstance(one.default, str) and one.default.startswith("{") else "str")
    default = False if kind == "true" else True if kind == "false" else one.default
    also = (f"--no-{one.option[2:]}",) if kind == "pair" else one.also
    found: Row = [one.dest, kind, default, one.nargs, one.choices, also or None]
    while found and found[-1] is None and len(found) > 3:
        found.pop()
    return found


Extract = Callable[[Callable[[str], str]], dict[str, Any]]
VERL = "verl/trainer/config/_generated_ppo_megatron_trainer.yaml"
"""The config of its trainer with Megatron, with all its parts in it."""
_FALLBACK = re.compile(r"\$\{oc\.select:[\w.]+,\s*([^${}]*)\}")


def verl(text: Callable[[str], str]) -> dict[str, Any]:
    """verl's trainer config; which of its keys Megatron knows, and by which name, is written by hand in the table."""
    trainer = _without_targets(yaml.safe_load(text(VERL)))
    table = json.loads((SCHEMAS / "verl.json").read_text(encoding="utf-8"))
    keys = {key: [*row_[:2], _value_at(trainer, key), *row_[3:]] for key, row_ in table["keys"].items()}
    known = sorted(_paths(trainer))
    return {"inside": table["inside"], "keys": keys, "all keys": known, "sft": _sft(text), "trainer": trainer}


def _sft(text: Callable[[str], str]) -> dict[str, Any]:
    """The config of its fine-tuning with Megatron, of the parts that its `defaults` would take."""

    def part(name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = yaml.safe_load(text(f"verl/trainer/config/{name}.yaml"))
        except subprocess.CalledProcessError:  # not in this release
            return {}
        found.pop("defaults", None)
        return found

    parts = {"engine": "engine/megatron", "optim": "optim/megatron", "model": "model/hf_model"}
    found: dict[str, Any] = _without_targets(
        {**part("sft_trainer_engine"), **{name: part(file) for name, file in parts.items()}}
    )
    return found


NEMO = "examples/configs/grpo_math_1B.yaml"
"""NeMo RL's largest base config."""


def nemo_rl(text: Callable[[str], str]) -> dict[str, Any]:
    """NeMo RL's keys have no defaults but those of a config's parents; which Megatron knows is written by hand."""
    table = json.loads((SCHEMAS / "nemo-rl.json").read_text(encoding="utf-8"))
    known = sorted(_paths(yaml.safe_load(text(NEMO))))
    return {"inside": table["inside"], "keys": table["keys"], "all keys": known}


FLAGSCALE = "flagscale/backends/Megatron-LM/megatron/training/arguments.py.patch"
"""What FlagScale changes in Megatron's parser."""
ENTRIES = ("train_llava.py", "train_llava_onevision.py", "train_qwen2_5_vl.py")
"""Its entry scripts with options of their own."""
TOKENIZERS = (
    *("AquilaTokenizerFS", "HFTokenizerFS", "HFTokenizersTokenizerFS", "Llama3TokenizerFS", "QwenTokenizerFS"),
    *("Qwen2TokenizerFS", "Qwen2VLTokenizer"),
)
"""What FlagScale adds to --tokenizer-type."""
RUNNER = {
    "experiment.task.entrypoint": ["entrypoint", "str", None],
    "experiment.runner.hostfile": ["hostfile", "str", None],
    "experiment.runner.nnodes": ["runner_nodes", "scalar", None],
    "experiment.runner.nproc_per_node": ["runner_processes", "int", None],
    "experiment.runner.per_node_task": ["per_node_task", "bool", None],
    "experiment.runner.type": ["runner_type", "str", None],
    "experiment.exp_dir": ["exp_dir", "str", None],
    "experiment.envs.CUDA_VISIBLE_DEVICES": ["visible_devices", "scalar", None],
    "action": ["action", "str", None],
}
"""Keys of FlagScale's runner; the others become options of Megatron."""


def flagscale(text: Callable[[str], str]) -> dict[str, Any]:
    """The options that FlagScale's patch adds to Megatron's parser or changes there, and those of its entry scripts.

    The commit below it is called 0.14.0rc1: its parser is that of 0.13 with one option more.
    """
    try:
        calls = "\n".join(_changed_calls(text(FLAGSCALE)))
    except subprocess.CalledProcessError:  # an earlier release has the whole file
        calls = text(FLAGSCALE.removesuffix(".patch"))
    entries = (text(f"flagscale/train/{entry}") for entry in ENTRIES)
    below = table("megatron", "0.13.0").options
    added = [one for code in (*entries, calls) for one in own_options(code)]
    own = {one.option: row(one) for one in added if _differs(one, below.get(one.option))}
    kind = below["--tokenizer-type"]
    own["--tokenizer-type"] = [kind.dest, kind.kind, None, None, [*(kind.choices or ()), *TOKENIZERS]]
    own["--load-main-params-from-ckpt"] = ["load_main_params_from_ckpt", "true", None]
    keys = {**RUNNER, **own}
    return {"takes megatron": True, "keys in files": True, "keys": keys, "all keys": [*below, *keys]}


def _differs(one: OwnOption, flag: Flag | None) -> bool:
    """Whether an option is none of Megatron's, or takes other values."""
    return flag is None or (one.choices is not None and tuple(one.choices) != flag.choices)


def _changed_calls(patch: str) -> Iterator[str]:
    """The calls that add an option, of which a patch adds or changes a line."""
    for hunk in re.split(r"^@@.*$", patch, flags=re.MULTILINE)[1:]:
        lines = [line for line in hunk.splitlines() if line[:1] in (" ", "+")]
        for at, line in enumerate(lines):
            if "group.add_argument(" in line:
                call = next((lines[at:end] for end in range(at + 1, len(lines) + 1) if _whole(lines[at:end])), [])
                if any(one[0] == "+" for one in call):
                    yield "\n".join(one[1:] for one in call).strip()


def _whole(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(line[1:] for line in lines).strip())
    except SyntaxError:
        return False
    return True


def _without_targets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_targets(inner) for key, inner in value.items() if key != "_target_"}
    return value


def _value_at(tree: Any, key: str) -> Any:
    """A default; of one that is another key's value, what it is without that."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    found = _FALLBACK.fullmatch(tree) if isinstance(tree, str) else None
    if found is not None:
        return yaml.safe_load(found[1])
    return None if isinstance(tree, str) and "${" in tree else tree


def _paths(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield above + key
        if isinstance(value, dict):
            yield from _paths(value, f"{above}{key}.")


SWIFT_RELEASES = (
    *("v3.4.1", "v3.5.3", "v3.6.4", "v3.7.3", "v3.8.3", "v3.9.3", "v3.10.3", "v3.11.3", "v3.12.6"),
    *("v4.0.4", "v4.1.3", "v4.2.3", "v4.3.2", "v4.4.3", "v4.5.0"),
)
DOORS: dict[str, tuple[str, Extract, tuple[str, ...]]] = {
    "slime": ("v0.3.1", slime, ("v0.1.0", "v0.2.0", "v0.2.1", "v0.2.2", "v0.2.3", "v0.2.4", "v0.3.0", "main")),
    "nemo-rl": ("v0.7.0", nemo_rl, ()),
    "flagscale": ("v0.9.0", flagscale, ("v0.8.0",)),
    "mindrlhf": ("e8a8fc1", mindrlhf, ("dev",)),
    "mindspeed-rl": ("v2.3.0", mindspeed_rl, ("2.0.0", "v2.1.0", "v2.2.0", "master")),
    "verl": ("v0.9.0", verl, ("v0.6.1", "v0.7.1", "v0.8.0")),
    "ms-swift": ("v4.5.2", ms_swift, SWIFT_RELEASES),
}
"""Door → the tag that is read, what reads it, and the other releases whose keys are no mistake."""


def write(door: str, clone: Path) -> Path:
    """Write the table of a door anew."""
    tag, extract, others = DOORS[door]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, text=True, check=True).stdout

    found: dict[str, Any] = {"release": tag.lstrip("v"), "commit": git("rev-parse", f"{tag}^{{commit}}")[:7]}

    def at(release: str) -> dict[str, Any]:
        return extract(lambda path: git("show", f"{release}:{path}"))

    found |= at(tag)
    tables = [at(other) for other in others]
    found["other releases"] = sorted({key for table in tables for key in _known(table)} - {*_known(found)})
    if choices := _other_choices(found["keys"], [table["keys"] for table in tables]):
        found["other choices"] = choices
    found.pop("all keys", None)
    out = SCHEMAS / f"{door}.json"
    lines = (f"  {json.dumps(key)}: {_value(value)}" for key, value in found.items())
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return out


def _other_choices(keys: dict[str, Row], others: Iterable[dict[str, Row]]) -> dict[str, list[str]]:
    """The choices of each key that other releases have and this one has not."""
    found: dict[str, set[str]] = {}
    for key, choices in ((key, row_[4]) for other in others for key, row_ in other.items() if len(row_) > 4):
        own = keys[key][4] if len(keys.get(key, ())) > 4 else None
        if own and choices:
            found.setdefault(key, set()).update({*map(str, choices)} - {*map(str, own)})
    return {key: sorted(choices) for key, choices in sorted(found.items()) if choices}


def _known(found: dict[str, Any]) -> Iterable[str]:
    keys: Iterable[str] = found.get("all keys") or found["keys"]
    return keys


def _value(value: Any) -> str:
    """A mapping with a line for each key, anything else on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    rows = (f"    {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(rows) + "\n  }"


def main(words: Sequence[str]) -> int:
    """DOOR and the clone of its repository."""
    print(write(words[0], Path(words[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
