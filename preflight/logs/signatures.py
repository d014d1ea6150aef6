"""Messages of other libraries and of the system when a job dies, and their meaning: torch, NCCL, CANN, Transformer
Engine, apex, flash-attn, MindSpore, Hugging Face, Slurm, the kernel."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from preflight.logs.ascend import ENVELOPES, OF_ASCEND, OUT_OF_MEMORY
from preflight.logs.cascading_failures import OF_COMMUNICATION
from preflight.logs.cause_types import Cause, Signature
from preflight.logs.checkpoint_errors import OF_CHECKPOINTS
from preflight.logs.exception_signatures import OF_PYTHON
from preflight.logs.pattern_prefilter import Anchors, anchors, branches
from preflight.logs.process_exits import OF_EXITS, OF_HOSTS
from preflight.logs.ray_and_inference_errors import OF_ENGINES
from preflight.logs.refused_device_calls import OF_DEVICES

C = Cause
SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "cuda-out-of-memory", C.MEMORY,
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|(?i:cuda error): out of memory|\bCUDA OOM\b"
        r"|torch\.(?:cuda\.)?OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED"
        r"|[Cc]uda failure 2\b|Cuda failure 'out of memory'|cudaErrorMemoryAllocation|HIP out of memory"
        r"|RayTaskError: \(OutOfMemoryError\)",
        "the device ran out of memory",
        "compare with `preflight memory`; a smaller micro batch, more recomputation or more model parallelism "
        "needs less memory",
    ),
    Signature(
        "npu-out-of-memory", C.MEMORY,
        r"NPU out of memory|Failed to allocate memory.*(?:NPU|aclrtMalloc)|aclrtMallocAlign32.*failed|"
        + OUT_OF_MEMORY,
        "the NPU ran out of memory",
        "compare with `preflight memory`; a smaller micro batch, more recomputation or more model parallelism "
        "needs less memory",
    ),
    Signature(
        "mindspore-out-of-memory", C.MEMORY,
        r"Memory not enough|Out of Memory!!!|Allocate memory failed|Device\(id:\d+\) memory isn't enough"
        r"|Malloc for kernel .* failed|is more than total mem size",
        "MindSpore ran out of device memory",
        "compare with `preflight memory`; `max_device_memory` must leave room for HCCL",
    ),
    *OF_ASCEND,
    Signature(
        "copy-of-optimizer-state", C.MEMORY,
        r"^state_dict = deepcopy\(state_dict\)$",
        "the run died where optimizer states are copied while a checkpoint is loaded, which needs twice their memory",
        "load on as many devices as the run was saved on, or with a distributed checkpoint",
        weak=True,
    ),
    *OF_HOSTS,
    Signature(
        "host-out-of-memory", C.HOST_MEMORY,
        r"oom[-_]kill|Out of memory: Kill(?:ed)? process|Killed process \d+|main process disappeared"
        r"|(?<![A-Z_])OUT_OF_MEMORY|OOMKilled"
        r"|DefaultCPUAllocator: can't allocate memory|Cannot allocate memory|^MemoryError\b|exceeded.*memory limit"
        r"|Detected \d+ oom[-_]kill|slurmstepd.*[Oo]ut [Oo]f [Mm]emory|due to memory pressure|\(OOM\)"
        r"|running low on memory|exceeds the memory usage threshold|RayOutOfMemoryError|std::bad_alloc"
        r"|ArrayMemoryError|Unable to allocate [\d.]+ [KMGT]iB for an array|cudaHostAlloc failed"
        r"|Out of memory\. Memory malloc failed",
        "the host ran out of memory, or reached a memory limit",
        "the node's memory is exhausted, not the device's, so use fewer data loader workers, and do not let every "
        "process read a whole checkpoint",
    ),
    Signature(
        "shared-memory", C.ENVIRONMENT,
        r"insufficient shared memory|unable to (?:open|mmap|write).*shared memory|/dev/shm.*No space"
        r"|posix_fallocate failed|creating shared memory segment|failed to extend /dev/shm",
        "the shared memory of the container is too small",
        "start the container with a larger --shm-size or --ipc=host, or use fewer data loader workers",
    ),
    Signature(
        "bus-error", C.ENVIRONMENT,
        r"[Bb]us error|SIGBUS|[Ss]ignal 7\b|return code = -7\b|exitcode *: -7\b|exit code:? (?:135|-7)\b",
        "a process ended with a bus error, because memory that it had mapped could not be provided",
        "most often, the shared memory of the container is too small, so use a larger --shm-size or --ipc=host, or "
        "fewer data loader workers; a full disk under a mapped file and failing memory have the same symptom",
    ),
    Signature(
        "disk-full", C.ENVIRONMENT,
        r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]",
        "a disk is full, or a quota is used up",
        "free up space where checkpoints, caches or logs are written; inodes also count",
    ),
    Signature(
        "file-not-written", C.ENVIRONMENT,
        r"file write failed.*PytorchStreamWriter|unexpected pos \d+ vs \d+|enforce fail at inline_container\.cc",
        "a file of torch could not be written or read",
        (
            "a full disk or an exhausted quota is the usual cause; a file system that was lost while the file was "
            "open is another"
        ),
    ),
    Signature(
        "permission", C.ENVIRONMENT,
        r"PermissionError|Permission denied(?! \(publickey)|\[Errno 13\]|Read-only file system",
        "access to a file or a device is denied",
        "look at the owner and the permissions of the path that the message names",
    ),
    Signature(
        "too-many-files", C.ENVIRONMENT,
        r"Too many open files|\[Errno 24\]|received 0 items of ancdata|Resource temporarily unavailable"
        r"|can't start new thread",
        "the limit on open files, processes or threads is reached",
        "raise `ulimit -n` and `ulimit -u` in the job script",
    ),
    Signature(
        "port-in-use", C.ENVIRONMENT,
        r"Address already in use|EADDRINUSE|errno: 98|error code: -?98\b|EI0019"
        r"|The IP address and port have been bound|server socket has failed to listen"
        r"|listen on ip\[[^\]]{0,60}\] and specific port\[\d+\] fail",
        "the rendezvous port is in use",
        "use another MASTER_PORT, or end the job that still uses this port",
    ),
    Signature(
        "stale-lock", C.ENVIRONMENT,
        r"torch_extensions/\S* as PyTorch extensions root",
        "the log ends where an extension of PyTorch is built",
        "a killed build leaves a lock that other processes wait for, so remove the `lock` file below "
        "~/.cache/torch_extensions and start again",
        weak=True,
    ),
    Signature(
        "too-few-devices", C.ENVIRONMENT,
        r"invalid device ordinal|Invalid device ID|SetDevice failed|No CUDA GPUs are available|no NVIDIA driver"
        r"|DrvErr=87|Torch not compiled with CUDA|CUDA is not available|Torch not linked with support for"
        r"|Duplicate GPU detected|cuda runtime error \(101\)|CUDA driver version is insufficient"
        r"|all CUDA-capable devices are busy|device < num_gpus INTERNAL ASSERT"
        r"|error code is 107001|local_rank.*device_count|NPU device is not available|EE1001.*device",
        "a process does not get the device that it requests",
        "start as many processes per node as there are visible devices: --nproc-per-node, CUDA_VISIBLE_DEVICES, "
        "ASCEND_RT_VISIBLE_DEVICES",
    ),
    Signature(
        "no-kernel-image", C.ENVIRONMENT,
        r"no kernel image is available|PTX was compiled with an unsupported|unsupported gpu architecture"
        r"|is not compatible with the current PyTorch",
        "a library was built for other devices",
        "build it for this device, or use an image in which it was built for this device",
    ),
    Signature(
        "missing-library", C.ENVIRONMENT,
        r"cannot open shared object file|package doesn't have \w+ built in|(?:was )?not (?:compiled|built) with"
        r"|undefined symbol|version `\w+_[\d.]+' not found|libatb\.so"
        r"|libascend\w*\.so.*not found|DLL load failed|^Loading lib\w+\.so failed"
        r"|CUDNN_STATUS_\w{0,40}(?:SUBLIBRARY|VERSION_MISMATCH|ARCH_MISMATCH|PREREQUISITE)",
        "a library is missing, has the wrong version, or was built without a required part",
        "set up the environment before the start (set_env.sh of CANN and nnal), and use versions that were built "
        "together",
    ),
    Signature(
        "missing-module", C.ENVIRONMENT,
        r"ModuleNotFoundError|No module named|ImportError|cannot import name|(?:TransformerEngine"
        r"|Transformer Engine|apex|flash[-_]attn) "
        r"(?:is not|not|must be) (?:available|installed|found)|Please install (?:apex|transformer|flash)"
        r"|requires? .* to be installed|\bnot installed\. Please (?:run|install)"
        r"|custom CUDA extension \w{1,60} module is not found",
        "a package, or a name in it, could not be imported",
        "in the job's environment, install the version that this framework release requires",
    ),
    Signature(
        "import-failed", C.ENVIRONMENT,
        r"Failed to import \S+ because of the following error|Error importing (?:module|plugin)",
        "a package cannot be imported",
        "the lines below the message name the incompatible package or library",
        weak=True,
    ),
    Signature(
        "no-transformer-engine", C.ENVIRONMENT,
        r"custom_layers\.transformer_engine import"
        r"|^transformer_layer_spec = get_gpt_layer_with_transformer_engine_spec",
        "it died where Transformer Engine is loaded",
        "install it, or choose --transformer-impl local",
        weak=True,
    ),
    Signature(
        "compiler-of-kernels", C.ENVIRONMENT,
        r"\b\d+ active drivers \(\[|triton\.compiler\.errors|triton\.runtime\.errors(?!\.OutOf)"
        r"|\(CompilationError\)|PTXASError"
        r"|Triton Error \[\w+\]: device kernel image|libcuda\.so cannot found|\bptxas\S{0,20} (?:fatal"
        r"|\S{0,200}, line \d|.{0,40}failed)"
        r"|Triton PTX codegen error|KeyError: \('\d-\.-\d-\.-\d-"
        r"|Command '\['(?:[^']*/)?(?:ptxas|nvcc|hipcc|gcc|g\+\+|clang|cc|c\+\+|ccec|bisheng\S*)'",
        "a kernel could not be compiled or loaded",
        "install compatible versions of Triton, torch and the driver, a compiler on the node, and triton-ascend on "
        "NPUs",
    ),
    Signature(
        "torch-compile", C.PROGRAM,
        r"_inductor\.exc\.|_dynamo\.exc\.|InductorError",
        "torch.compile could not trace or compile a part of the program",
        "run without torch.compile first; then check the compiler on the node, compatible versions of torch and "
        "Triton, and the operation that the message names",
    ),
    Signature(
        "build", C.ENVIRONMENT,
        r"Error building extension|Failed to compile the C\+\+|ninja: build stopped|nvcc fatal"
        r"|Command '\['(?:[^']*/)?ninja'"
        r"|fatal error: \S+\.h: No such|CUDA_HOME environment variable is not set"
        r"|detected CUDA version .{0,40}mismatches|Unknown CUDA arch",
        "an extension could not be compiled on the job's machine",
        "install a compiler and the headers of Python and of CUDA or CANN on the node, or use an image that "
        "contains the compiled extension",
    ),
    Signature(
        "precision", C.PROGRAM,
        r"must have the same dtype|expected scalar type \w+ but found|expected \w+ and \w+ to have the same dtype"
        r"|not implemented for '(?:Half|BFloat16|Float8\w*|Double)'",
        "an operation does not support the precision of its tensors, or gets tensors of two precisions",
        "compare the precision of the run with that of the weights it loads, and of parts that are frozen or added",
        weak=True,
    ),
    Signature(
        "cudnn", C.UNKNOWN,
        r"CUDNN_STATUS_(?!ALLOC)\w+|ptrDesc->finalize|c[uU]DNN [eE]rror|unable to find an engine to execute"
        r"|No valid (?:engine configs|execution plans)",
        "cuDNN rejected an operation",
        "torch, cuDNN and the packages built on them must have compatible versions; full device memory can also "
        "cause this",
    ),
    Signature(
        "main-gradient", C.CONFIG,
        r"has no attribute 'main_grad'|gradient accumulation fusion (?:is|requires|but)",
        "a parameter has no `main_grad` buffer for its gradient",
        "gradient accumulation in a fused kernel needs the buffer, so use --no-gradient-accumulation-fusion, or a "
        "data-parallel wrapper that creates the buffers",
    ),
    Signature(
        "transformer-engine", C.CONFIG,
        r"FP8 execution|Float8\w* requires|[Nn]o dot product attention (?:support|backend)",
        "Transformer Engine does not support this precision, these sizes or this kind of attention",
        "use sizes that its kernels support (multiples of 16 for FP8), another --fp8-recipe or --attention-backend, "
        "or a newer version",
        weak=True,
    ),
    Signature(
        "argument-of-model", C.PROGRAM,
        r"TypeError: (?:\w{1,60}(?:For[A-Z]\w{1,60}|Model)\.|lce_)forward\(\) got an unexpected keyword",
        "the model receives an argument that its `forward` does not accept",
        "a column of the data set, an option of another model, or incompatible versions of the model's code and the "
        "trainer are possible causes; the frames show which part passes the argument",
        weak=True,
    ),
    Signature(
        "arguments-differ", C.ENVIRONMENT,
        r"TypeError: \S*\(\) (?:got an unexpected keyword|missing \d+ required|got multiple values)"
        r"|[Uu]nexpected keyword argument '|keyword argument '?\w+'? is not recognized"
        r"|AttributeError: (?:partially initialized )?module \S+ has no attribute"
        r"|takes \d+ positional arguments? but \d+|\w\(\) takes no arguments",
        "a part of the program uses a name or arguments that another part does not have",
        "usually, the versions of two parts differ, so install compatible versions; a configuration saved by an "
        "older version is another possible cause",
    ),
    *OF_CHECKPOINTS,
    Signature(
        "hugging-face", C.ENVIRONMENT,
        r"huggingface_hub\.|HfHubHTTPError|LocalEntryNotFoundError|RepositoryNotFoundError|HFValidationError"
        r"|couldn't connect to 'https://huggingface"
        r"|Can't load (?:tokenizer|the configuration|config)|We couldn't connect|OfflineModeIsEnabled"
        r"|does not appear to have a file named|modelscope\.hub\.errors|gated repo|40[134] Client Error"
        r"|is not a valid model identifier|Incorrect path_or_model_id|[Rr]epo id must",
        "a file of a model, a tokenizer or a dataset is not available",
        "download it before the job and name its folder, because nodes often have no network",
    ),
    *OF_ENGINES,
    Signature(
        "data-index", C.DATA,
        r"INDEX_HEADER|doesn't match expected format"
        r"|bad header, expected|Dataset does not exist"
        r"|One or both of the \.idx and \.bin files|\.idx['\"]? (?:and|or)"
        r"|Index file doesn't match"
        r"|document_indices\[-1\]|sequence_lengths\.shape\[0\]",
        "the indexed dataset is missing, or its index is broken",
        "--data-path takes the prefix of a .idx and a .bin file; write the merged or copied pair again",
    ),
    Signature(
        "index-read", C.DATA,
        r"reading document index\.\.\.|self\.sizes\.shape|indexed_dataset\.sizes",
        "it died while the index of a dataset was read",
        "--data-path takes the prefix of a .idx and a .bin file; write the merged or copied pair again",
        weak=True,
    ),
    Signature(
        "index-cache", C.DATA,
        r"(?:FileNotFoundError|No such file).*(?:_(?:doc|sample|shuffle)_idx|-(?:document|sample|shuffle)_index)\.npy",
        "the index of a dataset, which one rank builds, is missing for another",
        "the cache (--data-cache-path, by default next to the data) must be on a file system that all nodes share; on "
        "a single node, the rank that builds the cache may have died first, so read its log",
    ),
    Signature(
        "no-data", C.DATA,
        r"(?:FileNotFoundError|No such file)(?!.*(?:config|token|index|metadata)\w{0,40}\.json).*\.(?:idx|bin|jsonl?"
        r"|parquet|mindrecord|arrow|npy)\b"
        r"|_document not exists|[Dd]ataset \S+ (?:not exists|does not exist)|dataset.*out of range",
        "the data is missing, or has an unexpected format",
        "--data-path takes the prefix of preprocessed files; remove the half-written index of a killed job",
    ),
    Signature(
        "uneven-samples", C.DATA,
        r"stack expects each tensor to be equal size|expected sequence of length \d+ at dim",
        "the samples of a batch have different sizes",
        "pad, truncate or pack the samples to the same length, or use a collator that does so",
    ),
    Signature(
        "too-little-data", C.DATA,
        r"last[- _]epoch number of samples|exceeds num_sequences_per_epoch",
        "the data set is too small for the sequence length, or for the number of samples that the run requires",
        "`preflight check --site` shows how many tokens and samples each split has; use more data, fewer iterations "
        "or another --split",
    ),
    Signature(
        "no-file", C.ENVIRONMENT,
        r"FileNotFoundError|No such file or directory|\[Errno 2\]|NotADirectoryError|IsADirectoryError",
        "a file or folder that the run names does not exist",
        "on the job's node, check the path in the message",
    ),
    Signature(
        "placeholders", C.DATA,
        r"masked_scatter_size_check|totalElements <= srcSize"
        r"|(?:[Ii]mage|[Vv]ideo|[Aa]udio) features and \w+ tokens do not"
        r"|[Nn]umber of placeholder|multimodal tokens? .* (?:mismatch|placeholders)"
        r"|[Nn]umber of (?:image|video|audio)s? .{0,60}(?:not|n't) match",
        "a sample has more or fewer placeholders for images, video or sound than features",
        "a sample that is truncated at the maximum length loses placeholders, so raise the maximum, or use smaller "
        "images",
    ),
    Signature(
        "token-out-of-bounds", C.DATA,
        r"srcIndex < srcSelectDimSize|t < n_classes|out of range in self",
        "an index is outside its table, so compare token ids with the vocabulary, and positions with the position "
        "table",
        "compare the tokenizer that made the data with that of the run, and the length of the samples with the "
        "positions of the model",
    ),
    Signature(
        "index-out-of-bounds", C.UNKNOWN,
        r"(?<!list )(?<!tuple )(?<!string )(?<!pop )index out of (?:bounds|range)"
        r"|device-side assert triggered|(?:Index|ScatterGather)Kernel\.cu.*Assertion",
        "a kernel rejected an index or a value",
        "CUDA_LAUNCH_BLOCKING=1 names the operator; in an embedding or a loss, compare the token ids with the "
        "vocabulary, and elsewhere, check the packing of samples and the masks",
        weak=True,
    ),
    Signature(
        "not-a-number", C.NUMERICS,
        r"[Ff]ound NaN|found (?:nan|inf)|NaN in local (?:forward )?(?:loss|grad)|[Uu]nexpected (?:NaN|Inf"
        r"|result nan)|returned nan values|Loss is (?:nan|NaN)"
        r"|found invalid values:\s*tensor\(\[+\s*nan"
        r"|loss scale.*(?:minimum|reached)|[Gg]rad norm is (?:nan|inf)",
        "the loss or a gradient is NaN or infinite",
        "check the batch data, the learning rate and the precision; the config alone does not show the cause",
    ),
    Signature(
        "event-timeout", C.COMMUNICATION,
        r"(?:event|notify) wait timeout|\((?:EVENT|NOTIFY)_WAIT\)",
        "a device waited for an event that did not occur, usually on another rank",
        (
            "the cause is on the missing rank, so read its log; if the work between steps is long, set a larger "
            "HCCL_EXEC_TIMEOUT"
        ),
    ),
    Signature(
        "driver", C.ENVIRONMENT,
        r"CUDA error: (?:operation not supported|unknown error|initialization error|system (?:not yet|has unsupported))"
        r"|driver on your system is too old|[Dd]river version is (?:too old|insufficient)"
        r"|cuInit.*failed|forward compatibility was attempted|nvmlInit\w* failed|Failed to initialize NVML",
        "the driver rejected a call",
        "the driver, the container runtime and torch must be compatible; a virtual device does not support everything",
    ),
    Signature(
        "device-fault", C.ENVIRONMENT,
        r"uncorrectable (?:NVLink|ECC)|\bXid\b(?!.{0,60}: (?:13|31|43|45)\b)|ECC error|NVLink.*error"
        r"|f(?:ell|allen) off the bus|Unable to determine the device handle"
        r"|GPU is lost|PCIe Bus Error|\bUCE\b|HBM.*(?:multi|error)",
        "a device failed",
        "check the node (dmesg, nvidia-smi -q, npu-smi), and run the job on another node",
    ),
    Signature(
        "memory-of-kernel", C.UNKNOWN,
        r"illegal memory access|Memory access fault by GPU|misaligned address"
        r"|\bXid\b.{0,60}: 31\b",
        "a kernel accessed memory outside its bounds",
        "CUDA_LAUNCH_BLOCKING=1 names the operator; check the indices and lengths that it gets, and whether a "
        "library was built for another version; if the failure stays on one node, test the device (dmesg, nvidia-smi "
        "-q)",
    ),
    *OF_DEVICES,
    Signature(
        "inner-error", C.UNKNOWN,
        r"\bEE9999\b",
        "CANN reports an internal error",
        "read the lines below the message, and the device log (plog)",
        weak=True,
    ),
    *OF_COMMUNICATION,
    *ENVELOPES,
    *OF_EXITS,
    Signature(
        "unknown-argument", C.CONFIG,
        r"unrecognized arguments|remaining_argv|the following arguments are required|invalid choice"
        r"|\bargument -\S+: (?:invalid \w+ value: |not allowed with|ignored explicit)"
        r"|ambiguous option|expected (?:one|at least one|\d+) arguments?"
        r"|got an unexpected keyword|Key '[\w.]+' is not in struct|Could not override",
        "the program does not accept an argument in this form",
        "`preflight check` names the intended option, or the option that this release no longer has",
    ),
    *OF_PYTHON,
)  # fmt: skip


GUESSES = "potential root causes"
"""Ray's message about every dead worker, which lists all possible causes."""


@cache
def _branches() -> tuple[tuple[Signature, str], ...]:
    return tuple((one, branch) for one in SIGNATURES for branch in branches(one.pattern))


@cache
def _anchors() -> Anchors:
    return anchors([pattern for _, pattern in _branches()])


@cache
def _compiled(at: int) -> re.Pattern[str]:
    return re.compile(_branches()[at][1])


@lru_cache(maxsize=1 << 12)
def signed(text: str) -> Signature | None:
    """The first signature that a text matches; None if there is none."""
    if not text:
        return None
    guessed = GUESSES in text
    for at in _anchors().candidates(text):
        one = _branches()[at][0]
        if (not guessed or one.id == "worker-died") and _compiled(at).search(text) is not None:
            return one
    return None
