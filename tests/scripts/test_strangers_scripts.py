"""Scripts in the style of public repositories: variables set in another branch, arrays with unknown words."""

from __future__ import annotations

import pytest

import preflight

LAUNCH = "torchrun --nproc-per-node 4 pretrain_gpt.py --num-layers 8\n"


def rules(script: str) -> set[str]:
    return {finding.rule for finding in preflight.check_text(script, name="run.sh").findings}


@pytest.mark.parametrize(
    "inside",
    [
        'PREFIX="${DATA}/x"\n  if [ -f "${PREFIX}.bin" ]; then echo; fi',
        'for i in $(seq 1 3); do\n  PREFIX="$i"\n  [ -f "$PREFIX" ] && echo\n  done',
        'PREFIX=$(cat f)\n  if [[ -n "$PREFIX" && "$PREFIX" != 1 ]]; then echo; fi',
        'PREFIX+=x; test -n "$PREFIX"',
        '{ PREFIX=a; }; [ "$PREFIX" = a ] && echo',
        'PREFIX=a cmd; PREFIX=b\n  [ "$PREFIX" = b ] && echo',
        'PREFIX[0]=a\n  [ "$PREFIX" = b ] && echo',
        'case x in x) PREFIX=1;; esac\n  [ "$PREFIX" = 1 ] && echo',
        'while read -r line; do PREFIX=$line; [ "$PREFIX" = 1 ] && echo; done < f',
        '(PREFIX=1; [ "$PREFIX" = 1 ] && echo)',
    ],
)
def test_a_name_that_another_branch_sets_is_set(inside: str) -> None:
    script = f'set -eu\nif [ -n "${{DATA:-}}" ]; then\n  {inside}\nfi\n{LAUNCH}'
    assert "unset-variable" not in rules(script)


@pytest.mark.parametrize(
    "test",
    [
        '[ "$PREFIX" = 1 ] && echo',
        '[[ -n "$PREFIX" ]] && echo',
        'if [ "$PREFIX" == 1 ]; then echo; fi',
        'MY_PREFIX=1; [ "$PREFIX" = 1 ] && echo $MY_PREFIX',
    ],
)
def test_a_name_that_nothing_sets_stops_the_script(test: str) -> None:
    assert "unset-variable" in rules(f"set -eu\n{test}\n{LAUNCH}")


@pytest.mark.parametrize(
    ("nodes", "devices"),
    [
        ('($(cat "$PBS_NODEFILE" | sort -u))', None),
        ("( $(scontrol show hostnames $SLURM_JOB_NODELIST) )", None),
        ("(`cat hosts`)", None),
        ("($HOSTLIST)", None),
        ("(${HOSTLIST//,/ })", None),
        ("(first $OTHERS)", None),
        ("(a b)", 8),
        ("(a b c)", 12),
        ('("$FIRST" "$SECOND")', 8),
        ('("$(hostname)")', 4),
    ],
)
def test_an_array_counts_only_where_its_words_are_known(nodes: str, devices: int | None) -> None:
    script = f"NODES={nodes}\nN=${{#NODES[@]}}\n{LAUNCH.replace('torchrun', 'torchrun --nnodes=$N')}"
    (job,) = preflight.check_text(script, name="run.sh").jobs
    assert (job.cluster.count.raw if job.cluster.count.known else None) == devices


@pytest.mark.parametrize(("load", "told"), [('""', False), ("", False), ("/data/llama", True), ("$1", True)])
def test_a_folder_that_is_left_empty_is_not_lost(load: str, told: bool) -> None:
    script = f"CKPT_SAVE_DIR=/data/save\nCKPT_LOAD_DIR={load}\n"
    script += LAUNCH.replace("\n", " --save $CKPT_SAVE_DIR --load $CKPT_SAVE_DIR\n")
    assert ("unused-path" in rules(script)) is told


NETWORK = "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 128 --max-position-embeddings 128"
MORE = 'if [ "$RESUME" = true ]; then\n  {add}\nfi'


@pytest.mark.parametrize(
    ("command", "add", "start"),
    [
        ("pretrain_gpt.py", 'CMD="$CMD --load x"', "torchrun --nproc_per_node 4 $CMD"),
        ("pretrain_gpt.py", 'export CMD="$CMD --load x"', "torchrun --nproc_per_node 4 $CMD"),
        ("$(pwd)/pretrain_gpt.py", 'CMD="$CMD --load x"', "torchrun --nproc_per_node 4 $CMD"),
        ("$ROOT/pretrain_gpt.py", 'CMD="$CMD --load x"', "srun python -u $CMD"),
        ("Megatron-LM/pretrain_gpt.py", 'CMD="$CMD "', "srun python -u $CMD"),
        ("pretrain_gpt.py", 'CMD+=" --load x"', "srun singularity exec x.sif python3 $CMD"),
        ("pretrain_gpt.py", 'export CMD="$CMD --load x"', "srun bash -c '$LAUNCHER --node_rank $SLURM_PROCID $CMD'"),
        ("pretrain_gpt.py", 'CMD="$CMD --load x"', 'srun bash -c "$LAUNCHER --node_rank 0 $CMD"'),
        ("pretrain_gpt.py", 'CMD="$CMD \\\n --load x \\\n"', "$LAUNCHER $CMD"),
        ("python pretrain_gpt.py", 'CMD="$CMD --load x"', "srun $CMD"),
    ],
)
def test_a_program_to_which_a_branch_adds_options_is_one_launch(command: str, add: str, start: str) -> None:
    launcher = 'export LAUNCHER="python -u -m torch.distributed.run --nproc_per_node 4"'
    script = f'{launcher}\nexport CMD="{command} {NETWORK} "\n{MORE.format(add=add)}\n{start}\n'
    (job,) = preflight.check_text(script, name="run.sh").jobs
    assert job.arguments.get("num_layers").raw == 2
    assert all(word.maybe for word in job.arguments.words if word.text == "--load")


@pytest.mark.parametrize("add", ['CMD="other.py --load x"', 'CMD="x $CMD"', 'CMD="$CMD more.py"', "CMD=$OTHER"])
def test_a_program_that_a_branch_replaces_is_unknown(add: str) -> None:
    script = f'CMD="pretrain_gpt.py {NETWORK} "\n{MORE.format(add=add)}\ntorchrun --nproc_per_node 4 $CMD\n'
    assert not preflight.check_text(script, name="run.sh").jobs


@pytest.mark.parametrize(
    "after",
    [
        "singularity exec -B $B x.sif python3 tools/throughput.py logs/x.out",
        "python tools/throughput.py logs/x.out",
        "python3 -m tools.report out",
        "srun python collect.py",
        "",
    ],
)
def test_a_program_behind_a_script_that_is_not_here_is_a_launch_beside_others(after: str) -> None:
    script = f'launcher="$PWD/launcher.sh"\nsrun singularity exec x.sif $launcher pretrain_gpt.py {NETWORK}\n{after}\n'
    report = preflight.check_text(script, name="run.sh")
    assert [job.arguments.get("num_layers").raw for job in report.jobs] == [2]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ('GPT_ARGS="$GPT_ARGS --swiglu"', False),
        ("GPT_ARGS=$GPT_ARGS' --swiglu'", False),
        ('GPT_ARGS="${GPT_ARGS} --swiglu"', False),
        ('export GPT_ARGS="$GPT_ARGS --swiglu"', False),
        ('GPT_ARGS="  $GPT_ARGS --swiglu"', False),
        ('OTHER="$GPT_ARGS --swiglu"\nGPT_ARGS="--bf16"', True),
        ('OTHER="--swiglu $GPT_ARGS"\nGPT_ARGS="--bf16"', True),
    ],
)
def test_the_first_piece_of_a_group_that_is_put_together_is_no_missing_group(first: str, told: bool) -> None:
    script = f"{first}\ntorchrun --nproc_per_node 8 pretrain_gpt.py {NETWORK} $OTHER $GPT_ARGS\n"
    report = preflight.check_text(script, name="run.sh")
    named = [
        one.message for one in report.findings if one.rule == "undefined-option-variable" and "GPT_ARGS" in one.message
    ]
    assert bool(named) is told
