"""The emulator's own interface: torch tensors as buffers, PTX out of fat binaries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.emulator.decode import fatbin

SAMPLE = Path(__file__).parent / "ptx_samples/kernels.ptx"


def test_torch_tensors_are_buffers() -> None:
    torch = pytest.importorskip("torch")
    module = ptx.load(SAMPLE.read_text())
    x = torch.randn(5, 768).bfloat16()
    w = torch.randn(768).bfloat16()
    out = torch.full_like(x, float("nan"))
    result = ptx.launch(module, "rms_norm_bf16", 5, 96, [out, x, w, 768, 1e-6])
    assert result.ok, result.violations
    want = torch.nn.functional.rms_norm(x.double(), (768,), w.double(), 1e-6)
    assert torch.allclose(out.double(), want, rtol=1e-2, atol=1e-6)


def test_overlapping_tensors_share_their_memory() -> None:
    torch = pytest.importorskip("torch")
    module = ptx.load(SAMPLE.read_text())
    whole = torch.randn(4, 128)
    rows = whole[1:3]  # in place: output and input are the same rows
    want = torch.softmax(rows, dim=1)
    before = whole.clone()
    assert ptx.launch(module, "softmax_f32", 2, 64, [rows, rows, 128], smem_bytes=512).ok
    assert torch.allclose(whole[1:3], want, atol=1e-6)
    assert torch.equal(whole[0], before[0]) and torch.equal(whole[3], before[3])
    beyond = ptx.launch(module, "softmax_f32", 3, 64, [rows, rows, 128], smem_bytes=512)
    assert {v.kind for v in beyond.violations} == {"out-of-bounds"}
    assert torch.equal(whole[3], before[3])


def test_tensors_elsewhere_are_refused() -> None:
    torch = pytest.importorskip("torch")
    module = ptx.load(SAMPLE.read_text())
    x = torch.randn(2, 128)
    with pytest.raises(ptx.LaunchError, match="meta"):
        ptx.launch(module, "softmax_f32", 2, 64, [x, x.to("meta"), 128], smem_bytes=512)
    with pytest.raises(ptx.LaunchError, match="gradient"):
        ptx.launch(module, "softmax_f32", 2, 64, [x, x.clone().requires_grad_(), 128], smem_bytes=512)


def test_the_emulator_imports_no_torch() -> None:
    code = "import sys, porter.verify.emulator as p; assert 'torch' not in sys.modules and 'clang' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- fat binaries


def _tool() -> str:
    import nvidia

    for folder in nvidia.__path__:
        found = shutil.which("fatbinary", path=f"{folder}/cu13/bin")
        if found:
            return found
    pytest.skip("no fatbinary: pip install nvidia-cuda-nvcc")


def _fatbin(tmp_path: Path, mode: str) -> bytes:
    pytest.importorskip("nvidia")
    made = tmp_path / f"{mode}.fatbin"
    images = [f"--image3=kind=ptx,sm={arch},file={SAMPLE}" for arch in ("90", "90a")]
    subprocess.run([_tool(), f"--create={made}", "-64", f"--compress-mode={mode}", *images], check=True)
    return made.read_bytes()


@pytest.mark.parametrize("mode", ["none", "speed"])
def test_a_fat_binary_gives_its_ptx(tmp_path: Path, mode: str) -> None:
    images = fatbin.ptx_images(_fatbin(tmp_path, mode))
    assert [i.arch for i in images] == [90, 90]
    module, want = ptx.load(images[1].text), ptx.load(SAMPLE.read_text())
    assert module.entries == want.entries
    x = np.random.default_rng(0).standard_normal((2, 128)).astype(np.float32)
    outs = []
    for m in (module, want):
        outs.append(np.zeros_like(x))
        assert ptx.launch(m, "softmax_f32", 2, 64, [ptx.Buffer(outs[-1]), ptx.Buffer(x), 128], smem_bytes=512).ok
    assert np.array_equal(*outs) and outs[0].any()


def test_zstd_is_read_or_refused_by_name(tmp_path: Path) -> None:
    data = _fatbin(tmp_path, "balance")
    try:
        import zstandard  # noqa: F401
    except ImportError:
        with pytest.raises(fatbin.FatbinError, match="zstd"):
            fatbin.ptx_images(data)
    else:
        assert fatbin.ptx_images(data)[0].text.count(".entry") == SAMPLE.read_text().count(".entry")


@pytest.mark.parametrize("mode", ["none", "speed"])
def test_damaged_fat_binaries_are_refused(tmp_path: Path, mode: str) -> None:
    """Cut anywhere, or with any byte of the headers changed: an answer or a FatbinError, never another exception."""
    data = _fatbin(tmp_path, mode)
    refused = 0
    rng = np.random.default_rng(1)
    for at in [*range(0, 0x62), *rng.integers(0, len(data), 100)]:
        for bad in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            try:
                fatbin.ptx_images(bad)
            except fatbin.FatbinError:
                refused += 1
    assert refused > 100


def test_files_without_ptx_are_named() -> None:
    elf = Path(sys.executable).resolve().read_bytes()[:4096]
    with pytest.raises(fatbin.FatbinError, match="ELF"):
        fatbin.ptx_images(elf)
    with pytest.raises(fatbin.FatbinError, match="no PTX among its 0"):
        fatbin.ptx_images(b"")
