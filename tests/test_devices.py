"""The table of accelerators: each name means one, however it is spelt."""

from __future__ import annotations

from collections import Counter

import pytest

from preflight.devices import devices
from preflight.engine import find_device

NAMES = ("A100-80GB", "dgx_a100", "dgx_h100", "H200", "GH200", "B200", "b300", "GB200", "gb300", "h20", "l40s", "MI300X", "910B", "Ascend 910C", "910b4")


def test_no_name_means_two() -> None:
    said = Counter(name for device in devices() for name in {_bare(device.name), *map(_bare, device.aliases)})
    assert not [name for name, count in said.items() if count > 1]


def _bare(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


@pytest.mark.parametrize("name", NAMES)
def test_the_accelerators_people_train_on_are_known(name: str) -> None:
    device = find_device(devices(), name)
    assert device is not None
    assert 24e9 <= device.memory <= 300e9
    assert 0.9 < device.budget / device.memory < 1.08  # what is sold as 80 GB are GiB
