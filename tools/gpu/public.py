"""A bundle of public kernels: `python -m tools.gpu.public build/gpu_public SOURCES`. Needs no GPU.

SOURCES is the folder that `python tools/real_sources.py` describes. The bundle holds the ports, the originals' cubins
and PTX and the case files of tests/real/cases, for `python -m bench.gpu_public` on a GPU, and none of the sources.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from porter.case.instances import instance_values
from porter.case.reader import load_case
from porter.model import PorterError
from porter.pipeline.inputs import parse
from porter.pipeline.stages import port
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import Program, compile_program
from tests.real.port_public import CASES, described, public_config
from tools.gpu.bundle import ARCH, EMPTY, _commit
from tools.gpu.cubin_facts import toolchain
from tools.gpu.manifest import BufferFacts, Bundle, InstanceFacts, KernelFacts, Parameter, write_bundle


def public_bundle(
    folder: Path, sources: Path, names: Sequence[str] = (), arch: str = ARCH, processes: int = 1
) -> tuple[Bundle, list[str]]:
    """Write the bundle of all public kernels, or of those whose case is in `names`; and what is left out, with reasons.

    What the folder held before is deleted. Kernels are ported in so many `processes` at once.
    """
    cases = [c for c in sorted(CASES.glob("*.case.toml")) if not names or _label(c) in names]
    folder.parent.mkdir(parents=True, exist_ok=True)
    left_out = []
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".bundle-") as work:
        made = Path(work) / "bundle"
        for sub in ("ports", "cases", "cubins"):
            (made / sub).mkdir(parents=True)
        for file in CASES.glob("*.py"):  # references that cases name
            shutil.copyfile(file, made / "cases" / file.name)
        kernels = []
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            for case, found in zip(cases, pool.map(_tried, [(made, c, sources, arch) for c in cases]), strict=True):
                if isinstance(found, str):
                    left_out.append(f"{_label(case)}: {found}")
                    print(left_out[-1], file=sys.stderr, flush=True)
                else:
                    kernels.append(found)
                    print(f"{_label(case)}: {len(found.instances)} instances", file=sys.stderr, flush=True)
        empty = compile_program(Program(EMPTY, "empty.cu", options=[f"-arch={arch}"], cubin=True))
        (made / "cubins/empty.cubin").write_bytes(empty.cubin)
        versions = {"nvrtc": version("nvidia-cuda-nvrtc"), "dsl": version("nvidia-cutlass-dsl")}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        bundle = Bundle(made, now, _commit(), arch, versions, 0, "cubins/empty.cubin", kernels)
        write_bundle(bundle)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return replace(bundle, folder=folder), left_out


def _label(case: Path) -> str:
    return case.name.removesuffix(".case.toml")


def _tried(asked: tuple[Path, Path, Path, str]) -> KernelFacts | str:
    """One kernel (see `_kernel`), or why it has none."""
    try:
        return _kernel(*asked)
    except (PorterError, ValueError) as error:
        return str(error)


def _kernel(folder: Path, case_path: Path, sources: Path, arch: str) -> KernelFacts:
    """One kernel. Raises PorterError or ValueError where it has no complete port, or the original does not compile."""
    name = _label(case_path)
    source = sources / described(case_path)["source"]
    case = load_case(case_path)
    with tempfile.TemporaryDirectory() as work:
        config = replace(public_config(case_path, sources, Path(work)), verify=False, arch=(arch,))
        unit = parse(source, config)
        reports = [k for k in port(source, config).kernels if k.kernel == case.kernel.split("::")[-1]]
        if not reports or reports[0].holes or not reports[0].port_path:
            raise ValueError("; ".join(h.reason for r in reports for h in r.holes) or "no port was made")
        text = Path(reports[0].port_path).read_text(encoding="utf-8")
    ported = folder / "ports" / f"{name.replace('.', '_').replace('-', '_')}.py"
    ported.write_text(text, encoding="utf-8")
    (folder / "cases" / case_path.name).write_text(case.text, encoding="utf-8")
    info = unit.kernel(case.kernel)
    if info is None:
        raise ValueError(f"{source} has no kernel {case.kernel}")
    wanted = [i.instance for i in case.instances]
    builds = build_original(unit.source, unit.options, info, wanted, ("ptx", "cubin"), unit=unit)
    cubin, ptx = (folder / "cubins" / f"{name}.{kind}.gz" for kind in ("cubin", "ptx"))
    cubin.write_bytes(gzip.compress(builds[0].cubin, mtime=0))
    ptx.write_bytes(gzip.compress(builds[0].ptx.encode(), mtime=0))
    instances = []
    for build in builds:
        values = dict(instance_values(info, build.instance))
        buffers = [BufferFacts(b.name, b.dtype_at(values), b.role, b.compare_at(values)) for b in case.buffers]
        parameters = [Parameter(p.name, p.type, "", 0, 0) for p in info.params]
        instances.append(
            InstanceFacts(list(build.instance.args), values, build.entry, parameters, buffers, [[], []], True, [])
        )
    digests = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (ported, case_path, source, cubin)}
    return KernelFacts(
        name, case.kernel, "", {}, f"ports/{ported.name}", f"cases/{case_path.name}", f"cubins/{cubin.name}",
        f"cubins/{ptx.name}", [asdict(p) for p in info.template_params], toolchain(builds[0].cubin), digests, instances,
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu.public", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--kernel", action="append", default=[], help="only this case, as repo.kernel (repeatable)")
    parser.add_argument("--arch", default=ARCH)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="kernels ported at once")
    args = parser.parse_args()
    made, left_out = public_bundle(args.folder, args.sources.resolve(), args.kernel, args.arch, args.processes)
    size = sum(p.stat().st_size for p in made.folder.rglob("*") if p.is_file())
    text = f"{args.folder}: {len(made.kernels)} kernels, {len(left_out)} left out, {size / 1e6:.1f} MB"
    print(f"{text}, commit {made.commit[:9]}{' and changes' if made.commit.endswith('+') else ''}")
    return int(not made.kernels)


if __name__ == "__main__":
    sys.exit(main())
