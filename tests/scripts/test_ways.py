"""Launches with alternative commands: those found, their words, and the number of devices."""

from __future__ import annotations

import pytest
from clock import takes_at_most

from preflight.loaders.document import Launch
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source


def launches(text: str) -> list[Launch]:
    documents = load_script(Source.decode(text.encode(), "run.sh"))
    return [document.launch for document in documents if document.launch is not None]


def shown(launch: Launch) -> tuple[str, str, list[str | None], list[object]]:
    """Launcher, entry, words that are certain, and the processes that it starts."""
    words = [word.text for word in launch.words if not word.maybe and (word.text or "").strip()]
    return (
        launch.launcher,
        (launch.entry.text or "").rpartition("/")[2],
        words,
        [getattr(count.value, "because", count.value) for count in launch.world],
    )


RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --a 1"
EIGHT = ("torchrun", "pretrain_gpt.py", ["--a", "1"], [8])

SCRIPTS = {
    "either command": (
        f'if [ "$1" = x ]; then CMD="{RUN}"; else CMD="python pretrain_gpt.py --b 2"; fi\n$CMD\n',
        [EIGHT, ("python", "pretrain_gpt.py", ["--b", "2"], [1])],
    ),
    "either command, and more for both": (
        f'if [ "$1" = x ]; then CMD="{RUN}"; else CMD="python pretrain_gpt.py --b 2"; fi\nCMD+=" --c"\neval "$CMD"\n',
        [
            ("torchrun", "pretrain_gpt.py", ["--a", "1", "--c"], [8]),
            ("python", "pretrain_gpt.py", ["--b", "2", "--c"], [1]),
        ],
    ),
    "an option that may be added": (f'CMD="{RUN}"\nif [ "$1" = x ]; then CMD+=" --profile"; fi\n$CMD\n', [EIGHT]),
    "a profiler that may stand in front": (
        f'CMD="{RUN}"\nif [ "$1" = x ]; then CMD="nsys profile $CMD"; fi\n$CMD\n',
        [EIGHT],
    ),
    "a profiler around either of two": (
        (
            f'if [ "$1" = x ]; then CMD="{RUN}"; else CMD="python pretrain_gpt.py --b 2"; fi\n'
            '[ -n "$P" ] && CMD="nsys profile $CMD"\nbash -c "$CMD"\n'
        ),
        [EIGHT, ("python", "pretrain_gpt.py", ["--b", "2"], [1])],
    ),
    "values that are no commands stay unknown": (
        'if [ "$1" = x ]; then F=a.py; else F=b.py; fi\ntorchrun --nproc_per_node 8 $F --a 1\n',
        [("torchrun", "", ["--a", "1"], [8])],
    ),
    "on another host": (f'ssh node1 "cd /x && {RUN}" &\n', [EIGHT]),
    "on another host, not a command": ("ssh node1 hostname\n", []),
    "a script that is sent to another host": (
        f'for n in a b; do ssh $n "bash -s" <<EOF\ncd /w\n{RUN}\nEOF\ndone\n',
        [EIGHT, EIGHT],
    ),
    "in a container": (f'docker run --gpus all -v /x:/x image bash -c "cd /x; {RUN}"\n', [EIGHT]),
    "in a container, without a shell": (f"docker run --gpus all image {RUN}\n", [EIGHT]),
    "in a container of a job step": (f'srun -N1 docker exec c bash -c "{RUN}"\n', [EIGHT]),
    "a python whose folder is unknown, behind srun": (
        (
            'LAUNCH="$1/bin/python -m torch.distributed.run --nnodes=2 --nproc-per-node=8"\n'
            'srun -n 2 bash -c "$LAUNCH $1/pretrain_gpt.py --a 1"\n'
        ),
        [("python -m torch.distributed.run", "pretrain_gpt.py", ["--a", "1"], [16])],
    ),
    "a script that is written to a file": (
        'CMD="pretrain_gpt.py --a 1"\ncat > job.sh <<EOM\n#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n'
        'srun bash -c "python -u $CMD"\nEOM\nsbatch job.sh\n',
        [("srun", "pretrain_gpt.py", ["--a", "1"], [8])],
    ),
    "a script that is written for the tasks of another": (
        "cat > rank.sh <<'EOM'\n#!/bin/bash\npython pretrain_gpt.py --a 1\nEOM\nsrun bash rank.sh\n",
        [("srun", "pretrain_gpt.py", ["--a", "1"], ["srun does not give the number of tasks"])],
    ),
    "a text that is written to a file": ("cat > notes.txt <<EOM\ntorchrun pretrain_gpt.py --a 1\nEOM\n", []),
    "in another kind of container": (f"srun -n2 singularity exec -B /x image {RUN}\n", [EIGHT]),
    "an entry that only the caller knows": (
        "torchrun --nproc_per_node 8 $2 --a 1\n",
        [("torchrun", "", ["--a", "1"], [8])],
    ),
    "a name that one branch ends": (
        (
            'S=""\n[ -n "$A" ] && S="-long"\nARGS="--a 1 --save /x$S/checkpoints"\n'
            "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n"
        ),
        [("torchrun", "pretrain_gpt.py", ["--a", "1", "--save"], [8])],
    ),
    "python alone": ("python pretrain_gpt.py --a 1\n", [("python", "pretrain_gpt.py", ["--a", "1"], [1])]),
    "python behind something unknown": (
        "$L python pretrain_gpt.py --a 1\n",
        [("python", "pretrain_gpt.py", ["--a", "1"], ["$L may start several"])],
    ),
    "python with a stated world": (
        "export WORLD_SIZE=4\npython pretrain_gpt.py --a 1\n",
        [("python", "pretrain_gpt.py", ["--a", "1"], [4])],
    ),
    "python with a world that is unknown": (
        "export WORLD_SIZE=$SLURM_NTASKS RANK=$SLURM_PROCID\npython pretrain_gpt.py --a 1\n",
        [("python", "pretrain_gpt.py", ["--a", "1"], ["$SLURM_NTASKS"])],
    ),
    "python as one rank of several": (
        "export LOCAL_RANK=$SLURM_LOCALID\npython pretrain_gpt.py --a 1\n",
        [("python", "pretrain_gpt.py", ["--a", "1"], ["$SLURM_LOCALID identifies a rank"])],
    ),
    "python that is told its rank": (
        "python pretrain_gpt.py --rank $OMPI_COMM_WORLD_RANK\n",
        [("python", "pretrain_gpt.py", ["--rank"], ["$OMPI_COMM_WORLD_RANK identifies a rank"])],
    ),
    "python that is told its world behind a file that is not read": (
        'source "$1"\nRANK=0 WORLD_SIZE=1 python pretrain_gpt.py --a 1\n',
        [("python", "pretrain_gpt.py", ["--a", "1"], [1])],
    ),
    "comparisons by a single = are joined as bash joins them": (
        'T=C; U=\nif [[ "$T" = A || "$T" = B || "$T" = D ]]; then A=1; else A=2; fi\n'
        'if [[ "$T" = A || "$T" = C && "$U" != x ]]; then B=1; else B=2; fi\n'
        'if [ "$T" = A -o "$T" = C -a "$U" = "" ]; then C=1; else C=2; fi\n'
        'if [[ ("$T" = A || "$T" = C) && "$U" = x ]]; then D=1; else D=2; fi\n'
        "torchrun --nproc_per_node 8 pretrain_gpt.py $A $B $C $D\n",
        [("torchrun", "pretrain_gpt.py", ["2", "1", "1", "2"], [8])],
    ),
    "a value for an array is its first element": (
        'N=(64 128)\nfor i in "${!N[@]}"; do\n  N=${N[$i]}\n  torchrun --nproc_per_node 8 pretrain_gpt.py $N\ndone\n',
        [("torchrun", "pretrain_gpt.py", ["64"], [8]), ("torchrun", "pretrain_gpt.py", ["128"], [8])],
    ),
    "python where another file may say its world": (
        "source mpi_variables.sh\npython pretrain_gpt.py --a 1\n",
        [("python", "pretrain_gpt.py", ["--a", "1"], ["a file that is not read may set WORLD_SIZE"])],
    ),
    "a retry that ends": (
        (
            'run() {\n  python pretrain_gpt.py --a "$1"\n'
            '  if [[ "$?" != 0 ]] && [[ "$NAME" == x ]] && [[ "$1" -gt 1 ]]; then run "$(($1-1))"; fi\n}\nrun 2\n'
        ),
        [("python", "pretrain_gpt.py", ["--a", "2"], [1]), ("python", "pretrain_gpt.py", ["--a", "1"], [1])],
    ),
    "a placeholder that a shell would take for redirections": (
        f"A=<Specify path>\n\n{RUN} --c <N>\n",
        [("torchrun", "pretrain_gpt.py", ["--a", "1", "--c", "<N>"], [8])],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_launches(name: str) -> None:
    text, wanted = SCRIPTS[name]
    assert [shown(launch) for launch in launches(text)] == wanted


@pytest.mark.parametrize("words", ["${ARGS[@]}", '"${ARGS[@]}"', '--x "${ARGS[@]}" --y'])
def test_a_list_that_an_unread_file_may_begin_is_open(words: str) -> None:
    (launch,) = launches(f"source params.sh\nARGS+=(--a 1)\ntorchrun --nproc_per_node 8 pretrain_gpt.py {words}\n")
    assert launch.open
    assert [word.text for word in launch.words if word.text in ("--a", "1")] == ["--a", "1"]


def test_a_list_that_only_this_script_makes_is_whole() -> None:
    (launch,) = launches('ARGS+=(--a 1)\ntorchrun --nproc_per_node 8 pretrain_gpt.py "${ARGS[@]}"\n')
    assert not launch.open


def test_branches_that_pile_up_take_no_long_time() -> None:
    grows = "".join(f'if [ -n "$Q{n}" ]; then A="--a{n} $A"; else A="--b{n} $A"; fi\n' for n in range(40))
    with takes_at_most(20):
        (launch,) = launches(f'A="--a"\n{grows}torchrun --nproc_per_node 8 pretrain_gpt.py $A --z\n')
    assert launch.open
