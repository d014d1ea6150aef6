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
