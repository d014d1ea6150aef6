"""The messages of CUDA, cuBLAS, kernels of attention, CANN and MindSpore when a device or an operator refuses."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
OF_DEVICES: tuple[Signature, ...] = (
    Signature(
        "cublas", C.UNKNOWN,
        r"CUBLAS_STATUS_(?!ALLOC)\w+|cuBLAS Error:|cuBLAS API failed|cublasLt\w* (?:failed|error)"
        r"|Unable to find (?:any )?suitable (?:cuBLAS|algorithm)|HIPBLAS_STATUS_\w+",
        "cuBLAS rejected a matrix product",
        "check that driver, CUDA and torch are compatible and that only one copy of cuBLAS is on the path; a full "
        "device memory or an earlier index out of bounds can also cause this",
    ),
    Signature(
        "device-runtime", C.ENVIRONMENT,
        r"CUDA error(?: \(.{1,200}\))?: (?:peer access|invalid device (?:function|context)"
        r"|mapping of|CUDA-capable device|API call is not supported)",
        "the device's runtime rejected a call",
        "check the topology of the devices (peer access), the driver, and that the libraries were built for this "
        "device",
    ),
    Signature(
        "cuda-call", C.UNKNOWN,
        r"CUDA error(?: \(.{1,200}\))?: (?:invalid (?:argument|configuration|resource handle"
        r"|memory|program counter)|too many resources|the launch timed out|an illegal instruction|hardware stack"
        r"|context is destroyed|driver shutting down|unspecified launch failure)"
        r"|[Cc]uda failure \d|Cuda failure '|CUDA driver error|cudaError[A-Z]\w+|HIP error:|cudaError error: \d"
        r"|unspecified launch failure|HSA_STATUS_ERROR_(?!OUT_OF_RES)\w+|\bXid\b.{0,60}: (?:13|43|45)\b",
        "a device runtime call was rejected",
        "CUDA_LAUNCH_BLOCKING=1 names the operator; after that, check the driver, the device topology (peer access) "
        "and libraries built for other versions",
    ),
    Signature(
        "graph-capture", C.CONFIG,
        r"not permitted when stream is capturing|during capture|would make the legacy stream depend on a capturing"
        r"|cudaErrorStreamCapture|[Cc]apture cuda graph failed|[Cc]annot (?:be )?capture[d]? .{0,60}graph",
        "capturing a CUDA graph failed",
        "run without CUDA graphs (--cuda-graph-impl none, enforce_eager), or without the option whose operation waits "
        "for the device",
    ),
    Signature(
        "attention-kernel", C.CONFIG,
        r"FlashAttention.{0,60}(?:only support|does not support|head dim)|[Ff]lash[_ ]?[Aa]tt\w*.{0,60}not supported"
        r"|Expected is_sm\w{1,40} to be true|No available kernel\. +Aborting|No viable (?:attention|backend)",
        "no attention kernel supports this device, precision or head size",
        "use bf16 or fp16, a head size that the kernel supports, a device of the Ampere generation or newer, or "
        "another --attention-backend",
        weak=True,
    ),
    Signature(
        "compiler-of-operators", C.UNKNOWN,
        r"\[E[9AB][A-Z\d]\d{3}\] |\bTVMError\b|\bTBEException\b|exceed bound of memory: local\.",
        "CANN could not compile an operator for these shapes and types",
        "the message names the operator; try another shape or precision, or a newer version of CANN; otherwise it is "
        "a defect or a limit of the operator",
        weak=True,
    ),
    Signature(
        "check-of-library", C.UNKNOWN,
        r"[\]:] +Check failed: |: Assertion [`'](?!.*thread: ).{1,200}' failed\.?$|\bAssertion failed: "
        r"|std::(?:length_error|out_of_range|runtime_error|logic_error)",
        "a check in a C++ library failed",
        "the message names the condition, and often the file; search the library's issues for it, and install "
        "versions that were built together",
        weak=True,
    ),
    Signature(
        "c++", C.ENVIRONMENT,
        r"basic_string::_M_\w+|vector::_M_\w+"
        r"|free\(\): invalid|double free|corrupted (?:size|double|unsorted)|malloc\(\): |stack smashing"
        r"|Fatal Python error: (?:Bus error|Illegal)|[Ii]llegal instruction|SIGILL|Floating point exc"
        r"|^LLVM ERROR"
        r"|^pure virtual method called|^terminate called without an active exception",
        "a C++ library failed",
        "libraries that were built for another version of torch, Python or the device are the usual cause, so "
        "rebuild them, or use an image in which everything was built together",
        weak=True,
    ),
    Signature(
        "kernel-resources", C.PROGRAM,
        r"OutOfResources\b|out of resource: shared memory",
        "a Triton kernel needs more shared memory or registers than this device has",
        "use a version of the library that has settings for this device, or smaller blocks and fewer stages of the "
        "kernel",
    ),
    Signature(
        "arguments-of-operator", C.PROGRAM,
        r"'errCode': 'E[5-8]\d{4}'|\bIn op(?:\[\w{1,80}\])?, the (?:parameter|shape|num|format|dtype|data)"
        r"|\bE[5-8]\d{4}: {1,4}In op\b",
        "CANN's compiler rejects a value, a shape or a type that an operator gets",
        "the message names the operator and its parameter; the network's stack trace names the line in the model",
    ),
    Signature(
        "operator-of-cann", C.ENVIRONMENT,
        r"does not has? any binary|call aclnn\w+ failed|aclnn\w+ failed|aclnnStatus|error code is [135]61\d{3}"
        r"|aclnn\w+ not in lib\w+\.so"
        r"|\bERR0\d007 (?:OPS|PTA|GRAPH)|setup failed!$|Select kernel failed|No kernel (?:is )?registered"
        r"|Unsupported op \[|[Oo]p(?:erator)? \S{1,40} (?:is )?not (?:supported|implemented) (?:on|for) (?:Ascend|npu)"
        r"|Could not run '\S+' with arguments from the '\S+' backend|Load op info form json",
        "a CANN operator is not available for this device, or rejects its arguments",
        "install compatible versions of CANN and its kernel package, nnal, the driver and torch_npu or MindSpore; "
        "if they are compatible, check the shapes and types in the lines below the message",
    ),
    Signature(
        "error-of-cann", C.UNKNOWN,
        r"\bE[ZB-H]\d{4}: |\bE[1-9]\d{4}: ",
        "CANN reports an error of an operator or of its compiler",
        "read the lines below the message, and the device log (plog)",
        weak=True,
    ),
    Signature(
        "other-call", C.UNKNOWN,
        r"\b(?:CUDA|HIP|MUSA)(?: driver| runtime)? error(?: \(\d+\))?: |Triton Error \[",
        "a device runtime call was rejected",
        "the driver, the runtime's libraries and torch must be compatible; CUDA_LAUNCH_BLOCKING=1 names the "
        "operator",
        weak=True,
    ),
    Signature(
        "mindspore-strategy", C.CONFIG,
        r"can ?not be split by (?:the )?strategy|[Ss]trategy (?:is )?(?:invalid|not valid)"
        r"|Failure:operator .{0,80}init failed"
        r"|The strategy .{0,80}(?:shape|dim)"
        r"|parallel strategy .{0,60}(?:fail|invalid)|shard strategy",
        "MindSpore cannot split an operator as the parallel configuration requires",
        "compare data_parallel × model_parallel × pipeline_stage with the heads, the vocabulary, the batch and the "
        "sequence length",
        weak=True,
    ),
)  # fmt: skip
"""Texts of devices and their operators, without those of memory and of devices that failed."""
