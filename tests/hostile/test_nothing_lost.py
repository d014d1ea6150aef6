"""A fix that is stopped, starved or raced leaves the old file or the new one, whole, with owner and permissions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from preflight.source import writing
from preflight.source.source_file import InputError, Source

OLD = "use_parallel: True\nparallel_config:\n  data_parallel: 4 # dp\n  model_parallel: 8\n"
NEW = OLD.replace("4", "2")
STEPS = ("fdopen", "fsync", "chown", "stat", "chmod", "listxattr", "replace")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(OLD)
    path.chmod(0o640)
    return path


def sources(path: Path) -> tuple[Source, Source]:
    old = Source.read(path)
    return old, Source(NEW, old.name, path=path)


def beside(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from preflight.source import writing
from preflight.source.source_file import Source
step, when, path = sys.argv[1], sys.argv[2], Path(sys.argv[3])
real = getattr(os, step)
def stop(*given, **named):
    if step == "stat" and ".preflight" not in str(given[0]):
        return real(*given, **named)
    if when == "after":
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, step, stop)
old = Source.read(path)
writing.write(old, Source(old.text.replace("4", "2"), old.name, path=path))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(file: Path, step: str, when: str) -> None:
    if not hasattr(os, step):
        pytest.skip(f"this system has no {step}")
    done = subprocess.run([sys.executable, "-c", KILLED, step, when, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_text() == (NEW if (step, when) == ("replace", "after") else OLD)
    assert file.stat().st_mode & 0o7777 == 0o640
    left = [name for name in beside(file) if name != file.name]
    assert all(name.startswith(".run.yaml.") and name.endswith(".preflight") for name in left), (
        "what a kill leaves is hidden, and no config"
    )


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("chown", "listxattr")])
def test_a_step_that_fails_leaves_the_old_file_and_nothing_beside_it(
    file: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = sources(file)
    real = getattr(os, step)

    def full(*given: object, **named: object) -> object:
        if step == "stat" and ".preflight" not in str(given[0]):
            return real(*given, **named)
        if step == "fdopen":
            os.close(given[0])  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(InputError, match="No space left"):
        writing.write(old, new)
    monkeypatch.undo()
    assert file.read_text() == OLD and beside(file) == ["run.yaml"]


def test_interrupted_from_the_keyboard(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = sources(file)

    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writing.write(old, new)
    assert file.read_text() == OLD and beside(file) == ["run.yaml"]


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    ).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        path = disk / "run.yaml"
        path.write_text(OLD)
        with open(disk / "filler", "wb") as stream, pytest.raises(OSError, match="No space"):
            while True:
                os.write(stream.fileno(), b"x" * 4096)
        old = Source.read(path)
        with pytest.raises(InputError, match="No space left"):
            writing.write(old, Source(NEW + "# more\n" * 2000, old.name, path=path))
        assert path.read_text() == OLD and beside(path) == ["filler", "run.yaml"]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_read_only(file: Path) -> None:
    old, new = sources(file)
    file.chmod(0o440)
    with pytest.raises(InputError, match="read-only"):
        writing.write(old, new)
    assert file.read_text() == OLD and file.stat().st_mode & 0o7777 == 0o440 and beside(file) == ["run.yaml"]


def test_changed_since_it_was_read(file: Path) -> None:
    old, new = sources(file)
    file.write_text(OLD + "# by hand\n")
    with pytest.raises(InputError, match="changed while"):
        writing.write(old, new)
    assert file.read_text() == OLD + "# by hand\n" and beside(file) == ["run.yaml"]


def test_gone_since_it_was_read(file: Path) -> None:
    old, new = sources(file)
    file.unlink()
    with pytest.raises(InputError, match="cannot be written"):
        writing.write(old, new)
    assert beside(file) == []


def test_one_of_many_fixers_at_once_wins(file: Path) -> None:
    old = Source.read(file)
    texts = [OLD + f"# fixer {number}\n" * 5000 for number in range(16)]
    said: list[str] = []
    gate = threading.Barrier(len(texts))

    def one(text: str) -> None:
        gate.wait()
        try:
            writing.write(old, Source(text, old.name, path=file))
            said.append("")
        except InputError as error:
            said.append(error.message)

    threads = [threading.Thread(target=one, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() in texts and beside(file) == ["run.yaml"]
    assert said.count("") == 1, "the others see that the file has changed"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664])
def test_permissions_are_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    writing.write(*sources(file))
    assert file.read_text() == NEW and file.stat().st_mode & 0o7777 == mode and beside(file) == ["run.yaml"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept(file: Path) -> None:
    os.chown(file, 12345, 54321)
    writing.write(*sources(file))
    assert (file.stat().st_uid, file.stat().st_gid, file.read_text()) == (12345, 54321, NEW)


def test_an_owner_that_cannot_be_kept_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = sources(file)
    real = os.stat

    def elsewhere(path: object, *given: object, **named: object) -> object:
        found = real(path, *given, **named)  # type: ignore[call-overload]
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:])) if ".preflight" in str(path) else found

    monkeypatch.setattr(os, "stat", elsewhere)
    with pytest.raises(InputError, match="belongs to another user"):
        writing.write(old, new)
    monkeypatch.undo()
    assert file.read_text() == OLD and beside(file) == ["run.yaml"]


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    writing.write(*sources(link))
    assert link.is_symlink() and file.read_text() == NEW


def test_a_very_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 240 + ".yaml")
    path.write_text(OLD)
    writing.write(*sources(path))
    assert path.read_text() == NEW


def test_bytes_that_are_not_meant_stay(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 4\r\nb: 1\r\n")
    old = Source.read(path)
    writing.write(old, Source(old.text.replace("4", "2"), old.name, path=path, bom=old.bom))
    assert path.read_bytes() == b"\xef\xbb\xbfa: 2\r\nb: 1\r\n"


@pytest.mark.skipif(os.name == "nt", reason="locks of Unix")
def test_a_lock_that_somebody_holds_is_told_and_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may read a file may hold a shared lock on it."""
    import fcntl

    monkeypatch.setattr(writing, "PATIENCE", 0.2)
    monkeypatch.setattr(writing, "SILENCE", 0.05)
    waited: list[str] = []
    old, new = sources(file)
    with open(file, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with pytest.raises(InputError, match="is locked by another process; nothing was written"):
            writing.write(old, new, waited.append)
    assert waited == [old.name] and file.read_text() == OLD and beside(file) == ["run.yaml"]
    writing.write(old, new, waited.append)
    assert waited == [old.name] and file.read_text() == NEW


@pytest.mark.skipif(os.name == "nt", reason="locks of Unix")
def test_a_lock_that_ends_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(writing, "SILENCE", 0.0)
    old, new = sources(file)
    with open(file, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        writing.write(old, new, lambda name: fcntl.flock(reader, fcntl.LOCK_UN))
    assert file.read_text() == NEW


@pytest.mark.skipif(os.name == "nt", reason="locks of Unix")
def test_the_command_says_what_it_waits_for(tmp_path: Path) -> None:
    import fcntl

    example = Path(__file__).parents[2] / "examples" / "mindformers" / "run_llama2_7b.yaml"
    (path := tmp_path / "run.yaml").write_bytes(example.read_bytes())
    program = "from preflight.source import writing; writing.PATIENCE, writing.SILENCE = 0.3, 0.0; "
    program += "import sys; from preflight.cli import run; sys.exit(run(['fix', 'run.yaml']))"
    with open(path, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        words = [sys.executable, "-c", program]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (
        "preflight: waiting: run.yaml is locked by another process" in ran.stderr
        and path.read_bytes() == example.read_bytes()
    )
    assert "run.yaml: is locked by another process; nothing was written" in ran.stderr and ran.returncode in (1, 2)
