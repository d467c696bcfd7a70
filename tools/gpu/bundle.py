"""Make a bundle: `python -m tools.gpu.bundle build/gpu`. Needs libclang, NVRTC and CuTeDSL, but no GPU."""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from porter.case.expressions import Value
from porter.case.instances import instance_values
from porter.case.reader import Case, load_case
from porter.config import STYLES, PortConfig
from porter.cxx.types import scalar_name
from porter.emit.spelling import identifier
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import KernelInfo
from porter.pipeline.stages import port_files, show_stage
from porter.source import Source
from porter.verify.checks.ptx_stats import function_texts
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.launches.trials import Trial, choose_trials, far_trial, may_misalign
from porter.verify.numerics.tolerance import approximations, has_reduction
from porter.verify.original.build import OriginalBuild, build_original
from porter.verify.original.nvrtc import Program, compile_program
from tools.gpu.cubin_facts import parameter_layout, toolchain
from tools.gpu.manifest import (
    BufferFacts,
    Bundle,
    InstanceFacts,
    KernelFacts,
    Launch,
    Parameter,
    chosen_instance,
    is_pointer,
    write_bundle,
)

ROOT = Path(__file__).resolve().parents[2]
ARCH = "sm_90a"
LAUNCHES = 12  # an instance, about
EMPTY = 'extern "C" __global__ void empty_kernel() {}\n'


def make_bundle(
    folder: Path,
    names: Sequence[str] = (),
    arch: str = ARCH,
    seed: int = 0,
    sources: Path = ROOT / "reference_kernels",
    style: str = "pointer",
) -> Bundle:
    """Port the kernels that have a case in `sources` (all, or those of `names`) in a style, compile their originals,
    and write everything to `folder`.

    What the folder held before is deleted. Nothing is verified: over tensors, a port is what `--emit py` shows. Raises
    PorterError where a kernel cannot be ported or compiled.
    """
    cases = sorted(sources.resolve().rglob("*.case.toml"))
    cases = [c for c in cases if not names or c.name.removesuffix(".case.toml") in names]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".bundle-") as work:
        made = Path(work) / "bundle"
        for sub in ("ports", "cases", "cubins"):
            (made / sub).mkdir(parents=True)
        kernels = []
        for path in cases:
            kernels.append(_kernel(made, path, arch, seed, style))
            print(
                f"{kernels[-1].name}: {sum(len(i.launches) for i in kernels[-1].instances)} launches", file=sys.stderr
            )
        empty = compile_program(Program(EMPTY, "empty.cu", options=[f"-arch={arch}"], cubin=True))
        (made / "cubins/empty.cubin").write_bytes(empty.cubin)
        versions = {"nvrtc": version("nvidia-cuda-nvrtc"), "dsl": version("nvidia-cutlass-dsl")}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        bundle = Bundle(made, now, _commit(), arch, versions, seed, "cubins/empty.cubin", kernels, style)
        write_bundle(bundle)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return replace(bundle, folder=folder)


def _kernel(folder: Path, case_path: Path, arch: str, seed: int, style: str) -> KernelFacts:
    name = case_path.name.removesuffix(".case.toml")
    case = load_case(case_path)
    source = Source.read(case.source_path)
    options = ParseOptions(arch=arch)
    unit = parse_source(source, options)
    info = unit.kernel(case.kernel)
    assert info is not None, case.kernel
    port = _port(folder, name, case.source_path, arch, style)
    (folder / "cases" / case_path.name).write_text(case.text, encoding="utf-8")
    wanted = [i.instance for i in case.instances]
    builds = build_original(source, options, info.qualified_name, wanted, ("ptx", "cubin"), unit=unit)
    cubin = folder / "cubins" / f"{name}.cubin"
    cubin.write_bytes(builds[0].cubin)
    ptx = cubin.with_suffix(".ptx")
    ptx.write_text(builds[0].ptx)
    values = [dict(instance_values(info, i)) for i in wanted]
    compiled = compile_port(port, [CompileRequest(v, arch) for v in values])
    texts = function_texts(builds[0].ptx)
    instances = []
    for n, (build, made) in enumerate(zip(builds, compiled, strict=True)):
        assert made.ok, f"{name} {build.instance}: {made.error}"
        both = (texts[build.entry], function_texts(made.ptx)[made.entry])
        facts = InstanceFacts(
            list(build.instance.args),
            dict(values[n]),
            build.entry,
            _parameters(info, values[n], build),
            [BufferFacts(b.name, b.dtype_at(values[n]), b.role, b.compare_at(values[n])) for b in case.buffers],
            [sorted(approximations(t)) for t in both],
            any(has_reduction(t) for t in both),
            _launches(case, info, values, n, seed),
        )
        instances.append(facts)
    function, arguments = _function(port, case)
    digests = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (port, case_path, case.source_path, cubin)}
    return KernelFacts(
        name, case.kernel, function, arguments, f"ports/{port.name}", f"cases/{case_path.name}", f"cubins/{cubin.name}",
        f"cubins/{ptx.name}", [asdict(p) for p in info.template_params], toolchain(builds[0].cubin), digests, instances,
    )  # fmt: skip


def _port(folder: Path, name: str, source: Path, arch: str, style: str) -> Path:
    """The port as `porter port` writes it without verification, or over tensors as `--emit py` shows it."""
    made = folder / "ports" / f"{name}.py"
    if style != "pointer":
        text, messages, failed = show_stage(source, PortConfig(arch=(arch,), style=style), "py")
        assert not failed, [d.message for d in messages]
        made.write_text(text, encoding="utf-8")
        return made
    with tempfile.TemporaryDirectory() as work:
        report = port_files([source], PortConfig(output=Path(work), arch=(arch,), verify=False))
        (kernel,) = report.kernels
        assert report.exit_code == 0 and not kernel.holes, [d.message for k in report.kernels for d in k.diagnostics]
        return Path(shutil.copyfile(kernel.port_path, made))


def _function(port: Path, case: Case) -> tuple[str, dict[str, str]]:
    """The torch-facing function, and for each of its arguments the buffer, scalar or size that it stands for."""
    names = [*(b.name for b in case.buffers), *(n for n, _ in case.scalars), *(n for n, _ in case.sizes)]
    known = {identifier(n): n for n in reversed(names)}
    for node in ast.parse(port.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and node.name != "launch_config":
            arguments = [a.arg for a in [*node.args.args, *node.args.kwonlyargs]]
            # template flags are no operands; left out, the function takes the first instance that fits
            return node.name, {a: known[a] for a in arguments if a in known}
    raise AssertionError(f"{port} has no function for torch tensors")


def _parameters(info: KernelInfo, values: Mapping[str, Value], build: OriginalBuild) -> list[Parameter]:
    found = []
    layout = parameter_layout(build.cubin, build.entry)
    for p, (offset, size) in zip(info.params, layout, strict=True):
        dtype = "ptr" if is_pointer(p.type) else scalar_name(str(values.get(p.type, p.type)))
        assert dtype is not None, f"{info.name}: parameter {p.name} of type {p.type}"
        found.append(Parameter(p.name, p.type, dtype, offset, size))
    return found


def _launches(case: Case, info: KernelInfo, values: Sequence[Mapping[str, Value]], n: int, seed: int) -> list[Launch]:
    trials = choose_trials(case, case.instances[n], values[n], seed, LAUNCHES)
    far = far_trial(case, case.instances[n], values[n], info, seed)
    return [_launch(case, list(values), n, t) for t in [*trials, *([far] if far else [])]]


def _launch(case: Case, values: list[Mapping[str, Value]], n: int, trial: Trial) -> Launch:
    point, misaligned = trial.point, trial.misaligned
    shape = case.launch_at(point, values[n])
    # Where aligned tensors would go to a wider instance, start them off the grid so that the function takes this one.
    shift = may_misalign(case, case.instances[n], values[n])
    route = "direct"
    for choice in (misaligned, shift):
        if chosen_instance(case, values, n, point, choice) == n:
            route, misaligned = "function", choice
            break
    return Launch(
        dict(point.sizes), dict(point.scalars), {k: list(v) for k, v in point.shapes.items()},
        {k: list(v) for k, v in point.strides.items()}, sorted(point.null), trial.scenario, sorted(misaligned),
        "empty" if shape.is_empty else route, list(shape.grid), list(shape.block), shape.smem, shape.cooperative,
        trial.far,
    )  # fmt: skip


def _commit() -> str:
    """The commit, with a plus sign when files that matter have changed since; "" outside a git checkout.

    PORTER_COMMIT names it where the files are a copy without their history.
    """
    if named := os.environ.get("PORTER_COMMIT"):
        return named
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        paths = ["porter", "reference_kernels", "tools/gpu"]
        status = subprocess.run(
            ["git", "status", "--porcelain", "-uno", *paths], cwd=ROOT, capture_output=True, text=True
        )
        return head.stdout.strip() + ("+" if status.stdout.strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu.bundle", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument(
        "--sources", type=Path, default=ROOT / "reference_kernels", help="folder of one-kernel .cu files with cases"
    )
    parser.add_argument("--arch", default=ARCH)
    parser.add_argument("--style", choices=STYLES, default="pointer", help="as of porter port (default: pointer)")
    args = parser.parse_args()
    made = make_bundle(args.folder, args.kernel, args.arch, sources=args.sources, style=args.style)
    size = sum(p.stat().st_size for p in made.folder.rglob("*") if p.is_file())
    launches = sum(len(i.launches) for k in made.kernels for i in k.instances)
    text = f"{args.folder}: {len(made.kernels)} kernels, {launches} launches, {size / 1e6:.1f} MB"
    print(f"{text}, commit {made.commit[:9]}{' and changes' if made.commit.endswith('+') else ''}")


if __name__ == "__main__":
    main()
