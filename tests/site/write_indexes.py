"""Writes the archives of indexes, and what the real GPTDataset draws from them, with Megatron-LM's own code.

    python write_indexes.py CHECKOUT SEED COUNT OUT.tar.xz

CHECKOUT is a tree of Megatron-LM at a release's tag with `megatron/core/datasets/helpers_cpp` compiled; torch for CPU,
numpy and packaging are needed. Tests do not need this program: they read what it has written.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SPLITS = ("969,30,1", "90,10,0", "100,0,0", "80,10,10", "70,30,0", "1", "98.5,1,.5", "0,50,50", "99,0,1", "1,1,1")


def written(at: int, chance: random.Random, builder: Any, torch: Any, numpy: Any) -> tuple[list[str], dict[str, int]]:
    """The words of `--data-path` for new datasets, and the sizes of their tokens."""
    names, sizes = [], {}
    for number in range(chance.choice((1, 1, 2, 3, 4))):
        name = f"{at}-a{number}"
        made = builder(f"{name}.bin", dtype=chance.choice((numpy.int32, numpy.uint16)))
        for _ in range(chance.randint(1, 60)):
            sentences = [chance.randint(1, 90) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
            made.add_document(torch.zeros(sum(sentences), dtype=torch.int64), sentences)
        made.finalize(f"{name}.idx")
        names.append(name)
        sizes[f"{name}.bin"] = os.path.getsize(f"{name}.bin")
    if len(names) == 1 or chance.random() < 0.25:
        return names, sizes
    return [word for name in names for word in (chance.choice(("0.3", "1", "2", "17.5")), name)], sizes


def drawn(case: dict[str, Any], megatron: Any) -> None:
    """Add what the builder of this release draws for a run, and whether it dies."""
    data, parsed = megatron
    found = case["drawn"] = []

    class Recorded(data.GPTDataset):  # type: ignore[misc, name-defined]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            tokens = self._get_num_tokens_per_epoch()
            where = [self.dataset_path, self.index_split.value, tokens]
            found.append([*where, self._get_num_epochs(tokens), self.num_samples, self.sample_index.shape[0] - 1])

        def _get_num_epochs(self, tokens: int) -> int:
            if tokens == 0 and self.num_samples is not None:
                raise RuntimeError("its loop over epochs does not end without a token")
            return int(super()._get_num_epochs(tokens))

    evaluated = (case["iters"] // case["eval_interval"] + 1) * case["eval_iters"] * case["gbs"]
    samples = (case["iters"] * case["gbs"], evaluated, case["eval_iters"] * case["gbs"])
    surplus = "mid_level_dataset_surplus"
    try:
        config = data.GPTDatasetConfig(
            random_seed=1234,
            sequence_length=case["seq"],
            blend=parsed(case["words"]),
            split=case["split"],
            tokenizer=SimpleNamespace(vocab_size=100, unique_identifiers={}, pad=0, eod=0),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            **({surplus: 0.005} if hasattr(data.GPTDatasetConfig, surplus) else {}),
        )
        data.BlendedMegatronDatasetBuilder(Recorded, samples, lambda: True, config).build()
    except Exception as error:
        case["dies"], case["died"] = True, f"{type(error).__name__}: {error}"[:200]
    case["drawn"] = sorted(found, key=lambda one: one[:2])


def apart(case: dict[str, Any], megatron: Any) -> dict[str, Any]:
    """The same in a process of its own, which may end at an assertion in C++."""
    out, into = os.pipe()
    if not (child := os.fork()):
        drawn(case, megatron)
        with os.fdopen(into, "w") as stream:
            json.dump(case, stream)
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return dict(json.loads(text)) if text else {**case, "drawn": [], "dies": True, "died": f"signal {status & 127}"}


def main(checkout: str, seed: str, count: str, out: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.path.insert(0, checkout)
    from write_saved import Absent

    sys.meta_path.insert(0, Absent())
    import numpy
    import torch
    from megatron.core.datasets import blended_megatron_dataset_builder, gpt_dataset, indexed_dataset
    from megatron.core.datasets.utils import get_blend_from_list

    gpt_dataset.BlendedMegatronDatasetBuilder = blended_megatron_dataset_builder.BlendedMegatronDatasetBuilder
    chance, cases, archive = random.Random(int(seed)), [], Path(out).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for at in range(int(count)):
            words, sizes = written(at, chance, indexed_dataset.IndexedDatasetBuilder, torch, numpy)
            case = {
                "words": words,
                "bin": sizes,
                "seq": chance.choice((8, 16, 33, 64)),
                "gbs": chance.choice((1, 4, 8, 16)),
                "iters": chance.randint(1, 120),
                "eval_iters": chance.choice((1, 1, 2, 5)),
                "eval_interval": chance.choice((1, 7, 100)),
                "split": chance.choice(SPLITS),
                "dies": False,
            }
            cases.append(apart(case, (gpt_dataset, get_blend_from_list)))
        Path("cases.json").write_text(json.dumps(cases), encoding="utf-8")
        with tarfile.open(archive, "w:xz") as made:
            for path in sorted(Path().glob("*.idx")):
                made.add(path, path.name)
            made.add("cases.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
