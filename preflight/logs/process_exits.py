"""How a process ended: signals, exit codes, and the messages of Slurm, Kubernetes, MPI and msrun about it."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
OF_EXITS: tuple[Signature, ...] = (
    Signature(
        "time-limit", C.STOPPED,
        r"DUE TO TIME LIMIT|exceeded the time limit|PREEMPTED|DUE TO PREEMPTION|DUE TO NODE FAILURE|NODE_FAIL"
        r"|scancel|DUE TO JOB REQUEUE|active on the node longer than the specified deadline"
        r"|reason: DeadlineExceeded|\bDeleting pod due to taint|TaintManagerEviction",
        "the scheduler ended the job",
        "the job's time limit, a preemption or a failed node is the cause, not the config",
    ),
    Signature(
        "hang-up", C.STOPPED,
        r"closing signal SIGHUP|got signal: 1\b|Received 1 death signal|\bSIGHUP\b.{0,40}(?:received|shutting)",
        "the session in which the launcher ran was closed",
        "start the job with a scheduler, in tmux or with nohup: the end of a terminal, of an SSH connection or of an "
        "interactive allocation ends the processes in it",
        weak=True,
    ),
    Signature(
        "evicted", C.STOPPED,
        r"[Rr]eason: {1,20}(?:Evicted|Preempt\w+)\b|The node had condition: \[\w+\]|\bpod (?:was )?evicted\b"
        r"|\bEvicted +pod/",
        "Kubernetes evicted the pod",
        "the pod's events (`kubectl describe pod`) name the resource that the node ran out of, or the pod with a "
        "higher priority",
        weak=True,
    ),
    Signature(
        "crash", C.UNKNOWN,
        r"Fatal Python error: Segmentation fault",
        "a library crashed",
        "the stack below the message shows the library; incompatible versions of torch, CUDA or CANN and extensions "
        "are the usual cause",
    ),
    Signature(
        "aborted", C.UNKNOWN,
        r"Fatal Python error: Aborted|SIGABRT|(?:exitcode *:|return code =|exit code:?) -6\b"
        r"|exit (?:code|status) 134\b|[Ss]ignal 6\b|[Ss]ignal: Aborted|killed by signal: Aborted"
        r"|\bAborted\b[^\n]{0,40}\(core dumped\)|^Aborted$",
        "a process aborted itself after an error",
        "read the lines before it: a failed check of a C++ library, memory that a library corrupted, or the NCCL "
        "watchdog after a timeout ends a process in this way",
        weak=True,
    ),
    Signature(
        "segmentation-fault", C.UNKNOWN,
        r"[Ss]egmentation fault|SIGSEGV|(?:exitcode *:|return code =|exit code:?) -(?:4|8|11)\b|[Ss]ignal 11\b"
        r"|core dumped|[Ss]ignal: Segmentation|\] Failing at address: 0x|Process received signal"
        r"|killed by signal: (?:Segmentation|Illegal|Floating)"
        r"|exit (?:code|status) 13[69]\b|<Signals\.SIG(?:ILL|FPE)"
        r"|^ *\d+ +0x[0-9a-f]{12,} \S.*\?\?\?:\d",
        "a library crashed",
        "the stack in the log or in the core file shows the library; incompatible versions of torch, CUDA or CANN "
        "and extensions are the usual cause",
        weak=True,
    ),
    Signature(
        "killed", C.HOST_MEMORY,
        r"killed by signal: Killed|exitcode *: -9\b|return code = -9\b|exit code:? -9\b|SIGKILL|[Ss]ignal 9\b"
        r"|exit (?:code|status) 137"
        r"|^\S*: line \d+: +\d+ Killed|^Killed$",
        "the kernel, the scheduler or a launcher killed a process, most often because the host ran out of memory",
        "look for oom-kill in dmesg and in the scheduler's record of the job",
        weak=True,
    ),
    Signature(
        "worker-of-msrun", C.UNKNOWN,
        r"Worker process \d+ exit\w* (?:with exception|abnormally)|There's worker exits with exception"
        r"|[Ss]cheduler process \d+ exit\w* with exception",
        "msrun reports that a worker ended, but not the cause",
        "read the logs of the workers (worker_N.log in the folder that --log_dir names)",
        weak=True,
    ),
    Signature(
        "task-ended", C.UNKNOWN,
        r"\btasks? [\d,-]{1,40}: (?:Exited with exit code [1-9]|Aborted|Terminated|Killed)"
        r"|srun: Force Terminated|mpirun (?:noticed that process|detected that one or more processes)"
        r"|^\s*exitcode {1,8}: [1-9]\d* \(pid: \d+\)"
        r"|prterun (?:noticed|detected) that|returned a non-zero exit code|STEP \d+\.\w+ ON \S+ CANCELLED AT",
        "the launcher reports that a task ended with an error, but not the cause",
        "read the log of the first task that ended: `srun --output=%t.log` or `torchrun --log-dir DIR --redirects 3` "
        "writes one log for each task",
        weak=True,
    ),
)  # fmt: skip
"""Texts about the end of a process. Most of them do not show its cause."""
OF_HOSTS: tuple[Signature, ...] = (
    Signature(
        "low-on-resource", C.HOST_MEMORY,
        r"low on resource: memory|node had condition: \[MemoryPressure\]|\bMemory on the node \(IP: ",
        "the node ran out of memory, and its agent ended the process or the pod",
        "request more memory for the pod or the job, use fewer data loader workers, and do not let every process "
        "read a whole checkpoint",
    ),
    Signature(
        "low-on-disk", C.ENVIRONMENT,
        r"low on resource: ephemeral-storage|node had condition: \[DiskPressure\]"
        r"|ephemeral local storage usage exceeds|local ephemeral storage usage exceeds",
        "the node's local disk is full, or the pod wrote more than its limit, and Kubernetes evicted the pod",
        "write checkpoints, caches and logs to a mounted volume, or request more ephemeral storage",
    ),
    Signature(
        "network-of-nccl", C.COMMUNICATION,
        r"NCCL WARN [^\n]{0,200}(?:No route to host|Network is unreachable)",
        "NCCL could not reach another node",
        "NCCL_SOCKET_IFNAME must select a network interface that connects the nodes; then check the firewall and the "
        "routes between the nodes",
        weak=True,
    ),
    Signature(
        "rdma-transfer", C.COMMUNICATION,
        r"got completion with error|Got completion from peer .{0,80}with (?:error|status)",
        "an RDMA transfer to another node failed",
        "look for the first process that ended; error or status 12 means that the other end did not answer; if no "
        "process ended, check the links and cards between the nodes (ibstat, ethtool -S)",
        weak=True,
    ),
    Signature(
        "network-of-mpi", C.COMMUNICATION,
        r"Failed to receive UCX worker address|Failed to resolve UCX endpoint|Open MPI failed to TCP connect"
        r"|unable to complete a TCP connection|btl_tcp_endpoint\.c.{0,200}failed",
        "the processes of MPI could not reach each other",
        "select a network interface that connects the nodes (--mca btl_tcp_if_include, UCX_NET_DEVICES), and check "
        "the firewall between the nodes",
        weak=True,
    ),
)  # fmt: skip
"""Texts about the nodes of a job and the network between them."""
