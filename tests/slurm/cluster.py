"""A real Slurm on loopback: one controller, two nodes with eight fake devices each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from clock import FOREVER

NEEDED = ("slurmctld", "slurmd", "sbatch", "munged", "curl")
CONF = """\
ClusterName=gate
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd-%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MessageTimeout=10
KillWait=2
MaxJobCount=20000
GresTypes=gpu,npu
JobSubmitPlugins=lua
NodeName=gpu01 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=64 RealMemory=512000 \\
    Gres=gpu:h100:8,npu:8 State=UNKNOWN
NodeName=gpu02 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=64 RealMemory=512000 \\
    Gres=gpu:h100:8,npu:8 State=UNKNOWN
PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
GRES = "NodeName=gpu[01-02] Name=gpu Type=h100 File={dir}/fakegpu/gpu[0-7]\nNodeName=gpu[01-02] Name=npu Count=8\n"


def free_ports(count: int) -> list[int]:
    """Ports of loopback without a listener, below those that the system gives to outgoing connections.

    Two clusters may start at once, in two processes of the tests: each takes ports by its own process number.
    """
    found: list[int] = []
    for port in range(12000 + os.getpid() % 1000 * 10, 32000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


class Slurm:
    """The cluster: its folder, its environment, sbatch, and the gate's resident checker."""

    def __init__(self, folder: Path, conf: str = CONF) -> None:
        self.folder, self.conf = folder, conf
        self.socket = folder / "gate.sock"
        self.audit = folder / "audit.jsonl"
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.checker: subprocess.Popen[bytes] | None = None

    def run(self, *words: str, text: str | None = None, seconds: float = FOREVER) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            input=text,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=self.environment,
            cwd=self.folder,
            check=False,
        )

    def sbatch(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / "job.sh"
        path.write_text(script)
        return self.run("sbatch", "--hold", *options, str(path))

    def start_checker(self, *options: str) -> None:
        words = [
            *("nice", "-n", "-10"),  # as in the unit of docs/gate.md
            sys.executable,
            "-m",
            "preflight",
            "gate-serve",
            "--socket",
            str(self.socket),
            "--audit",
            str(self.audit),
            *options,
        ]
        self.checker = subprocess.Popen(words, stderr=subprocess.PIPE)
        assert self.checker.stderr is not None
        self.checker.stderr.readline()

    def stop_checker(self) -> None:
        if self.checker is not None:
            self.checker.terminate()
            self.checker.wait(10)
            self.checker = None

    def start(self) -> None:
        host = socket.gethostname().partition(".")[0]
        for name in ("state", "spool/gpu01", "spool/gpu02", "run", "log", "fakegpu"):
            (self.folder / name).mkdir(parents=True)
        for index in range(8):
            os.mknod(self.folder / f"fakegpu/gpu{index}", 0o600 | 0o020000, os.makedev(1, 3))
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o400)
        ports = dict(zip(("controller", "first", "second"), free_ports(3), strict=True))
        (self.folder / "slurm.conf").write_text(self.conf.format(host=host, dir=self.folder, **ports))
        (self.folder / "gres.conf").write_text(GRES.format(dir=self.folder))
        self.install()
        munge = {name: str(self.folder / path) for name, path in MUNGE.items()}
        self.must("munged", "--force", *(f"--{name}={path}" for name, path in munge.items()))
        self.must("slurmctld", "-c", "-f", self.environment["SLURM_CONF"])
        for node in ("gpu01", "gpu02"):
            self.must("slurmd", "-f", self.environment["SLURM_CONF"], "-N", node)
        for _ in range(100):
            if self.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle":
                return
            time.sleep(0.2)
        pytest.fail(self.run("sinfo", "-R").stdout + (self.folder / "log/slurmctld.log").read_text()[-2000:])

    def must(self, *words: str) -> None:
        ran = self.run(*words)
        assert ran.returncode == 0, ran.stderr

    def install(self, *options: str) -> None:
        words = (
            sys.executable,
            "-m",
            "preflight",
            "gate-install",
            str(self.folder),
            "--socket",
            str(self.socket),
            *options,
        )
        self.must(*words)

    def client(self) -> Callable[..., subprocess.CompletedProcess[str]]:
        """Runs commands with a configuration of their own, which has the client-side gate."""
        folder = self.folder / "client"
        folder.mkdir(exist_ok=True)
        (folder / "slurm.conf").write_text((self.folder / "slurm.conf").read_text() + "CliFilterPlugins=lua\n")
        self.must(
            sys.executable,
            "-m",
            "preflight",
            "gate-install",
            str(folder),
            "--client",
            "--socket",
            str(self.socket),
            "--timeout",
            "9",
        )
        environment = {**self.environment, "SLURM_CONF": str(folder / "slurm.conf")}

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                words, capture_output=True, text=True, timeout=FOREVER, env=environment, cwd=self.folder, check=False
            )

        return run

    def settle(self) -> None:
        """Lua files are reloaded by modification time in whole seconds."""
        time.sleep(1.2)

    def stop(self) -> None:
        self.stop_checker()
        for name in ("run/slurmd-gpu01.pid", "run/slurmd-gpu02.pid", "run/slurmctld.pid", "run/munged.pid"):
            path = self.folder / name
            if path.exists() and (pid := path.read_text().strip()).isdigit():
                subprocess.run(["kill", pid], check=False)
                end = time.monotonic() + 10  # its port is free only then
                while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
                    time.sleep(0.1)


MUNGE = {
    "key-file": "munge.key",
    "socket": "munge.sock",
    "pid-file": "run/munged.pid",
    "log-file": "log/munged.log",
    "seed-file": "run/munged.seed",
}
