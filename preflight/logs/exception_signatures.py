"""The exceptions of Python, torch and readers of files that show a defect of a program, or data that are none."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
DEFECT = (
    "it is a bug in this version, or the components have incompatible versions; search the framework's issues for the "
    "last line of the error"
)
OF_PYTHON: tuple[Signature, ...] = (
    Signature(
        "launcher-variable", C.ENVIRONMENT,
        r"KeyError: '(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_\w+|SLURM_\w+|CUDA_\w+|ASCEND_\w+|MS_\w+"
        r"|NODE_RANK|PET_\w+)'|environment variable \w+ expected, but not set"
        r"|Could not find '(?:RANK|LOCAL_RANK|WORLD_SIZE|MASTER_\w+)' in|\bRole name is invalid",
        "an environment variable of a launcher is not set",
        "start with torchrun, msrun or srun, which set the ranks, or set the variable where the job starts",
    ),
    Signature(
        "exists-already", C.ENVIRONMENT,
        r"FileExistsError(?!: \[Errno)",
        "a file or folder that the program wants to create already exists",
        "the message names the file or folder; choose another name for this run, or remove what an earlier run left",
    ),
    Signature(
        "file-system", C.ENVIRONMENT,
        r"\[Errno (?:5|16|17|36|39|112|116|121)\]|Input/output error|Stale file handle|(?:Remote )?I/O error"
        r"|Transport endpoint is not connected|Directory not empty|FileExistsError|Device or resource busy",
        "the file system rejected the operation, or several processes create the same file",
        "check the path in the message: it may be on a network file system under load, or a folder that every rank "
        "creates",
    ),
    Signature(
        "binary-of-other-version", C.ENVIRONMENT,
        r"numpy\.\w+ size changed|compiled using NumPy 1|_ARRAY_API not found|Descriptors cannot be created directly"
        r"|CUDA Setup failed|was compiled (?:with|against) .{0,60}(?:but|than)|failed to import on the worker"
        r"|command not found|Failed to find C compiler|cannot find -l\w+|[Nn]o module named",
        "a package is missing, or was built for a different version of an installed package",
        "reinstall compatible versions in the environment of every node",
    ),
    Signature(
        "version-refused", C.ENVIRONMENT,
        r"\bversion of .{1,40} (?:is|are) not compatible|[Pp]lease (?:use|install) a version (?:that|of)"
        r"|\b(?:requires?|needs?) (?:\w{1,20} )?[\w.-]{1,30} ?(?:>=|==)\s?v?(?!0\.0\b)\d+\.\d",
        "a different version of a package is required",
        "install the version that the message names",
    ),
    Signature(
        "data-reader", C.DATA,
        r"DatasetGenerationError|DataFilesNotFoundError|EmptyDatasetError|pyarrow\.lib\.\w+|ArrowInvalid|\bCastError"
        r"|Couldn't find (?:any data file|a dataset)|UnidentifiedImageError|cannot identify image file"
        r"|image file is truncated|DataLoader timed out"
        r"|Cannot find data file|Not able to read records|Dataset \S+ load failed|Couldn't find cache for"
        r"|deserialize thrift|DecordError|Invalid data found when processing"
        r"|No valid (?:data|sample)|dataset (?:is|was) empty|dataset length: 0\b|train_dataset: None$"
        r"|[Uu]nable to create tensor, you should probably activate|num_samples should be a positive integer"
        r"|is out of bounds for size 0\b",
        "the data cannot be read, or holds no samples",
        "check the file and line in the message; a truncated download and a Git LFS pointer have the same symptom",
    ),
    Signature(
        "no-json", C.DATA,
        r"UnicodeDecodeError|JSONDecodeError|Expecting value: line",
        "the text is not valid JSON, or has another encoding than its reader expects",
        "the frames show what was being read: a data file, a configuration, or the answer of a service; a truncated "
        "download and a Git LFS pointer have the same symptom",
    ),
    Signature(
        "composition", C.CONFIG,
        r"omegaconf\.errors|ConfigAttributeError|ConfigKeyError|MissingMandatoryValue|InterpolationKeyError"
        r"|ConfigCompositionException|MissingConfigException|LexerNoViableAlt|Error merging|yaml\.\w+\.\w+Error"
        r"|\b\d{1,6} validation errors? for|not used by the HfArgumentParser|Error parsing override|mismatched input '",
        "a configuration is rejected",
        "`preflight check` names the key and its line",
    ),
    Signature(
        "process-groups", C.PROGRAM,
        r"[Pp]rocess group has not been initialized|group is (?:not|ot|already) initialized"
        r"|initialize the default process group twice|is not part of (?:group|the process group)",
        "a part of the program uses process groups before they are created, or creates them twice",
        "check the launcher, that versions are compatible, and that only one copy of the framework is installed; "
        "otherwise, " + DEFECT,
        weak=True,
    ),
    Signature(
        "collectives-differ", C.UPSTREAM,
        r"[Dd]etected mismatch between collectives",
        "ranks called different collective operations",
        DEFECT,
    ),
    Signature(
        "not-a-probability", C.NUMERICS,
        r"probability tensor contains either|Current loss scale already at minimum"
        r"|contains? (?:NaN|nan)s? or (?:inf|Inf)",
        "a probability, the loss or a gradient is NaN or infinite",
        "check the loaded weights, the learning rate and the precision",
    ),
    Signature(
        "floating-point", C.NUMERICS,
        r"\bFloatingPointError\b",
        "a check of floating-point numbers failed",
        "compare the message with the loss scale and the gradient norms in the lines before it; "
        "check the batch data, the learning rate and the precision",
        weak=True,
    ),
    Signature(
        "autograd", C.PROGRAM,
        r"backward through the graph a second time|modified by an inplace operation|Cannot copy out of meta tensor"
        r"|to finish(?:ed)? reduction in the prior iteration|mark a variable ready only once"
        r"|does not require grad and does not have a grad_fn|leaf [Vv]ariable that requires grad"
        r"|all tensors to be on the same device|cannot be accessed from Triton|[Cc]an(?:not|'t) pickle"
        r"|Tensors must be CUDA and dense|No backend type associated with device|mixed torch\.Tensor and DTensor"
        r"|attempt has been made to start a new process|Tensors must be contiguous|tensors? (?:is|are) on (?:cpu|meta)"
        r"|[Oo]nly Tensors of floating point|devices must match",
        "the program uses tensors in a way that torch rejects",
        "recomputation, offloading, frozen parts and LoRA are the usual causes, so try without them; otherwise, "
        + DEFECT,
        weak=True,
    ),
    Signature(
        "sizes-of-tensors", C.PROGRAM,
        r"shape '.{0,80}' is invalid for input of size|[Ss]izes? of tensors? .{0,40}must (?:match|be)"
        r"|cannot reshape tensor of|For '(?:primitive\[)?\w+\]?', .{0,120}(?:dimension|shape)s? .{0,80}(?:must|should)"
        r"|mat1 and mat2 shapes"
        r"|[Tt]ensors must have same number of dimensions|split_with_sizes expects|expanded size of the tensor"
        r"|shape mismatch: |size mismatch, |must match the existing size|output with shape .{0,60} doesn't match"
        r"|[Ss]hape mismatch for|[Ss]hapes? (?:of|for) .{0,60}(?:mismatch|do(?:es)? not match)"
        r"|number of sizes provided|einsum\(\): |Expected input batch_size \(|Mismatch in shape: grad"
        r"|[Tt]arget size .{0,60}(?:must be the same as|different to the) input size"
        r"|Expected size for first two dimensions of batch2",
        "the sizes of two tensors do not match",
        "compare the sizes in the message with those of the model, the sequence and the batch: padding and packing of "
        "samples, the layout, and weights of another model are the usual causes",
        weak=True,
    ),
    Signature(
        "argument-not-there", C.ENVIRONMENT,
        r"AttributeError: 'Namespace' object has no attribute",
        "the program reads an argument that its parser does not have",
        "use parts of one version; an installed package with the same name as the checkout, a patched framework, or "
        "a script from another release is the usual cause",
    ),
    Signature(
        "name-not-there", C.PROGRAM,
        r"NameError: (?:global )?name|AttributeError: (?:type object )?'(?!NoneType|dict|list|tuple|str|int|float|bool"
        r"|Tensor)[\w.]+' (?:object )?has no attribute"
        r"|couldn't find attribute \w|AttributeError: '\w+' object has no attribute '_[a-z]",
        "the program uses a name that does not exist",
        "an optional package may be missing, parts may have different versions, or the code path may be untested, so "
        "search the framework's issues for the last line",
        weak=True,
    ),
    Signature(
        "own-code", C.PROGRAM,
        r"AttributeError: '\w+' object has no attribute|'\w+' object is not (?:subscriptable|iterable|callable)"
        r"|cannot unpack non-iterable|(?:too many|not enough) values to unpack|UnboundLocalError"
        r"|unsupported operand type|RecursionError|object cannot be interpreted as an integer",
        "the program fails in its own code on an unexpected value",
        DEFECT,
        weak=True,
    ),
)  # fmt: skip
"""Texts with the lowest priority: they show what failed, but rarely why."""
