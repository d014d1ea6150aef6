"""Parsed commands: the launcher, its entry script, the arguments, and the number of processes."""

from __future__ import annotations

import shlex

import pytest

from preflight.loaders.command_line import load_command
from preflight.loaders.document import Launch
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source

# fmt: off
COMMANDS = {
    "pretrain_gpt.py --num-layers 32": ("", "pretrain_gpt.py", ["--num-layers", "32"], []),
    "python -u train.py --b": ("python", "train.py", ["--b"], [1]),
    "torchrun --nproc-per-node 8 pretrain_gpt.py --a": ("torchrun", "pretrain_gpt.py", ["--a"], [8]),
    "torchrun --nproc_per_node=8 --nnodes=2 -m pkg.train --a=1": ("torchrun", "pkg.train", ["--a=1"], [16]),
    "torchrun --standalone --nproc-per-node gpu a.py": ("torchrun", "a.py", [], ["gpu"]),
    "torchrun --nnodes 1:4 --nproc-per-node 8 a.py": ("torchrun", "a.py", [], ["1:4"]),
    "python -m torch.distributed.launch --nproc_per_node 8 a.py":
        ("python -m torch.distributed.launch", "a.py", [], [8]),
    "nohup env A=1 torchrun --nproc-per-node 2 a.py": ("torchrun", "a.py", [], [2]),
    "srun -N2 --gpus-per-node=8 --ntasks-per-node=8 python -u a.py --x 1": ("srun", "a.py", ["--x", "1"], [16, 16]),
    "srun -N 2 --gres=gpu:h100:8 --ntasks-per-node=1 torchrun --nnodes 2 --nproc-per-node 8 a.py":
        ("torchrun", "a.py", [], [16, 16]),
    "srun --gpus=16 -n16 python a.py": ("srun", "a.py", [], [16, 16]),
    "mpirun -np 16 --mca a b -x A=1 python train.py --y": ("mpirun", "train.py", ["--y"], [16]),
    "msrun --worker_num=16 --local_worker_num=8 --join=True a.py --z": ("msrun", "a.py", ["--z"], [16]),
    "msrun a.py": ("msrun", "a.py", [], [8]),
    "deepspeed --num_gpus 8 --num_nodes 2 train.py --deepspeed": ("deepspeed", "train.py", ["--deepspeed"], [16]),
    "deepspeed --hostfile hosts train.py": ("deepspeed", "train.py", [], ["deepspeed's host list"]),
    "accelerate launch --num_processes 8 --multi_gpu train.py --a": ("accelerate", "train.py", ["--a"], [8]),
    "bash x/msrun_launcher.sh 'run_mindformer.py --config a.yaml --a.b \"c d\"' 8": (
        "msrun_launcher.sh",
        "run_mindformer.py",
        ["--config", "a.yaml", "--a.b", "c d"],
        [8],
    ),
    "bash msrun_launcher.sh 'python run_mindformer.py' 16 8 10.0.0.1 8118 0 log True 300":
        ("msrun_launcher.sh", "run_mindformer.py", [], [16]),
}
# fmt: on


def world(launch: Launch) -> list[object]:
    return [count.value if isinstance(count.value, int) else count.value.because for count in launch.world]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_taken_apart(command: str) -> None:
    launcher, entry, words, counts = COMMANDS[command]
    launch = load_command(shlex.split(command)).launch
    assert launch is not None
    assert (launch.launcher, launch.entry.text, [word.text for word in launch.words], world(launch)) == (
        launcher,
        entry,
        words,
        counts,
    )


def launches(text: str) -> list[Launch]:
    return [document.launch for document in load_script(Source(text, "run.sh")) if document.launch is not None]


def test_a_value_keeps_the_place_where_it_was_typed_and_where_it_went() -> None:
    text = 'TP=8\nARGS="--tp ${TP}"\ntorchrun t.py $ARGS --x=$TP\n'
    (launch,) = launches(text)
    value, joined = launch.words[1], launch.words[2].parts[1]
    assert joined is not None
    assert (value.text, value.span.line, value.span.column, value.editable) == ("8", 1, 4, True)
    assert [use.text for use in value.uses] == ["${TP}", "$ARGS"]
    assert (joined.span, [use.text for use in joined.uses]) == (value.span, ["$TP"])


def test_a_node_count_in_a_variable_is_a_placeholder() -> None:
    assert [
        c.placeholder for c in launches("NNODES=1\ntorchrun --nnodes $NNODES --nproc-per-node 8 t.py\n")[0].world
    ] == [True]
    assert [c.placeholder for c in launches("torchrun --nnodes 1 --nproc-per-node 8 t.py\n")[0].world] == [False]


def test_slurm_variables_come_from_the_job() -> None:
    (launch,) = launches(
        "#!/bin/bash\n#SBATCH -N 4\n#SBATCH --gres=npu:8\n"
        "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_ON_NODE t.py\n"
    )
    assert world(launch) == [32, 32]
    assert launch.world[0].span is not None and launch.world[0].span.line == 2


def test_what_nobody_knows_opens_the_list() -> None:
    assert launches('torchrun t.py "$@"\n')[0].open
    assert launches("torchrun t.py --a $(cat more)\n")[0].open is False
    assert launches("torchrun t.py --a 1 $(cat more)\n")[0].open
    assert launches("X_ARGS=$(cat args)\ntorchrun t.py --a 1 $X_ARGS\n")[0].open


@pytest.mark.parametrize(
    "word", ['"$@"', "$@", "$*", '"${@:3}"', "$2", "$EXTRA_ARGS", "${EXTRA_OPTS}", "$MORE", "$BASE_ARGS"]
)
def test_what_whoever_starts_it_may_add_is_assumed_to_be_nothing(word: str) -> None:
    (launch,) = launches(f"BASE_ARGS={word if 'BASE' not in word else '$@'}\ntorchrun t.py --a 1 {word}\n")
    assert not launch.open and [w.text for w in launch.words] == ["--a", "1"]
    assert len(launch.assumed) == 1


def test_arguments_in_front_of_those_that_nobody_knows_keep_their_places() -> None:
    script = 'run() { torchrun --nproc_per_node $1 t.py --tp $2 "${@:3}" $#; }\nrun 8 4 --a "$@"\n'
    (launch,) = launches(script)
    assert [w.text for w in launch.words] == ["--tp", "4", "--a", None] and world(launch) == [8]
    assert [w.because for w in launch.assumed] == ["$@"]


def test_a_flag_on_one_branch_may_be_there() -> None:
    (launch,) = launches('A="--a 1"\nif [ "$1" = x ]; then A="$A --b 2"; fi\ntorchrun t.py $A\n')
    assert [(word.text, word.maybe) for word in launch.words] == [
        ("--a", False),
        ("1", False),
        ("--b", True),
        ("2", True),
    ]
    (launch,) = launches('if [ "$1" = x ]; then TP=2; else TP=4; fi\ntorchrun t.py --tp $TP\n')
    assert launch.words[1].text is None


def test_a_default_is_what_the_script_means() -> None:
    (launch,) = launches('[ -z "$TP" ] && TP=4\ntorchrun t.py --tp $TP --pp ${PP:-2}\n')
    assert [word.text for word in launch.words] == ["--tp", "4", "--pp", "2"]


def test_other_scripts_of_the_folder_are_followed(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "settings.sh").write_text("TP=4\n")
    (folder / "launch.sh").write_text('torchrun t.py --tp $TP --more "$@"\n')
    (folder / "run.sh").write_text("source settings.sh\nexport TP\nbash launch.sh --x 1\n")
    documents = load_script(Source.read(folder / "run.sh", "run.sh"))
    assert [word.text for word in documents[0].launch.words] == ["--tp", "4", "--more", "--x", "1"]  # type: ignore[union-attr]
    assert {source.name for source in documents[0].also} == {"settings.sh", "launch.sh"}


def test_a_parameter_that_is_not_known_keeps_its_place(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "launch.sh").write_text("torchrun --nnodes $1 t.py --tp $3 --pp $4\n")
    (folder / "run.sh").write_text(
        "TP=4\nsrun ./launch.sh $SLURM_NNODES $GPUS $TP 2\nbash launch.sh $NO_ARGS 1 8 2 3\nbash launch.sh 1 $@\n"
    )
    started = [document.launch for document in load_script(Source.read(folder / "run.sh", "run.sh"))]
    assert [[word.text for word in launch.words] for launch in started if launch is not None] == [
        ["--tp", "4", "--pp", "2"],
        ["--tp", "2", "--pp", "3"],
        ["--tp", None, "--pp", None],
    ]


def test_nothing_outside_the_folder_is_read(tmp_path: object) -> None:
    from pathlib import Path

    inner = Path(str(tmp_path)) / "inner"
    inner.mkdir()
    (inner.parent / "secret.sh").write_text("TP=4\n")
    (inner / "link.sh").symlink_to(inner.parent / "secret.sh")
    (inner / "run.sh").write_text("source ../secret.sh\nsource link.sh\ntorchrun t.py --tp $TP\n")
    (document,) = load_script(Source.read(inner / "run.sh", "run.sh"))
    assert document.also == () and document.launch is not None and document.launch.words[1].text is None
