"""When one cooperative launch is chosen, and how many blocks of it a device holds."""

from __future__ import annotations

import pytest

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.two_phases import Costs, one_launch, resident_blocks

H200, B200 = Device("sm_90a", 132), Device("sm_100a", 148)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "each"),
    [(128, 32, 0, 16), (1024, 32, 0, 2), (1024, 64, 0, 1), (256, 255, 0, 1), (32, 16, 0, 32), (96, 40, 0, 16),
     (256, 32, 100 << 10, 2), (256, 33, 0, 6)],
)  # fmt: skip
def test_resident_blocks(threads, registers, shared, each):
    assert resident_blocks(H200, threads, registers, shared) == each * 132
    assert resident_blocks(B200, threads, registers, shared) == each * 148


def test_unknown_devices_are_refused():
    with pytest.raises(ValueError, match="sm_75"):
        resident_blocks(Device("sm_75", 40), 128, 32)


def test_a_launch_that_does_not_fit_is_never_cooperative():
    assert not one_launch(H200, 133, 132, 1 << 30)


def test_what_need_not_be_read_again_decides(monkeypatch):
    monkeypatch.setenv("PORTER_PDL", "1")
    assert not one_launch(H200, 132, 132, 0)
    assert one_launch(H200, 132, 132, 8 << 20)
    monkeypatch.setenv("PORTER_PDL", "0")
    assert one_launch(H200, 132, 132, 0)  # a second launch without PDL takes longer than the barrier
    assert not one_launch(H200, 132, 132, 8 << 20, Costs(barrier_us=30.0))
