"""Every construct of constructs/*.cu, original by NVRTC and port by CuTeDSL, run on the same bytes: equal to the
last bit."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from porter.config import PortConfig
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance, PorterError
from porter.pipeline.stages import Run, translate
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import Program, compile_program, require_nvrtc

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

HERE = Path(__file__).parent / "constructs"
KERNELS = [
    (path.stem, name)
    for path in sorted(HERE.glob("*.cu"))
    for name in re.findall(r"__global__ void (\w+)\(", path.read_text())
]
THREADS = 64
NEEDS = {"random": "curand_kernel.h"}  # headers of optional wheels
ONE = Instance()


@pytest.fixture(scope="module")
def ported(tmp_path_factory):
    """Emits each file's kernels once: {(file, kernel): (source, port path, module)}."""
    folder = tmp_path_factory.mktemp("constructs")
    out = {}
    for path in sorted(HERE.glob("*.cu")):
        source = Source.read(path)
        unit = parse_source(source, ParseOptions())
        for info in unit.kernels:
            module = translate(unit, info, None, PortConfig(), Run(info.name), (ONE,)).module
            port = folder / f"{path.stem}_{info.name}.py"
            port.write_text(module.text)
            out[path.stem, info.name] = (source, port, module)
    return out


def has_header(name):
    import nvidia

    return any(found for root in nvidia.__path__ for found in Path(root).glob(f"*/include/{name}"))


def buffers(seed):
    rng = np.random.default_rng(seed)
    ints = rng.integers(-(2**31), 2**31, 1024).astype(np.int32)
    small = rng.random(1024) < 0.5
    ints[small] = rng.integers(-100, 100, small.sum())
    unsigned = rng.integers(0, 2**32, 1024).astype(np.uint32)
    floats = (rng.standard_normal(1024) * 10 ** rng.uniform(-3, 2, 1024)).astype(np.float32)
    return ints, unsigned, floats


# NVRTC brings the maths functions of its own release (tanhf, erff), the DSL those of another.
ULPS = {("floats", "math"): 1}


@pytest.mark.parametrize(("file", "kernel"), KERNELS)
def test_port_does_what_the_original_does(ported, file, kernel):
    source, port, module = ported[file, kernel]
    assert not module.holes, module.holes
    if file in NEEDS and not has_header(NEEDS[file]):
        pytest.skip(f"{NEEDS[file]} is not installed (pip install nvidia-curand)")
    if file in NEEDS:  # as a whole: a slice's own typedefs do not go with this header
        options = ["--gpu-architecture=sm_90a", "--std=c++17", "-default-device"]
        made = compile_program(Program(source.text, source.path.name, options=options, expressions=[kernel]))
        assert made.ok, made.log
        original = SimpleNamespace(ptx=made.ptx, entry=made.lowered[kernel])
    else:
        original = build_original(source, ParseOptions(), kernel)[0]
    made = compile_port(port, [CompileRequest({}, "sm_90a")])[0]
    assert made.ok, made.error
    for seed in (1, 2):
        results = []
        for text, entry in ((original.ptx, original.entry), (made.ptx, made.entry)):
            i, u, f = buffers(seed)
            args = [ptx.Buffer(a, name=n, initialised=True) for n, a in (("i", i), ("u", u), ("f", f))]
            result = ptx.launch(
                ptx.load(text), entry, grid=(1, 1, 1), block=(THREADS, 1, 1), args=[*args, np.int32(50)]
            )
            assert not result.violations, result.violations[:3]
            results.append((i, u, f.view(np.uint32)))
        for name, a, b in zip("iuf", *results, strict=True):
            distance = np.abs(a.astype(np.int64) - b.astype(np.int64))
            wrong = np.flatnonzero(distance > (ULPS.get((file, kernel), 0) if name == "f" else 0))
            assert not len(wrong), f"{name}[{wrong[:8]}]: original {a[wrong[:8]]}, port {b[wrong[:8]]}"


@pytest.mark.parametrize(("file", "kernel"), KERNELS)
def test_every_line_of_the_body_knows_its_cuda_line(ported, file, kernel):
    source, _, module = ported[file, kernel]
    rows = module.text.splitlines()
    mapped = {e.line for e in module.line_map}
    start = rows.index("@cute.kernel")
    end = next(n for n in range(start, len(rows)) if rows[n].startswith("@cute.jit"))
    body = [n + 1 for n in range(start, end) if rows[n].strip()]
    assert all(n in mapped for n in body), [rows[n - 1] for n in body if n not in mapped]
    assert all(1 <= e.span.line <= len(source.lines) for e in module.line_map if e.span.file == str(source.path))
