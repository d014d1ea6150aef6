"""Process groups are known by their ranks, in whichever form a program states them."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer import judged, write_tree

KNOWN = [
    ("[0, 1]", 2, 0),
    ("(0, 1, 2, 3)", 4, 0),
    ("range(8)", 8, 0),
    ("range(0, 8, 4)", 2, 0),
    ("range(2, 4)", 2, -1),
    ("list(range(1, 8, 2))", 4, -1),
    ("range(3, -1, -1)", 4, 3),
    ("[i * 2 for i in range(4)]", 4, 0),
    ("tuple(range(4, 8))", 4, -1),
    ("range(0)", 0, -1),
]


@pytest.mark.parametrize(("ranks", "size", "rank"), KNOWN)
def test_a_group_has_the_size_of_its_ranks(ranks: str, size: int, rank: int, tmp_path: Path) -> None:
    validate = f"""
        group = torch.distributed.new_group({ranks})
        found = torch.distributed.get_world_size(group=group), torch.distributed.get_rank(group=group)
        raise ValueError(f"{{found[0]}} processes, here {{found[1]}}")
    """
    verdict = judged(write_tree(tmp_path, validate, head="import torch"))
    assert [one.message for one in verdict.refusals if one.certain] == [f"{size} processes, here {rank}"]


@pytest.mark.parametrize("ranks", ["None", "'0 1'", "['0', '1']", "range(1 << 40)", "range(1 << 80)", "{0, 1}", "3"])
def test_a_group_of_other_ranks_is_unknown(ranks: str, tmp_path: Path) -> None:
    validate = f"""
        group = torch.distributed.new_group({ranks})
        if torch.distributed.get_world_size(group=group) == 2:
            raise ValueError("two")
    """
    verdict = judged(write_tree(tmp_path, validate, head="import torch"))
    assert not [one for one in verdict.refusals if one.certain]


def test_groups_of_ranges_are_made_where_this_process_belongs_to_them(tmp_path: Path) -> None:
    """Forks of older releases write them so."""
    validate = """
        global GROUP
        rank = torch.distributed.get_rank()
        for i in range(4):
            ranks = range(i * 2, (i + 1) * 2)
            group = torch.distributed.new_group(ranks)
            if rank in ranks:
                GROUP = group
        assert GROUP is not None, "no group"
        assert torch.distributed.get_world_size(group=GROUP) == args.width, "another width"
    """
    root = write_tree(tmp_path, validate, head="import torch\nGROUP = None")
    assert judged(root, ["--width", "2"]).outcome == "accepts"
    assert [one.message for one in judged(root, ["--width", "4"]).refusals] == ["another width"]
