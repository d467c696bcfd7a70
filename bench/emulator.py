"""Memory, start-up and speed of the emulator: `python -m bench.emulator` writes bench/results/emulator.json.

Each figure is measured in a process of its own. Memory: the peak of the resident set during a launch over what it was
before the buffers were made, as a multiple of the buffers. Start-up: from PTX text to the end of a small launch, the
libraries imported before. Times are CPU seconds, since the machine may be shared; `wall` is beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from porter.verify import emulator as ptx

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/emulator.json"
SAMPLES = ROOT / "tests/verify/emulator/ptx_samples/kernels.ptx"
KERNEL = "rms_norm_bf16"
TOKENS = HIDDEN = 4096
REPEATS = 3

UNCHECKED = ptx.Checks(uninitialised=False)
CHECKED = ptx.Checks(shared_races=True, global_races=True)
MEMORY = {  # limit, checks
    "unchecked": (1.2, UNCHECKED),
    "all but the global race check": (3.0, ptx.Checks(shared_races=True)),
    "all": (8.0, CHECKED),
    "all, and traffic counts": (8.0, ptx.Checks(shared_races=True, global_races=True, counts=True)),
}
SPEED = {  # limit in G thread-instructions a second of one core, checks, backend
    "unchecked": (1.0, UNCHECKED, "auto"),
    "all": (0.4, CHECKED, "auto"),
    "all, interpreted": (None, CHECKED, "numpy"),
}
FIRST, CACHED = 2.0, 0.06  # limits in seconds


def arrays(tokens: int, hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0x3C00, 0x4080, (tokens, hidden), dtype=np.uint16)  # bf16 between 0.008 and 4
    w = rng.integers(0x3C00, 0x4080, hidden, dtype=np.uint16)
    out = np.full((tokens, hidden), 0xFFFF, np.uint16)
    return out, x, w


def launch(module: ptx.Module, data: tuple[np.ndarray, ...], checks: ptx.Checks, backend: str = "auto") -> ptx.Result:
    out, x, w = data
    buffers = [
        ptx.Buffer(out, "out", initialised=False),
        ptx.Buffer(x, "x", writable=False),
        ptx.Buffer(w, "w", writable=False),
    ]
    return ptx.launch(module, KERNEL, x.shape[0], 512, [*buffers, x.shape[1], 1e-6], checks=checks, backend=backend)


def status(field: str) -> int:
    """A memory figure of this process in bytes (Linux)."""
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    assert found is not None
    return int(found.group(1)) * 1024


def memory(name: str) -> dict[str, Any]:
    """The peak of one launch. Code is compiled before, on a small launch: its memory does not depend on the buffers."""
    checks = MEMORY[name][1]
    module = ptx.load(SAMPLES.read_text())
    launch(module, arrays(64, HIDDEN), checks, "auto" if checks.counts else "llvm")
    before = status("VmRSS")
    data = arrays(TOKENS, HIDDEN)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    result = launch(module, data, checks)
    assert result.ok, result.violations
    size = sum(a.nbytes for a in data)
    return {"buffers": size, "peak": status("VmHWM") - before, "ratio": (status("VmHWM") - before) / size,
            "backend": result.backend}  # fmt: skip


def speed(name: str) -> dict[str, Any]:
    _, checks, backend = SPEED[name]
    module = ptx.load(SAMPLES.read_text())
    tokens = TOKENS if backend == "auto" else TOKENS // 8  # time is proportional
    data = arrays(tokens, HIDDEN)
    seconds, wall = [], []
    for _ in range(REPEATS):
        start = time.process_time(), time.perf_counter()
        result = launch(module, data, checks, backend)
        seconds.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
        assert result.ok
    count = result.counts["thread_instructions"]
    return {"thread_instructions": count, "seconds": min(seconds), "rate": count / min(seconds) / 1e9,
            "backend": result.backend, "tokens": tokens}  # fmt: skip


def start_up(name: str) -> dict[str, Any]:
    """CPU and wall seconds of a small launch; `name` is a folder of `make_subject`, a backend and a name in SPEED."""
    import llvmlite.binding  # noqa: F401

    import porter.verify.emulator.llvm.engine  # noqa: F401

    path, backend, checks = name.split("|")
    folder = Path(path)
    told = json.loads((folder / "subject.json").read_text())
    text = (folder / "kernel.ptx").read_text()
    args = [ptx.Buffer(np.load(folder / a), a) if isinstance(a, str) else a for a in told["args"]]
    start = time.process_time(), time.perf_counter()
    module = ptx.load(text)
    result = ptx.launch(
        module,
        told["entry"],
        told["grid"],
        told["block"],
        args,
        smem_bytes=told["smem"],
        checks=SPEED[checks][1],
        backend=backend,
    )
    seconds = {"seconds": time.process_time() - start[0], "wall": time.perf_counter() - start[1]}
    assert "out-of-bounds" not in {v.kind for v in result.violations}, result.violations[0]
    return seconds


def make_subject(folder: Path) -> int:
    """Write the reference kernel's instance whose length is nearest to 600 instructions, and a launch; its length."""
    from porter.case.instances import instance_values
    from porter.case.reader import load_case
    from porter.cxx.types import pointee
    from porter.frontend.parse.source import ParseOptions, parse_source
    from porter.source import Source
    from porter.verify.emulator.decode.parse import function
    from porter.verify.launches.inputs import make_inputs
    from porter.verify.original.build import build_original

    best: tuple[int, Any] | None = None
    for path in sorted((ROOT / "reference_kernels").rglob("*.case.toml")):
        case = load_case(path)
        unit = parse_source(Source.read(case.source_path), ParseOptions(arch="sm_90a"))
        info = unit.kernel(case.kernel)
        assert info is not None
        for build in build_original(unit.source, unit.options, info, [i.instance for i in case.instances], unit=unit):
            length = len(function(ptx.load(build.ptx), build.entry).code)
            if best is None or abs(length - 600) < abs(best[0] - 600):
                best = (length, (case, info, build))
    assert best is not None
    case, info, build = best[1]
    values = dict(instance_values(info, build.instance))
    chosen = next(i for i in case.instances if i.instance == build.instance)
    points = [p for p in case.instance_points(chosen, values) if not case.launch_at(p, values).is_empty]
    point = next(p for p in points if p.elements > 1000)
    shape = case.launch_at(point, values)
    buffers = make_inputs(case, point, values)
    args: list[Any] = []
    for p in info.params:
        if pointee(p.type) is None:
            args.append(point.scalars[p.name])
        else:
            np.save(folder / f"{p.name}.npy", buffers[p.name].raw)
            args.append(f"{p.name}.npy")
    (folder / "kernel.ptx").write_text(build.ptx)
    told = {"entry": build.entry, "grid": shape.grid, "block": shape.block, "smem": shape.smem, "args": args}
    (folder / "subject.json").write_text(json.dumps(told))
    return best[0]


def child(*arguments: str, **environment: str) -> dict[str, Any]:
    """One measurement in a process of its own, on one core."""
    command = [sys.executable, "-m", "bench.emulator", "--child", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured() -> dict[str, Any]:
    found: dict[str, Any] = {"memory": {}, "speed": {}}
    for name, (limit, _) in MEMORY.items():
        found["memory"][name] = {"limit": limit} | child("memory", name)
        print(name, found["memory"][name], file=sys.stderr, flush=True)
    for name, (limit, *_) in SPEED.items():
        found["speed"][name] = ({"limit": limit} if limit else {}) | child("speed", name)
        print(name, found["speed"][name], file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as work:
        length = make_subject(Path(work))
        cache = {"PORTER_CACHE": f"{work}/cache"}
        new = child("start_up", f"{work}|auto|all", **cache)
        figures: dict[str, Any] = {"instructions": length, "new, all checks": {"limit": FIRST} | new}
        for checks in ("unchecked", "all"):
            first = child("start_up", f"{work}|llvm|{checks}", **cache)
            again = [child("start_up", f"{work}|llvm|{checks}", **cache) for _ in range(REPEATS)]
            figures[f"new, compiled, checks: {checks}"] = first
            best = min(again, key=lambda a: float(a["seconds"]))
            figures[f"cached, compiled, checks: {checks}"] = {"limit": CACHED} | best
    found["start_up"] = figures
    print(found["start_up"], file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.emulator", description=__doc__)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        what, name = args.child
        print(json.dumps({"memory": memory, "speed": speed, "start_up": start_up}[what](name)))
        return 0
    record = {
        "schema": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "load": os.getloadavg()[0],
        },
        "kernel": f"{KERNEL} {TOKENS}x{HIDDEN}",
        **measured(),
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
