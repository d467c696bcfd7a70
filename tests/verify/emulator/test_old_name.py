"""The emulator's first name leads to the same functions as its present one."""

from __future__ import annotations

from porter.verify import emulator, ptx
from porter.verify.emulator.decode import fatbin


def test_the_old_name_has_everything_that_was_documented():
    assert ptx.__all__ == emulator.__all__
    assert all(getattr(ptx, name) is getattr(emulator, name) for name in emulator.__all__)
    assert ptx.fatbin.ptx_images is fatbin.ptx_images
