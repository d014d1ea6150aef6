"""The activity of a job when it died, by the frames of its traceback: a class of cause if nothing more is known."""

from __future__ import annotations

import re
from functools import cache

from preflight.logs.cause_types import Cause
from preflight.logs.exception_origin import called
from preflight.logs.failures import Failure, Frame
from preflight.source.record import NamedTuple


class Stage(NamedTuple):
    """A part of a run. places: pattern of `file:function`; kinds: of the exceptions that it holds for. near: number of
    the innermost frames in which it holds, 0 for all."""

    cause: Cause
    places: str
    says: str
    kinds: str = ""
    near: int = 0


DIVIDE = (
    "sizes are not divisible by the number of ranks in a group; compare the sequence length, padding or packing with "
    "the tensor- and context-parallel sizes"
)
LOADED = "it died while packages were loaded or processes started"
CONNECTED = "it died while processes connected to each other"
TO_ENGINE = "it died while weights were sent to the generation engine"
STAGES = (
    Stage(
        Cause.UPSTREAM,
        r"training\.py:training_log$|distributed_data_parallel\.py:zero_grad_buffer$"
        r"|distrib_optimizer\.py:(?:load_state_dict|"
        r"split_state_dict_if_needed|_update_legacy_world_tensors)$|param_and_grad_buffer\.py:reset$"
        r"|microbatches_calculator\.py:get_\w+$",
        "the framework's own bookkeeping failed",
    ),
    Stage(
        Cause.CONFIG,
        r"mappings\.py:_(?:reduce_scatter|split|gather)_along_(?:first|last)_dim|mappings\.py:forward"
        r"|context_parallel\w*\.py:"
        r"|get_batch_on_this_cp_rank|tensor_parallel/utils\.py:",
        DIVIDE,
        kinds=r"^AssertionError$|^ValueError$|^$",
        near=3,
    ),
    Stage(
        Cause.CONFIG,
        r"(?:^|/)arguments\.py:(?!<module>)|:(?:validate_args|parse_args|_parse_args"
        r"|core_transformer_config_from_args|validate_yaml)$"
        r"|:__post_init__$|hydra/(?!main\.py|_internal/(?:utils|hydra)\.py|core/utils\.py)|omegaconf/"
        r"|parallel_state\.py:initialize_model_parallel|:parallel_state\.initialize_model_parallel$|features_manager/"
        r"|:(?:validate|check)_\w*(?:args|config)\w*$"
        r"|num_microbatches_calculator\.py|optimizer_param_scheduler\.py|get_num_layers_to_build"
        r"|mindformers/tools/(?:check_rules|register)|op_parallel_config\.py"
        r"|initialize\.py:(?!_?init\w*dist|_compile)|cli/main\.py:(?!<module>)",
        "it died while the configuration was read, checked or applied",
    ),
    Stage(
        Cause.UNKNOWN,
        r"base_trainer\.py:(?:train|predict|evaluate|finetune)_process$|:infer_predict_layout$"
        r"|:(?:build_model|get_model|model_provider|_?init_model\w*|build_network|create_network)$",
        "the process died while the model was being built",
        kinds="$^",
    ),
    Stage(
        Cause.PROGRAM,
        r"/(?:checkpoint_engines?|weight_sync\w*|weight_update\w*)/|(?:update_weight\w*|weight_transfer\w*|refit\w*)\.py:"
        r"|:(?:\w{1,40}_)?(?:update_weights|sync_(?:model_)?weights|refit|weight_sync)\w*$|_weight_loaders\.py",
        TO_ENGINE,
        near=6,
    ),
    Stage(
        Cause.CHECKPOINT,
        r"checkpointing\.py|dist_checkpointing|:[\w.]{0,80}(?:load|save)_\w{0,40}(?:checkpoint|ckpt|state_dict|param)"
        r"|(?:checkpoint_(?!engine)\w{1,40}|(?<=\w)(?<!activation)_checkpoint)\.py:(?!checkpoint)"
        r"|/\w{0,40}convert\w{0,40}checkpoint\w{0,40}/"
        r"|distributed/checkpoint/|:sharded_(?:state_dict|param_state)\w*$|:(?:transform_and_load_checkpoint"
        r"|(?:\w+_)?resume\w*|load_megatron_model|build_and_load_model)$|safetensors|torch/serialization\.py"
        r"|mindformers/(?:checkpoint|utils/load_checkpoint)",
        "it died while a checkpoint was loaded or saved",
    ),
    Stage(
        Cause.ENVIRONMENT,
        r":_?pin_memory\w*$",
        "it died while host memory was being prepared for copies to the device",
        near=2,
    ),
    Stage(
        Cause.DATA,
        r"(?:core|legacy|megatron)/(?:datasets|data)/|(?:gpt|indexed|bert|blended|t5)\w{0,40}_dataset\w{0,40}\.py"
        r"|dataloader\.py|data_samplers\.py"
        r"|blended_megatron|mindformers/dataset|:build_(?:train|tokenizer)|(?<!model_and_)tokeniz|:default_collate|:collate_fn"
        r"|site-packages/datasets/|/(?:dataset|template)s?/(?:\w{1,40}/)?\w+\.py:|data\w{0,40}/\S{0,200}:__getitem__$"
        r"|:[\w.]{0,80}(?:dataset|data_?loader|collat)[\w.]{0,80}$",
        "the process died while the data was being read",
    ),
    Stage(
        Cause.COMMUNICATION,
        r"distributed_c10d\.py:(?:barrier|all_\w+|broadcast\w*|reduce\w*|gather\w*|scatter\w*|i?send|i?recv)$"
        r"|^:[\w.]*(?:barrier|main_process_first|zero_first)$",
        "it died in a call that waits for other ranks",
        kinds="$^",
        near=2,
    ),
    Stage(
        Cause.COMMUNICATION,
        r"distributed_c10d\.py:_?new_(?:process_)?group\w*$",
        CONNECTED,
        kinds="$^",
        near=3,
    ),
    Stage(
        Cause.ENVIRONMENT,
        r"global_vars\.py:_ensure_var_is_(?:not_)?initialized$",
        "the program uses the framework's arguments before they are parsed, or parses them twice",
    ),
    Stage(
        Cause.ENVIRONMENT,
        r":(?:make_cubin|make_ptx|make_amdgcn|_compile_triton\w*)$"
        r"|:(?:_?load_(?:\w+_)?(?:library|extension|cudnn|nvrtc|cublas|curand)\w*|_get_shared_object_file"
        r"|_try_load_\w+)$"
        r"|op_builder/\w+\.py:(?:load|jit_load|builder)$|^:\w+Builder$",
        LOADED,
    ),
    Stage(
        Cause.COMMUNICATION,
        r":_?init\w*distributed\w*$|rendezvous\w*\.py",
        CONNECTED,
        kinds=r"^(?:RuntimeError|TimeoutError|OSError|ConnectionError|Dist\w+Error)$",
        near=2,
    ),
    Stage(
        Cause.ENVIRONMENT,
        r"<frozen importlib|importlib/__init__\.py|ctypes/__init__|torch/utils/cpp_extension"
        r"|:_?init\w*distributed\w*$|rendezvous\.py",
        LOADED,
        kinds=r"ImportError|ModuleNotFoundError|AttributeError|OSError|NameError|TypeError|SyntaxError|RuntimeError|AssertionError",
        near=2,
    ),
)
NO_FILES = re.compile(
    r"torch/(?:nn|cuda|npu|autograd|_tensor|_ops|functional)\b|distributed_c10d\.py|distributed/fsdp/"
)
"""Files that read and write no checkpoint: what fails in them is a call that the loader makes for another end."""
SHAPES = re.compile(
    r"not divisible|divisible by|divided by|is not a multiple|multiple of|invalid input shape|alignment mismatch"
)
"""Messages about sizes that do not divide or do not fit."""
SIZES = re.compile(r"\b(?:world[_ ]size|tp_size|pp_size|cp_size|ep_size|\w+_parallel_size|num_key_value_heads)\b")
"""Names of sizes of a layout, whatever raises the error."""
CHECKED = (
    "Exception",
    "AssertionError",
    "ValueError",
    "NotImplementedError",
    "argparse",
    "ConfigError",
    "ValidationError",
)
SETTINGS = re.compile(
    r"world[_ ]size|_parallel_size|parallel size|pp_size|tp_size|batch[_ ]size|num_layers|micro_batch"
    r"|too large to fit in the bucket|Please (?:increase|set|specify|provide|correct the)"
    r"|must be (?:specified|set|provided|given)"
    r"|--?[a-z]{1,40}[-_][a-z-_]{1,60} (?:must|requires?|is|cannot|should|needs?|has)"
    r"|^\w+ is None$|^(?!Path|File|Dir|Folder|Dataset|Checkpoint)\w+ [\w.-]{1,60} (?:does not exist"
    r"|is not (?:registered|valid))|please check the config|^For '[\w.]+',.* but got\b"
    r"|^[Uu]n(?:known|recognized) (?:\w+ ){0,3}(?:type|name|option|template|backend|optimizer|scheduler|loss|mode)\b"
    r"|^assert (?:args|self\.config|config)\.|^[Ii]nvalid (?:\w+ ){0,2}arguments?\b"
    r"|^[Ii]nvalid (?:\w+ ){1,4}specified\b|not compatible with the .{1,40} argument"
    r"|\b\w{1,60}_\w{1,60}=(?:True|False)\b"
)
"""Messages about settings, of a check that is not in any table."""
REFUSES = re.compile(
    r"is None$|is not set|(?:is|are) required|(?:must|should|cannot|can not) be|[Oo]nly support|not support"
    r"|[Uu]nsupported"
)
"""Messages of a check of any value: of the configuration where the check is the framework's."""
NAMED = re.compile(
    r"\w_\w|--\w|(?i:\b(?:config\w*|arguments?|options?|support\w*|parallel\w*|packing|backend|precision|[bf]+p?16|fp8)\b)"
)
"""Words of messages about settings, not about a value of the program itself."""
READ = re.compile(
    r"(?i)data|sample|messages|image|audio|video|token|checkpoint|ckpt|state|file|path|folder|shape|weight|tensor|\brow"
)
"""Words of messages about what is read or written, rather than about settings."""
OPERATOR = re.compile(
    r"^For '(?:primitive\[)?\w+\]?', .{0,120}(?:dimension|shape)s? |^Expected (?:input batch_size|\w+ to have) \("
    r"|^(?:Target size|Using a target size|Expected size for first two dimensions of batch2) "
)
"""A message of an operator of MindSpore or torch about the sizes of its inputs, which no configuration sets alone."""
CHECKS = re.compile(
    r"^assert (?:not )?(?:\w*args|self\.config|config|cfg)\.|^raise \w+\(.*\{(?:\w*args|self\.config|config|cfg)\."
)
"""The source of a check of the configuration."""
ASKS = re.compile(r"\b(?:\w{1,30}_)?(?:conf|config|cfg|hparams|settings)\[['\"]\w+['\"]\]")
"""The source of a line that takes a key of the configuration."""
OPTION = re.compile(
    r"(?:[Pp]rovide|[Ss]et|[Uu]se|[Ss]pecify|[Aa]dd|[Rr]emove|[Dd]isable|[Ee]nable|[Ii]ncrease|[Dd]ecrease)"
    r" (?:\w+ ){0,3}[`'\"]?--[a-z]\w+-[\w-]+"
)
"""A message that requires a command-line option."""


FRAMEWORKS = re.compile(
    r"(?:^|/)(?:megatron\w*|mindspeed\w*|mindformers|mindspore|swift|verl|slime\w*|nemo\w*|mbridge|flagscale"
    r"|transformers|vllm\w*|sglang|trl|peft|deepspeed|pretrain\w*\.py|accelerate|torchtitan"
    r"|llamafactory|llmtuner|openrlhf|axolotl|xtuner|colossalai|torchtune|litgpt|realhf|areal|rlinf|trlx|llava)(?:/|$)"
)
"""Files of frameworks, as against those of the libraries that they call."""
LIBRARIES = re.compile(
    r"/(?:apex|flash_attn\w*|transformer_engine\w*|grouped_gemm|triton|deep_ep|deep_gemm|xformers|bitsandbytes|fla"
    r"|megablocks|causal_conv1d|mamba_ssm|torch_npu|tbe|liger_kernel|flashinfer|sgl_kernel)/"
)
"""Files of libraries of kernels, which are built for one version of torch and one device."""
OF_LIBRARIES = ("RuntimeError", "ValueError", "TypeError", "KeyError", "AttributeError", "Exception")
OWN_CODE = ("KeyError", "IndexError", "TypeError", "AttributeError", "UnboundLocalError")
"""Exceptions with which a program fails in its own code."""


def of_framework(frame: Frame) -> bool:
    """Whether a frame is a framework's, or a script's that starts it."""
    return FRAMEWORKS.search(frame.file) is not None


@cache
def _patterns(stage: Stage) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    return re.compile(stage.places), re.compile(stage.kinds) if stage.kinds else None


def stage_of(failure: Failure) -> tuple[Cause, str] | None:
    """The activity of the job, from the innermost frame that shows it, or from the words; None if neither does."""
    own = any(of_framework(frame) for frame in failure.frames[-1:])
    if failure.kind in CHECKED and any(CHECKS.search(frame.source) for frame in failure.frames[-1:]):
        return Cause.CONFIG, "the program rejected the configuration"
    if failure.kind == "KeyError" and ASKS.search(failure.frames[-1].source if failure.frames else ""):
        return Cause.CONFIG, "the program reads a key that the configuration does not have"
    if failure.kind != "AttributeError" and SHAPES.search(failure.message):
        return Cause.CONFIG, "sizes are not divisible or do not match: the message names them"
    if failure.kind in CHECKED and OPTION.search(failure.message):
        return Cause.CONFIG, "the program rejected the configuration"
    refused = _refused(failure, own)
    elsewhere = failure.whole and any(NO_FILES.search(frame.file) for frame in failure.frames[-1:])
    for at, frame in enumerate(reversed(_walked(failure)), 1):
        if not failure.whole and at > NEAR_THE_CUT:
            break
        for stage in STAGES:
            places, kinds = _patterns(stage)
            if (
                (not stage.near or at <= stage.near)
                and places.search(f"{frame.file}:{frame.function}")
                and (kinds is None or kinds.search(failure.kind))
                and not (stage.cause in (Cause.CHECKPOINT, Cause.DATA) and elsewhere)
            ):
                sets = refused is not None and stage.cause in (Cause.CHECKPOINT, Cause.DATA)
                return refused if sets and not READ.search(failure.message) else (stage.cause, stage.says)
    if failure.kind == "RuntimeError" and SIZES.search(failure.message):
        return Cause.CONFIG, "the program rejected the configuration"
    if _in_imports(failure):
        return Cause.ENVIRONMENT, LOADED
    if refused is not None:
        return refused
    if failure.kind in OF_LIBRARIES and any(LIBRARIES.search(frame.file) for frame in failure.frames[-1:]):
        return Cause.PROGRAM, "a library that the framework calls refused a call"
    if own and failure.kind == "NotImplementedError":
        return Cause.CONFIG, "the program does not implement what is asked of it"
    if failure.kind in OWN_CODE and any(map(of_framework, failure.frames[-NEAR_THE_END:])):
        return Cause.PROGRAM, "the program fails in its own code, on a value that it does not expect"
    return None


def _refused(failure: Failure, own: bool) -> tuple[Cause, str] | None:
    """The class of a check that is in no table: of a setting, if its message names one; None for any other failure."""
    nowhere = not any(frame.file for frame in failure.frames)
    if not (own or nowhere) or failure.kind not in CHECKED or OPERATOR.match(failure.message):
        return None
    sets = SETTINGS.search(failure.message) is not None
    if not sets and not (own and REFUSES.search(failure.message)):
        return None
    named = sets or NAMED.search(failure.message) is not None
    return Cause.CONFIG if named else Cause.PROGRAM, "a check of the program refused a value"


NEAR_THE_CUT = 6
"""The frames of an incomplete traceback that show the activity of the job: the next frame is unknown."""


def _walked(failure: Failure) -> tuple[Frame, ...]:
    """The frames of a traceback; of one that is cut off also the call that its last line makes."""
    last = failure.frames[-1:]
    if failure.whole or not last:
        return failure.frames
    # the end of a block of a context manager that is a generator: the line before opened it
    at = failure.frames[-2] if len(failure.frames) > 1 and last[0].source.startswith("next(self.gen") else last[0]
    name = called(at)
    return (*failure.frames, Frame("", 0, name)) if name else failure.frames


NEAR_THE_END = 3
"""The frames of a traceback that may be those of the part that failed: the last ones may be a library's."""


def _in_imports(failure: Failure) -> bool:
    """Whether a traceback ends where one module imports another."""
    modules = [frame for frame in failure.frames if frame.function == "<module>"]
    return len(modules) > 1 and any(frame.function == "<module>" for frame in failure.frames[-2:])
