"""Failures caused by the death of another process: in launchers, watchers and waiting processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.logs.ascend import WAITED
from preflight.logs.cause_types import Cause, Signature

C = Cause
OF_COMMUNICATION: tuple[Signature, ...] = (
    Signature(
        "communicator", C.COMMUNICATION,
        r"Invalid rank requested|hcclCommInitRootInfo|MPI_Init|MPI_ERRORS_ARE_FATAL|MPI_ABORT was invoked"
        r"|connectFullMesh failed|no socket interface found|Unable to find address for"
        r"|operator name is Hccl|HCCL function error|call hccl api failed|ERR02200|ncclInvalidUsage"
        r"|ncclUnhandledCudaError|EI(?:0009|0018)\b",
        "a communicator could not be created, or a call to it failed",
        "check the network interface (HCCL_SOCKET_IFNAME, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME), a firewall, or the "
        "rank table",
        weak=True,
    ),
    Signature(
        "collective-timeout", C.COMMUNICATION,
        r"[Ww]atchdog caught collective|watchdog got stuck|collective operation timeout|"
        + WAITED
        + r"|Notify register times out"
        r"|[Hh]eartbeat [Ll]ost|wait timeout|Timeout at NCCL|HCCL [Tt]ime ?out|SeqNum="
        r"|failure detected by watchdog|Some NCCL operations have failed|flight recorder dumps"
        r"|we are taking the entire process down|[Ww]ait (?:socket|links?) establish",
        "ranks waited for other ranks that had died, hung or fallen behind",
        "the cause is on the rank that did not respond, so read its log, or look up the IP/ID that EI0002 names",
        weak=True,
    ),
    Signature(
        "communication-failed", C.COMMUNICATION,
        r"NCCL Error \d|[HN]CCL error in: |NCCL error: (?:internal|invalid|unhandled|remote|unknown)"
        r"|Failed, NCCL error |nccl(?:Internal|System|Remote)Error"
        r"|unhandled (?:system|cuda) error|\bibv_\w+ failed|\bHccl[A-Z]\w+(?::|, error code| fail)|hccl comm fail"
        r"|NCCL WARN .{0,200}(?:[Ff]ail|timed out|[Tt]imeout|closed by remote|refused|[Uu]nreachable|[Ee]rror|abort"
        r"|No route)",
        "a call to the communication library failed",
        "NCCL_DEBUG=INFO or the device's log (plog) names the call; possible causes are the network cards and "
        "drivers, locked memory (`ulimit -l`), or another rank that died",
        weak=True,
    ),
    Signature(
        "worker-died", C.UNKNOWN,
        r"A worker died or was killed (?:while executing|by an unexpected)"
        r"|The actor is dead because its (?:worker process|node|owner) has died",
        "Ray reports that a worker died, but not the cause",
        "read that worker's own log (/tmp/ray/session_latest/logs/worker-*), and dmesg of its node",
        weak=True,
    ),
    Signature(
        "rendezvous", C.COMMUNICATION,
        r"RendezvousTimeoutError|RendezvousConnectionError|c10d store|failed to connect to.*(?:MASTER|store)"
        r"|client socket has (?:timed out|failed)"
        r"|Topology.*registered|init_process_group.*timed out|Timed out (?:initializing|waiting for clients)"
        r"|store->get\('[^']{1,40}'\) got error|is setting up NCCL communicator and retr"
        r"|DistStoreError|DistNetworkError|Stop_waiting response is expected|RuntimeError: Connection timed out"
        r"|\[c10d\] .{1,300}(?:timed out|likely a timeout)",
        "processes did not find each other, or lost the connection to the rendezvous store",
        "use the same MASTER_ADDR, MASTER_PORT and number of nodes on each node, a different rank for each node, and "
        "an open port",
        weak=True,
    ),
)  # fmt: skip
"""Messages of processes that wait for others, and of the libraries that they use."""
KINDS = frozenset(
    "ChildFailedError DistBackendError ActorDiedError ActorUnavailableError RayActorError WorkerCrashedError"
    " SignalException BrokenPipeError ConnectionResetError ConnectionAbortedError ConnectionRefusedError"
    " RendezvousConnectionError RendezvousClosedError KeyboardInterrupt CalledProcessError RayTaskError "
    "DistNetworkError"
    " ProcessRaisedException ProcessExitedException TaskUnschedulableError NodeDiedError OwnerDiedError "
    "TrainingFailedError EOFError EngineDeadError AsyncEngineDeadError HTTPStatusError".split()
)
"""Exceptions in processes that wait for, start or watch the process that died."""
MESSAGE = re.compile(
    r"\bNCCL (?:error|communicator was aborted|watchdog)|ncclRemoteError|ncclSystemError|[Ww]atchdog caught"
    r"|[Ww]atchdog (?:thread terminated|got stuck)|collective operation timeout|Last error:|remote process exited"
    r"|\bEI000[26]\b|\bEI0015\b|(?:error code is|result =) (?:1070(?:19|20)|5070(?:46|47|48))\b"
    r"|[Cc]onnection (?:reset|closed|refused)|Connect to host.*(?:failed|timed)|Broken pipe|[Ss]ocket [Tt]imeout"
    r"|got signal: ?15|Signal 15|SIGTERM|Sending process|Received \d+ death signal"
    r"|recvValue failed|sendBytes failed|TCPStore|wait timeout after|Timed out (?:initializing|waiting)"
    r"|failed \(exitcode|exitcode: |Root Cause \(first observed|The actor (?:died|is dead)|actor died unexpectedly"
    r"|DataLoader worker .* exited unexpectedly|returned non-zero exit status|leaked semaphore"
    r"|potential root causes|worker process has died|worker died or was killed"
    r"|exits with return code"
    r"|\btasks? [\d,-]{1,40}: (?:Exited|Killed|Terminated|Aborted)|Worker process \d+ exit"
    r"|Exited with exit code|Terminating (?:job|processes)"
    r"|STEP \d+.* CANCELLED|srun: Force Terminated"
    r"|failure detected by watchdog|Some NCCL operations have failed|flight recorder dumps|entire process down"
    r"|Timeout at NCCL|\bAborted\b.{0,40}\(core dumped\)"
    r"|client socket has (?:timed out|failed)|terminate called after throwing"
    r"|exitcode {1,8}: [1-9]\d* +\(pid|(?:mpirun|prterun) (?:noticed|detected)|returned a non-zero exit code"
    r"|\bCaught \w{1,60} in (?:DataLoader worker process|replica|pin memory thread)"
    r"|worker exits with exception|cheduler process \d+ exit"
    r"|taking ERR code|507048|Heartbeat Lost|HcclAllreduce failed|wait for notify|Fail to get rank table"
    r"|[Mm]onitor(?:ed)?Barrier|peer (?:down|closed)|Unhandled error \(suppress with|destroy_process_group"
    r"|CUDA error: unspecified launch failure.*ProcessGroup|Worker exited|Application abort"
    r"|in a background process|[Ss]ee (?:the )?(?:root cause|stack ?trace)|Failed core proc"
    r"|(?:[Ii]nspect|[Ss]ee|[Cc]heck) the (?:previous|earlier|above) (?:error|log|message|traceback)"
)
FUNCTIONS = frozenset({"_terminate_process_handler", "launch_agent", "_invoke_run_with_any_failed", "run_result"})
"""Functions of launchers in which such an exception ends."""
TEARDOWN = frozenset(
    "shutdown _shutdown __del__ close _close teardown _teardown cleanup _cleanup stop join kill terminate"
    " _exit_function _run_exitfuncs _shutdown_backend destroy_process_group destroy_model_parallel".split()
)
"""Functions that end a process: an exception in them follows what ended it."""
ENDS = re.compile(
    r"_?(?:shutdown|teardown|destroy|kill)_\w+|_?cleanup_(?:workers?|dist|process|group|engine|resource|actor|server)\w*"
)
"""Names of other functions that end processes, which other functions in turn are called by."""


def in_teardown(functions: Sequence[str]) -> bool:
    """Whether an exception was raised while a process ended, by the functions of its frames."""
    return bool(functions) and (functions[-1] in TEARDOWN or any(ENDS.fullmatch(name) for name in functions))


LAUNCHERS = re.compile(
    r"/bin/(?:torchrun|accelerate(?:-launch)?|deepspeed)$|torch/distributed/(?:run|launcher|elastic)\b"
)
"""The first file of a traceback of a launcher, which starts the training in other processes."""


def of_launcher(files: Iterable[str]) -> bool:
    """Whether a traceback through these files is that of a launcher, which ends with the first process that dies."""
    first = next((file for file in files if file and not file.startswith("<frozen")), "")
    return LAUNCHERS.search(first) is not None


STARTS = re.compile(r"Command '(?:\[')?(?:\S*/)?(?:ssh|pdsh|scp|docker|srun)\b")
"""A command that a launcher needs before any process of the job runs."""
BUILDS = re.compile(r"/(?:triton|_inductor|op_builder|setuptools|triton_ascend)/|cpp_extension\.py")
"""Files that start compilers. A command that fails in them has failed itself."""


def follows(kind: str, message: str, functions: Sequence[str] = (), files: Iterable[str] = ()) -> bool:
    """Whether a failure is caused by the death of another process."""
    if kind == "CalledProcessError" and (STARTS.match(message) or any(BUILDS.search(file) for file in files)):
        return False
    if kind in KINDS or FUNCTIONS.intersection(functions[-1:]) or in_teardown(functions):
        return True
    return MESSAGE.search(f"{kind}: {message[:2000]}") is not None
