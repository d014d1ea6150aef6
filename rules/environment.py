"""Checks of environment variables, installed packages, and framework releases."""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule, schemas
from preflight.frontends.supported_front_ends import FRONT_ENDS
from preflight.job import OF_ENVIRONMENT, READ_AS_ANOTHER
from preflight.run.version_ranges import numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import nearest

SIZES = ("HCCL_BUFFSIZE", "NCCL_BUFFSIZE")
ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
OPTIONS = (
    "max_split_size_mb", "max_non_split_rounding_mb", "garbage_collection_threshold", "roundup_power2_divisions",
    "expandable_segments", "backend",
    "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "base_addr_aligned_kb",
    "pinned_num_register_threads", "pinned_use_background_threads", "pinned_reserve_segment_size_mb",
    "graph_capture_record_stream_reuse",
    "per_process_memory_fraction", "page_size", "segment_size_mb", "multi_stream_lazy_reclaim",
)  # fmt: skip


@rule(id="environment-value", severity=Severity.WARNING, reads=(OF_ENVIRONMENT,))
def environment_value(job: Job) -> Iterator[Finding]:
    """An environment variable of the launch has a value that the library reading it rejects or ignores.

    ## What it does
    Checks `HCCL_BUFFSIZE`, `NCCL_BUFFSIZE` and the allocator settings `PYTORCH_CUDA_ALLOC_CONF` and
    `PYTORCH_NPU_ALLOC_CONF` for values that are not numbers, options that the allocator does not know, and options that
    exclude each other.

    ## Why is this bad?
    PyTorch stops with "Unrecognized CachingAllocator option" at the first allocation; the Ascend allocator rejects
    `expandable_segments` together with `max_split_size_mb` or `garbage_collection_threshold`. HCCL rejects a buffer
    size that is not a number.

    ## Example
        export PYTORCH_NPU_ALLOC_CONF=expandable_segment:True
    Use instead:
        export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True

    ## References
    PyTorch, c10/cuda/CUDAAllocatorConfig.cpp, CUDAAllocatorConfig::parseArgs
    torch_npu, torch_npu/csrc/core/npu/NPUCachingAllocator.cpp, CachingAllocatorConfig::parseArgs
    """
    launch = job.documents[0].launch
    for name, word in (launch.environment if launch is not None else {}).items():
        if not word.text or word.maybe:
            continue
        if name in SIZES and not re.fullmatch(r"[0-9]+", word.text):
            yield Finding(Message("{name} is {text!r}, which is not a number", name=name, text=word.text), word.span)
        elif name in ALLOCATORS:
            for message in _allocator(name, word.text):
                yield Finding(message, word.span)


def _allocator(name: str, text: str) -> Iterator[str]:
    given = {}
    for part in re.split(r",(?![^\[]*\])", text.replace(" ", "")):
        option, colon, value = part.partition(":")
        if not colon or option not in OPTIONS:
            near = nearest(option, OPTIONS, 0.7)
            hint = Message("; did you mean {near}?", near=near) if near and near != option else ""
            yield Message("{name} has no option {option!r}{hint}", name=name, option=option, hint=hint)
            return
        given[option] = value
    expandable = given.get("expandable_segments", "False")
    if expandable not in ("True", "False"):
        yield Message(
            "expandable_segments in {name} must be True or False, not {expandable!r}", name=name, expandable=expandable
        )
    splitting = [option for option in ("max_split_size_mb", "garbage_collection_threshold") if option in given]
    if "NPU" in name and expandable == "True" and splitting:
        yield Message(
            "{name} sets expandable_segments, which does not work with {other}", name=name, other=splitting[0]
        )


GPU, NPU = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"
ON_NPUS = frozenset({"mindspeed", "mindspeed-llm-fsdp2", "mindspeed-mm"})
"""Frameworks that run on NPUs."""
ON_GPUS = frozenset({"megatron", "nemo-rl", "megatron-bridge"})
"""Frameworks without NPU support; a front end that is in neither set may train on both kinds of devices."""


@rule(id="foreign-allocator", severity=Severity.WARNING, frameworks=("megatron",), reads=(OF_ENVIRONMENT,))
def foreign_allocator(job: Job) -> Iterator[Finding]:
    """An allocator setting is meant for a different kind of device.

    ## What it does
    Finds `PYTORCH_NPU_ALLOC_CONF` in a run of Megatron, NeMo RL or Megatron Bridge, and `PYTORCH_CUDA_ALLOC_CONF` in a
    MindSpeed run that does not also set `PYTORCH_NPU_ALLOC_CONF`. Other front ends train on both kinds of devices; for
    these, `PYTORCH_NPU_ALLOC_CONF` is reported only if the device is given and is a GPU.

    ## Why is this bad?
    Nothing reads the variable. The allocator keeps its defaults, and a run with fragmented memory fails after hours.

    ## Example
        export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
        torchrun pretrain_gpt.py

    Use instead, on GPUs:

        export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
        torchrun pretrain_gpt.py

    ## References
    PyTorch, c10/cuda/CUDAAllocatorConfig.h; torch_npu, torch_npu/csrc/core/npu/NPUCachingAllocator.cpp
    """
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    ascend = not ON_NPUS.isdisjoint(job.versions)
    own, other = (NPU, GPU) if ascend else (GPU, NPU)
    vendor = job.cluster.device.vendor if job.cluster.device is not None else ""
    if other not in given or own in given or (vendor in ("huawei", "ascend") and not ascend):
        return
    if not ascend and not vendor and job.target.framework not in ON_GPUS:
        return
    devices = "NPUs" if ascend else "GPUs"
    message = Message("nothing reads {other} on {devices}; use {own} there", other=other, devices=devices, own=own)
    yield Finding(message, given[other].span)


INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
LOOPBACK = ("lo", "=lo")


@rule(id="loopback-between-nodes", severity=Severity.WARNING, frameworks=("megatron",), reads=(OF_ENVIRONMENT,))
def loopback_between_nodes(job: Job) -> Iterator[Finding]:
    """The processes of a multi-node run are set to communicate over the loopback interface.

    ## What it does
    Finds `NCCL_SOCKET_IFNAME`, `GLOO_SOCKET_IFNAME` and `HCCL_SOCKET_IFNAME` with the value `lo` in launches on more
    than one node.

    ## Why is this bad?
    The loopback interface does not leave the machine, so the first collective cannot connect, and the job fails or
    waits until the timeout. The setting is usually left over from a test on one machine.

    ## Example
        export NCCL_SOCKET_IFNAME=lo
        torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py

    Use instead:

        export NCCL_SOCKET_IFNAME=eth0
        torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py

    ## References
    NCCL user guide, Environment Variables, NCCL_SOCKET_IFNAME; IETF RFC 1122, section 3.2.1.3: 127.0.0.0/8
    """
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    name = next((name for name in INTERFACES if name in given and given[name].text in LOOPBACK), "")
    if launch is None or not name or given[name].maybe:
        return
    nodes = launch.nodes.value if launch.nodes is not None and not launch.nodes.assumed else None
    if isinstance(nodes, int) and nodes > 1:
        message = Message(
            "{name} is lo, the loopback interface, which does not reach other nodes, but the launch has {nodes} nodes",
            name=name,
            nodes=nodes,
        )
        yield Finding(message, given[name].span)


NO_INFINIBAND, INFINIBAND = "NCCL_IB_DISABLE", "NCCL_IB_"


@rule(id="infiniband-off", severity=Severity.WARNING, frameworks=("megatron",), reads=(OF_ENVIRONMENT,))
def infiniband_off(job: Job) -> Iterator[Finding]:
    """InfiniBand is switched off in a run that also sets it up.

    ## What it does
    Finds `NCCL_IB_DISABLE=1` in launches on more than one node that set other `NCCL_IB_` variables, such as
    `NCCL_IB_HCA` or `NCCL_IB_GID_INDEX`.

    ## Why is this bad?
    NCCL then uses sockets between the nodes, which are many times slower, and reads none of the other variables. The
    switch is usually left over from a test.

    ## Example
        export NCCL_IB_DISABLE=1
        export NCCL_IB_HCA=mlx5
        torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py

    Use instead:

        export NCCL_IB_HCA=mlx5
        torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py

    ## References
    NCCL user guide, Environment Variables, NCCL_IB_DISABLE: "communications using IP sockets"
    """
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    off = given.get(NO_INFINIBAND)
    others = [name for name in given if name.startswith(INFINIBAND) and name != NO_INFINIBAND and given[name].text]
    if launch is None or off is None or off.text != "1" or off.maybe or not others:
        return
    nodes = launch.nodes.value if launch.nodes is not None and not launch.nodes.assumed else None
    if isinstance(nodes, int) and nodes > 1:
        template = "NCCL_IB_DISABLE=1 makes {nodes} nodes communicate over sockets, and {other} has no effect"
        yield Finding(Message(template, nodes=nodes, other=others[0]), off.span)


BLOCKING = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING")
LONG = 1_000
"""Runs with fewer iterations are trials, in which a fault may be traced."""


@rule(id="blocking-launches", severity=Severity.WARNING, frameworks=("megatron",), reads=(OF_ENVIRONMENT,))
def blocking_launches(job: Job) -> Iterator[Finding]:
    """A debugging switch is left on, so the host waits for each kernel.

    ## What it does
    Finds `CUDA_LAUNCH_BLOCKING`, `HIP_LAUNCH_BLOCKING` and `ASCEND_LAUNCH_BLOCKING` with the value 1 in training runs
    of 1,000 iterations or more.

    ## Why is this bad?
    Kernels and collectives are no longer queued, so nothing overlaps and each step takes much longer.

    ## Example
        export CUDA_LAUNCH_BLOCKING=1
        torchrun pretrain_gpt.py --train-iters 100000

    Use instead:

        torchrun pretrain_gpt.py --train-iters 100000

    ## References
    CUDA C++ Programming Guide, section CUDA Environment Variables, CUDA_LAUNCH_BLOCKING;
    Ascend Extension for PyTorch, ASCEND_LAUNCH_BLOCKING: 1 runs operators synchronously, for debugging
    """
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    name = next((name for name in BLOCKING if name in given and given[name].text == "1"), "")
    if not name or given[name].maybe:
        return
    a = job.arguments
    iterations, samples, batch = (a.get(name).raw for name in ("train_iters", "train_samples", "global_batch_size"))
    if not isinstance(iterations, int) and isinstance(samples, int) and isinstance(batch, int) and batch > 0:
        iterations = samples // batch
    if a.get("skip_train").raw is True or not isinstance(iterations, int) or iterations < LONG:
        return
    message = Message(
        "{name}=1 is meant for debugging, because the host waits for each kernel and nothing overlaps", name=name
    )
    yield Finding(message, given[name].span)


# fmt: off
PREFIXES = ("CUDA_", "NCCL_", "HCCL_", "TORCH_", "PYTORCH_", "ASCEND_", "NVTE_", "NPU_", "MS_", "TASK_QUEUE_",
    "CPU_AFFINITY_", "GLOO_", "OMP_", "ACLNN_")
# fmt: on
OF_THE_SCRIPT = lazy_pattern(
    r"\w+_(?:IMAGE|VERSION|VER|TAG|CONTAINER|REPO|URL|BRANCH|COMMIT|ARGS|OPTS|OPTIONS)|TORCH_INDUCTOR_\w+"
)
"""Names of things that a script installs, starts or passes on; no process reads them. PyTorch reads TORCHINDUCTOR_…,
without the underscore."""


@rule(id="not-exported", severity=Severity.WARNING, noticed=True)
def not_exported(job: Job) -> Iterator[Finding]:
    """A variable that configures the launched processes is not exported.

    ## What it does
    Finds assignments to variables of CUDA, NCCL, HCCL, PyTorch, Ascend and the frameworks if the script neither exports
    the variable nor uses it itself.

    ## Why is this bad?
    The launched processes do not see the variable, so it changes nothing. Megatron, for example, stops if it needs
    `CUDA_DEVICE_MAX_CONNECTIONS` and the variable is missing.

    ## Example
        CUDA_DEVICE_MAX_CONNECTIONS=1
        torchrun pretrain_gpt.py $GPT_ARGS
    Use instead:
        export CUDA_DEVICE_MAX_CONNECTIONS=1
        torchrun pretrain_gpt.py $GPT_ARGS

    ## Fix safety
    Unsafe: the launched processes then see a variable that they did not see before.

    ## References
    GNU Bash Reference Manual, section 3.7.4, Environment
    """
    for finding in job.noticed("not-exported"):
        name = str(finding.values["name"])
        if name.startswith(PREFIXES) and not OF_THE_SCRIPT.fullmatch(name):
            yield finding


PACKAGE_NOT_LISTED_OTHER = (
    "the job's interpreter has {package} {version}, but the version table of {framework} {release} lists {listed}"
)


@rule(id="package-not-listed", severity=Severity.NOTE, reads=("(site)",))
def package_not_listed(job: Job) -> Iterator[Finding]:
    """The job's Python has a package version that the version table of the release does not list.

    ## What it does
    With `--site --python PATH`, compares `torch` and `mindspore` in that interpreter with the versions that the READMEs
    of MindSpeed, MindSpeed-LLM and MindFormers list for their releases, if the release is stated. Only the first two
    numbers of a version are compared. `torch_npu` is not compared, because the version numbers of its packages differ
    from those in the tables.

    ## Why is this bad?
    The combination is not tested upstream. It often works, but functions that the release calls may be missing, which
    makes the run fail at import or in its first step.

    ## Example
    With `mindspore` 2.4.10 in that environment, under `--site`:

        preflight check run.yaml --site --python /envs/train/bin/python --target mindformers@1.7.0

    Instead, use `mindspore` 2.7.1, or the MindFormers release that belongs to 2.4.

    ## References
    Ascend/MindSpeed v2.3.0_core_r0.12.1, README.md; mindspore-lab/mindformers r1.8.0, README.md, Version Mapping
    """
    if job.site is None or not job.arguments.certainty.stated:
        return
    installed, tables = {one.name: one.version for one in job.site.packages}, schemas.read("packages")
    for framework, release in job.versions.items():
        for package, listed in tables.get(framework, {}).get(release, {}).items():
            version = installed.get(package, "")
            if version and ".".join(version.split(".")[:2]) not in listed:
                said = Message(
                    PACKAGE_NOT_LISTED_OTHER,
                    package=package,
                    version=version,
                    framework=framework,
                    release=release,
                    listed=", ".join(listed),
                )
                yield Finding(said, job.start)


OWN = {"megatron-core": "megatron", "mindformers": "mindformers"}
PACKAGE_OF_OTHER_RELEASE_OTHER = (
    "the job's interpreter has {package} {version}, but the run is read as {framework} {release}"
)


@rule(id="package-of-other-release", severity=Severity.WARNING, reads=("(site)",))
def package_of_other_release(job: Job) -> Iterator[Finding]:
    """The job's Python has a different framework release from the one that the run is checked against.

    ## What it does
    With `--site --python PATH`, reads the installed package versions from the interpreter's package metadata, and
    compares `megatron-core` and `mindformers` with the release that the run is checked against, if that release is
    stated.

    ## Why is this bad?
    An option that one release knows can make another release fail, and defaults can differ silently. A checkout on
    `PYTHONPATH` takes precedence over installed packages; in that case, use `--program`.

    ## Example
    With `megatron-core` 0.12.1 in that environment, under `--site`:

        preflight check run.sh --site --python /envs/train/bin/python --target megatron@0.17.0

    Instead, use the intended environment, or state the release that is installed in it.

    ## References
    Python Packaging User Guide, Recording installed projects
    """
    if job.site is None or not job.arguments.certainty.stated or job.program:
        return
    for package in job.site.packages:
        framework = OWN.get(package.name, "")
        release = job.versions.get(framework, "")
        if release[:1].isdigit() and package.version.split(".")[:2] != release.split(".")[:2]:
            message = Message(
                PACKAGE_OF_OTHER_RELEASE_OTHER,
                package=package.name,
                version=package.version,
                framework=framework,
                release=release,
            )
            yield Finding(message, job.start)


NAMES = frozenset(one.name for one in FRONT_ENDS)


@rule(id="undescribed-release", severity=Severity.WARNING, reads=(READ_AS_ANOTHER,))
def undescribed_release(job: Job) -> Iterator[Finding]:
    """preflight does not know the stated release, so it checks the run against a different one.

    ## What it does
    Reports that preflight does not know the stated release of a program that starts Megatron, and names the release
    that the run is checked against instead. This is the newest known release with the same minor version. If there is
    none, it is the newest earlier release, or else the oldest one.

    ## Why is this bad?
    Each release of such a program adds, drops and checks different keys, so the result is only valid for the release
    that the run is checked against.

    ## Example
        preflight check run.sh --target verl@0.5.0

    Use instead:

        preflight check run.sh --target verl@0.6.1

    ## References
    verl 0.9.1 accepts 17 of the 47 scripts that are published with 0.9.0: verl/trainer/config/engine/megatron.yaml
    """
    if job.asked is None or job.target.framework not in NAMES:
        return
    known = next(one.targets for one in FRONT_ENDS if one.name == job.target.framework)
    message = Message(
        "{asked} is not a known release, so it is checked as {target} (known releases: {releases:and})",
        asked=str(job.asked),
        target=str(job.target),
        releases=tuple(sorted((one.version for one in known), key=numbers)),
    )
    yield Finding(message, job.start)
