"""One public kernel through the pipeline, by its case file; where the sources are, and their include paths."""

from __future__ import annotations

import os
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from porter.config import PortConfig
from porter.model import KernelReport, PorterError, Report
from porter.pipeline.stages import port

VARIABLE = "PORTER_REAL_SOURCES"
CASES = Path(__file__).parent / "cases"
ARCH = ("sm_90a",)
INCLUDE = {
    "flashinfer": ("include", "csrc"),
    "vllm": ("csrc",),
    "apex": ("csrc",),
    "DeepSpeed": ("csrc/includes", "deepspeed/inference/v2/kernels/includes"),
    "bitsandbytes": ("csrc",),
    "pplx-kernels": ("csrc",),
}
DEFINE = {"vllm": ("ENABLE_FP8",), "DeepSpeed": ("BF16_AVAILABLE",)}  # what the repository's own build passes


def sources_folder() -> Path | None:
    """The folder named by PORTER_REAL_SOURCES, None when it is not set or not there."""
    value = os.environ.get(VARIABLE, "")
    return Path(value).resolve() if value and Path(value).is_dir() else None


def described(case: Path) -> dict[str, Any]:
    """The tables of a case file; its `source` is relative to the folder of sources."""
    return tomllib.loads(case.read_text(encoding="utf-8"))


def port_public(case: Path, sources: Path, output: Path, seed: int | None = None) -> tuple[KernelReport, float]:
    """Port and verify the kernel of a case. Raises PorterError when the file as a whole cannot be ported."""
    table = described(case)
    start = time.perf_counter()
    report: Report = port(sources / table["source"], public_config(case, sources, output, seed))
    reports = [k for k in report.kernels if k.kernel == table["kernel"].split("::")[-1]]
    if not reports:
        raise PorterError(*report.diagnostics)
    return reports[0], time.perf_counter() - start


def public_config(case: Path, sources: Path, output: Path, seed: int | None = None) -> PortConfig:
    """How the kernel of a case is ported: its repository's include paths and macros."""
    table = described(case)
    repository = table["source"].split("/")[0]
    return PortConfig(
        output=output,
        include=tuple(str(sources / repository / folder) for folder in INCLUDE.get(repository, ())),
        define=DEFINE.get(repository, ()),
        arch=ARCH,
        kernel=(table["kernel"],),
        case=case,
        force=True,
        seed=seed,
    )


def one_line(report: KernelReport) -> str:
    """What a person wants to know first."""
    if report.holes:
        return "; ".join(f"{h.code} {h.reason}" for h in report.holes[:3])
    bad = [f"{v.check} {v.status.name}: {v.detail}" for v in report.verdicts if v.status.name not in ("PASS", "SKIP")]
    if not report.verdicts:
        bad += [str(d) for d in report.diagnostics[:3]]
    return "; ".join(bad) or "PASS"


if __name__ == "__main__":  # python -m tests.real.port_public CASE...: a person's way to look at a few
    folder = sources_folder()
    assert folder is not None, f"set {VARIABLE}"
    for name in sys.argv[1:]:
        try:
            found, seconds = port_public(Path(name), folder, Path(os.environ.get("PORTER_REAL_OUT", "ported")))
            print(f"{seconds:6.1f} s {Path(name).name}: {one_line(found)}", flush=True)
        except PorterError as error:
            print(f"       {Path(name).name}: {error}", flush=True)
