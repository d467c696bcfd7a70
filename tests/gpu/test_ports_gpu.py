"""The ports of the reference kernels on a GPU, called on torch tensors, against the originals' cubins.

Each kernel runs in a process of its own, several at a time; the tests look at what those processes wrote.
Needs a bundle (`python -m tools.gpu.bundle build/gpu`) in PORTER_GPU_BUNDLE. PORTER_TEST_SEED repeats a run;
PORTER_GPU_RESULTS is where the record of a complete run goes.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted(p.name.removesuffix(".case.toml") for p in (ROOT / "reference_kernels").rglob("*.case.toml"))
CHECKS = (
    "compiles", "matches", "zero_rows", "strided", "narrower", "refuses", "graph", "stream", "determinism", "far_rows",
)  # fmt: skip
PROCESSES = int(os.environ.get("PORTER_GPU_PROCESSES", "8"))
TIMEOUT = 150.0  # seconds a kernel

pytestmark = pytest.mark.gpu


def bundle_folder() -> Path:
    """The bundle to test; skips when there is none or no GPU to run it on."""
    folder = os.environ.get("PORTER_GPU_BUNDLE", "")
    if not folder:
        pytest.skip("PORTER_GPU_BUNDLE is not set: make a bundle with `python -m tools.gpu.bundle build/gpu`")
    if not (Path(folder) / "manifest.json").is_file():
        pytest.skip(f"no bundle in PORTER_GPU_BUNDLE={folder}")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch.cuda is not available")
    return Path(folder).resolve()


def run_kernel(folder: Path, name: str, seed: int, work: Path) -> dict[str, Any]:
    """What the process of one kernel wrote; checks that it did not reach are errors."""
    result = work / f"{name}.json"
    command = [sys.executable, "-m", "tests.gpu.one_kernel", str(folder), name, str(seed), str(result)]
    reason = ""
    with (work / f"{name}.log").open("w") as log:
        try:
            done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT)
            if done.returncode:
                reason = f"the process ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            reason = f"not done after {TIMEOUT:g} s"
    found: dict[str, Any] = {"answers": {}, "seconds": TIMEOUT}
    if result.is_file():
        found = json.loads(result.read_text())
    if reason:
        reason += ": " + " ".join((work / f"{name}.log").read_text()[-400:].split())
    for check in CHECKS:
        found["answers"].setdefault(check, {"status": "error", "detail": reason or "not reached", "data": {}})
    return found


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of every kernel that a selected test asks about."""
    folder = bundle_folder()
    items = [i for i in request.session.items if isinstance(i, pytest.Function) and i.originalname == "test_port"]
    asked = {i.callspec.params["kernel"] for i in items}
    wanted = [k for k in KERNELS if k in asked]
    work = tmp_path_factory.mktemp("gpu")
    seed = int(os.environ.get("PORTER_TEST_SEED", "") or secrets.randbelow(1 << 31))
    print(f"\nseed {seed} (PORTER_TEST_SEED={seed} repeats this run)")
    with ThreadPoolExecutor(PROCESSES) as threads:
        found = dict(zip(wanted, threads.map(lambda k: run_kernel(folder, k, seed, work), wanted), strict=True))
    if wanted == KERNELS:
        write_record(folder, seed, found)
    return found


def write_record(folder: Path, seed: int, found: Mapping[str, Any]) -> None:
    """The record of a complete run: where, with what, and what each kernel gave."""
    import torch

    bundle = json.loads((folder / "manifest.json").read_text())
    kernels = {}
    for name, result in found.items():
        answers = result["answers"]
        instances = answers["matches"]["data"]
        rows = [r for i in instances.values() for r in i["buffers"].values()]
        bad = [c for c, a in answers.items() if a["status"] not in ("pass", "skip")]
        kernels[name] = {
            "status": "fail" if bad else "pass",
            "instances": len(instances),
            "launches": sum(i["launches"] for i in instances.values()),
            "through_function": sum(i["through_function"] for i in instances.values()),
            "bit_equal": bool(rows) and not any(r["different"] for r in rows),
            "different_elements": sum(r["different"] for r in rows),
            "elements": sum(r["elements"] for r in rows),
            "max_ulp": max((r["max_ulp"] for r in rows), default=0),
            "seconds": result["seconds"],
            "checks": {c: f"{a['status']}: {a['detail']}" for c, a in answers.items()},
        }
    record = {
        "schema": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": bundle["commit"],
        "bundle": bundle["made"],
        "seed": seed,
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "versions": {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "dsl": installed("nvidia-cutlass-dsl"),
            "cuda-bindings": installed("cuda-bindings"),
            "original": f"nvrtc {bundle['versions']['nvrtc']}",
        },
        "passed": sum(k["status"] == "pass" for k in kernels.values()),
        "bit_equal": sum(k["bit_equal"] for k in kernels.values()),
        "kernels": kernels,
    }
    path = Path(os.environ.get("PORTER_GPU_RESULTS", "") or ROOT / "bench/results/gpu_ports.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_port(results: Mapping[str, Any], kernel: str, check: str) -> None:
    got = results[kernel]["answers"][check]
    if got["status"] == "skip":
        pytest.skip(got["detail"])
    assert got["status"] == "pass", f"{got['status']}: {got['detail']}"
