"""The codes of CANN's runtime and of HCCL, with their documented meaning."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
RUNTIME = r"(?:error code is|error code:|ret(?:urn)?[ _]?code:?|runtime result(?: =)?|ErrCode=|errorCode=|ret=)\s?"
"""The text before a runtime error code in messages of torch_npu, CANN and MindSpore."""


def _codes(numbers: str) -> str:
    return rf"{RUNTIME}(?:{numbers})\b"


OUT_OF_MEMORY = _codes("20[07]001|200000|207018|245000") + r"|\bEI0011\b|\bE[LE]0004\b"
WAITED = _codes("1070(?:19|20)|5070(?:46|47|48)") + r"|\bEI000[26]\b|\bEI0015\b|\bEE1002\b|Stream synchronize timeout"
"""Codes of a device that waited too long for another one."""
OF_ASCEND: tuple[Signature, ...] = (
    Signature(
        "hccl-environment", C.ENVIRONMENT,
        r"\bEI00(?:01|16)\b",
        "an HCCL environment variable has a value that HCCL does not accept",
        "the line names the variable; correct it in the script that starts the job, on all nodes",
    ),
    Signature(
        "rank-table", C.ENVIRONMENT,
        r"\bEI00(?:04|14|17)\b|Fail to get rank table|rank table .{0,40}(?:invalid|not exist)",
        "the rank table is missing, or does not match the devices of the nodes",
        "RANK_TABLE_FILE must describe the nodes and devices of this job; or start without one if the launcher does "
        "not need it",
    ),
    Signature(
        "hccl-version", C.ENVIRONMENT,
        r"\bEI0008\b|CANN versions are inconsistent|HCCL versions are inconsistent",
        "the nodes have different versions of CANN or HCCL",
        "install the same version of CANN on all nodes",
    ),
    Signature(
        "last-job-runs", C.ENVIRONMENT,
        r"\bEJ000[13]\b",
        "HCCL's process on the device cannot start, because the last job is still running or the port is in use",
        "end the processes of the last job (npu-smi info), wait ten seconds and start again",
    ),
    Signature(
        "ranks-disagree", C.UPSTREAM,
        r"\bEI000[35]\b",
        "the ranks call a collective operation with different or invalid arguments",
        "compare the scripts, arguments and data of the ranks that the message names",
    ),
    Signature(
        "hccl-resources", C.MEMORY,
        r"\bEI0007\b",
        "HCCL could not allocate memory or a notification register",
        "leave more device memory to HCCL, create fewer communicators, or set a smaller HCCL_BUFFSIZE",
    ),
    Signature(
        "npu-link", C.COMMUNICATION,
        r"\bEI00(?:10|12|13)\b|\bEJ000[24]\b|" + _codes("5070(?:13|56|57)"),
        "the link between two devices failed, or the process at its other end ended",
        "look for the first rank that ended; if there is none, test the link (hccn_tool, npu-smi) between the devices "
        "that the message names",
        weak=True,
    ),
    Signature(
        "npu-core", C.UNKNOWN,
        _codes("5070(?:15|16|18|35|36|42|43|44|45|49|50|53|54|55)|507900")
        + r"|vector core execution is abnormal"
        r"|[Aa][Ii][ -]?[Cc](?:ore|pu|PU)\b.{0,60}(?:exception|execut\w+ fail|abnormal)"
        r"|[Aa][Ii][ -]?[Cc]ore error,"
        r"|EZ9999.*AICore|aicore (?:execution|exception)|AICPU execution|aicpu exception"
        r"|\bE39999\b.{0,400}(?:exception|fail)",
        "a kernel on the device failed",
        "the cause is an out-of-range address, a device fault or a defect of the operator, which "
        "ASCEND_LAUNCH_BLOCKING=1 names; if the failure stays on one node, test the device (npu-smi, dmesg)",
    ),
    Signature(
        "npu-kernel-timeout", C.UNKNOWN,
        _codes("5070(?:12|14|17|34)"),
        "a kernel on the device did not end in time",
        "ASCEND_LAUNCH_BLOCKING=1 names the operator; test the device if the failure is always on the same node",
    ),
    Signature(
        "npu-setup", C.ENVIRONMENT,
        _codes("107002|20000[26]|2070(?:00|04|06)|507008|507009|507010|507033|507899|507901"),
        "the driver or the device rejects the process: no such device, no permission, a lost heartbeat, or another "
        "chip",
        "check npu-smi info on the node, ASCEND_RT_VISIBLE_DEVICES, and that driver, firmware and CANN have "
        "compatible versions",
    ),
    Signature(
        "npu-streams", C.ENVIRONMENT,
        _codes("2070(?:05|07|08|09|10|11|12)|507002"),
        "the streams, events or notifications of the device are used up",
        "use fewer communicators and parallel streams, or end another process that uses the device",
    ),
    Signature(
        "npu-arguments", C.PROGRAM,
        _codes("107000|1070(?:03|04|05|08|16|17|18)|5070(?:24|27|28|31|32)"),
        "CANN's runtime rejected an argument of a call",
        "install compatible versions of torch_npu, MindSpore and CANN; otherwise it is a defect of the calling "
        "library",
    ),
)  # fmt: skip
"""Codes with one meaning: those of HCCL (EI, EJ) and of the runtime (six digits)."""
ENVELOPES: tuple[Signature, ...] = (
    Signature(
        "npu-graph", C.UNKNOWN,
        _codes("507011|507023|5450\\d\\d|545\\d\\d\\d|1343225860"),
        "a graph could not be loaded or executed on the device",
        "the line that follows, or the device log (plog), names the operator",
        weak=True,
    ),
    Signature(
        "call-of-npu", C.UNKNOWN,
        r"\bERR0[0-4](?:\d{3}) (?:PTA|OPS|DIST|GRAPH|PROF)|NPU function error|OPS function error|\[Error\]: \S",
        "torch_npu reports that a CANN call failed",
        "the lines below the message, or the device log (plog), contain CANN's error code",
        weak=True,
    ),
    Signature(
        "mindspore-device", C.UNKNOWN,
        r"Launch kernel failed|(?:[Ee]xec\w*|[Rr]un|[Ll]aunch|[Cc]ompile|[Ss]ync\w*|[Pp]reprocess) ?(?:task for )?"
        r"(?:graph|stream|task|kernel)\S* ?(?:failed|error)|[Pp]reprocess failed before run graph|load task fail"
        r"|The pointer ?\[\w+\] is null|kernel runtime initialization failed|run task error|[Ss]ingle op compile failed"
        r"|Ascend error occurred",
        "MindSpore reports that a call to the device failed",
        "'Ascend Error Message' below it, or the log of the device (plog), names the operator",
        weak=True,
    ),
    Signature(
        "mindspore-cluster", C.COMMUNICATION,
        r"Init (?:hccl|collective)\w* .{0,40}fail|Failed to (?:connect|register) .{0,60}(?:scheduler|meta server)"
        r"|[Tt]opology .{0,40}(?:timed out|timeout)|number of timed out nodes?"
        r"|[Cc]reate (?:hccl |communication )?group .{0,40}fail",
        "MindSpore's processes could not connect to each other or create a group",
        "check that all nodes have the same scheduler address and port, that all workers have started, and that the "
        "device network works",
        weak=True,
    ),
    Signature(
        "mindspore-data", C.DATA,
        r"Exception thrown from (?:user defined |dataset |PyFunc)|map operation: \[\w+\] failed"
        r"|GetNext (?:time ?out|error)"
        r"|File ?: .{0,40}minddata/",
        "MindSpore's data pipeline failed",
        "the line names the file or the operation; with dataset_sink_mode: False, the original exception is shown",
        weak=True,
    ),
)  # fmt: skip
"""Messages that wrap another one, which has the reason."""
