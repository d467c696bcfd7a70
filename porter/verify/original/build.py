"""The original kernel as PTX and cubin: its slice of the .cu file, compiled by NVRTC. What ports answer to."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from porter import codes
from porter.corpus.runtime import ArtifactCache, digest, read_cubin
from porter.frontend.parse.hermetic import language
from porter.frontend.parse.source import ParsedUnit, ParseOptions, parse_source
from porter.frontend.slice.device_code import Slice, SliceUnit, include_name
from porter.frontend.slice.text import code_of, identifiers
from porter.model import Diagnostic, Instance, KernelInfo, PorterError
from porter.source import Source, Span
from porter.verify.original.compiled import OriginalBuild
from porter.verify.original.nvrtc import Compilation, Program, compile_program, messages, require_nvrtc

_HEADERS = Path(__file__).parent / "headers"
_FORMAT = "1"
_EXPRESSIONS = "__nv_name_map"  # the file in which NVRTC places its name expressions
_ROUNDS = 3  # of leaving out declarations that do not compile and may not be needed

_HALF = {"__half", "half", "__half2", "half2", "nv_half", "nv_half2", "__half_raw", "__half2_raw"}
_BFLOAT = {"__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", "nv_bfloat162", "__nv_bfloat16_raw"}
_TORCH = {"c10", "at", "torch", "CUDA_KERNEL_ASSERT", "GPU_LAMBDA"}
_LIBCUDACXX = ("cuda/", "cub/", "thrust/", "cooperative_groups", "nv/")
_FP8 = re.compile(r"__nv_fp8|__nv_cvt_\w*fp8|__NV_E[45]M[32]")
_USES_CUB = re.compile(r"\busing\s+namespace\s+cub\b")
_FP4 = re.compile(r"__nv_fp4|__NV_E2M1")
_LAMBDA = re.compile(r"(?<=\])\s*(?:(?:__device__|__host__|GPU_LAMBDA)\s*)+(?=[({])")
_HEAVY = (
    ("cub/", r"\bcub\b"),
    ("cuda/", r"\bcuda\s*::"),
    ("nv/", r"\bNV_"),
    ("cooperative_groups", r"\bcooperative_groups\b"),
    ("mma.h", r"\bwmma\b"),
    ("curand", r"\bcurand"),
)
# Not for NVRTC: they declare host functions only, or include host headers.
_HOST_HEADERS = re.compile(
    r"^(cuda\.h|cuda_runtime_api\.h|cuda_profiler_api\.h|cudaProfiler\.h|cudaTypedefs\.h|driver_types\.h|nvrtc\.h"
    r"|cublas.*|cusparse.*|cudnn.*|cusolver.*|cufft.*|nvml\.h|thrust/.*|cub/device/.*|cub/util_.*|nvtx3/.*)$"
)
_CUB = {
    "BlockReduce": "cub/block/block_reduce.cuh",
    "BlockScan": "cub/block/block_scan.cuh",
    "BlockLoad": "cub/block/block_load.cuh",
    "BlockStore": "cub/block/block_store.cuh",
    "BlockExchange": "cub/block/block_exchange.cuh",
    "BlockDiscontinuity": "cub/block/block_discontinuity.cuh",
    "BlockAdjacentDifference": "cub/block/block_adjacent_difference.cuh",
    "LoadDirect": "cub/block/block_load.cuh",
    "StoreDirect": "cub/block/block_store.cuh",
    "BlockMergeSort": "cub/block/block_merge_sort.cuh",
    "BlockRadixSort": "cub/block/block_radix_sort.cuh",
    "BlockHistogram": "cub/block/block_histogram.cuh",
    "WarpReduce": "cub/warp/warp_reduce.cuh",
    "WarpScan": "cub/warp/warp_scan.cuh",
    "WarpMergeSort": "cub/warp/warp_merge_sort.cuh",
    "WarpExchange": "cub/warp/warp_exchange.cuh",
    "WarpLoad": "cub/warp/warp_load.cuh",
    "WarpStore": "cub/warp/warp_store.cuh",
    "BlockShuffle": "cub/block/block_shuffle.cuh",
    "ThreadLoad": "cub/thread/thread_load.cuh",
    "ThreadStore": "cub/thread/thread_store.cuh",
    "ThreadReduce": "cub/thread/thread_reduce.cuh",
    "ArgMax": "cub/thread/thread_operators.cuh",
    "ArgMin": "cub/thread/thread_operators.cuh",
    "KeyValuePair": "cub/util_type.cuh",
    "Traits": "cub/util_type.cuh",
    "Uninitialized": "cub/util_type.cuh",
    "ShuffleDown": "cub/util_ptx.cuh",
    "ShuffleIndex": "cub/util_ptx.cuh",
    "ShuffleUp": "cub/util_ptx.cuh",
    "LaneId": "cub/util_ptx.cuh",
}
# Function objects and traits that cub lost with CCCL 3: porter_oracle_cub2.h has them.
_CUB2 = {
    "Sum", "Max", "Min", "Equality", "Inequality", "InequalityWrapper", "Difference", "Division", "FpLimits",
    "Int2Type",
}  # fmt: skip


def build_original(
    source: Source,
    options: ParseOptions,
    kernel: str | KernelInfo,
    instances: Sequence[Instance] = (Instance(),),
    want: Sequence[str] = ("ptx",),
    *,
    unit: ParsedUnit | None = None,
    flags: Sequence[str] = (),
    timeout: float = 120.0,
) -> list[OriginalBuild]:
    """Compile instances of a kernel for `options.arch`; all share one PTX module.

    `kernel` is a qualified name, or the kernel itself where the file has several of one name.

    `want` names "ptx" and, for a cubin too (assembling takes longer), "cubin". `unit` is the parsed file, when there
    is one with these options already. `flags` go to NVRTC (`-use_fast_math`). Raises PorterError with the errors at
    their lines of the .cu file: PRT821 when NVRTC rejects the slice, PRT820 and PRT822 as `compile_program` does.
    """
    start = time.perf_counter()
    require_nvrtc()
    unit = unit if unit is not None and unit.options == options else parse_source(source, options)
    info = kernel if isinstance(kernel, KernelInfo) else unit.kernel(kernel)
    name = kernel.qualified_name if isinstance(kernel, KernelInfo) else kernel
    expressions = [f"{_overload(unit, info, i)}::{name}{i}" for i in instances]
    builder = _Builder(
        SliceUnit(unit), options, name, list(instances), expressions, "cubin" in want, list(flags), timeout, info
    )
    first = builder.program(frozenset())
    key = digest(
        [_FORMAT, require_nvrtc().version, repr(first), *sorted(first.headers), *first.headers.values(), first.text]
    )
    cache_ = ArtifactCache("original")
    cached = cache_.get(key)
    if cached is None:

        def write(folder: Path) -> None:
            made = builder.compile()
            (folder / "kernel.ptx").write_text(made.ptx)
            (folder / "kernel.cubin").write_bytes(made.cubin)
            (folder / "meta.json").write_text(json.dumps({"lowered": dict(made.lowered), "log": made.log}))

        folder = cache_.get_or_build(key, write)
    else:
        folder = cached
    meta = json.loads((folder / "meta.json").read_text())
    ptx, cubin = (folder / "kernel.ptx").read_text(), (folder / "kernel.cubin").read_bytes()
    resources = read_cubin(cubin) if cubin else {}
    seconds = 0.0 if cached is not None else time.perf_counter() - start
    builds = []
    for instance, expression in zip(instances, expressions, strict=True):
        entry = meta["lowered"][expression]
        used = resources.get(entry)
        numbers = (used.registers, used.local_bytes, used.shared_bytes) if used else (0, 0, 0)
        builds.append(OriginalBuild(instance, ptx, cubin, entry, *numbers, meta["log"], seconds))
    return builds


def _overload(unit: ParsedUnit, info: KernelInfo | None, instance: Instance) -> str:
    """A cast that picks this kernel among those of the same name; "" where there is no choice."""
    everything = (*unit.kernels, *unit.header_kernels)
    if info is None or sum(k.qualified_name == info.qualified_name for k in everything) < 2:
        return ""
    types = [p.type for p in info.params]
    if info.is_template:
        from porter.frontend.instances.specialise import try_specialise

        requests = [(info, instance)]
        _, cursors, _ = try_specialise(unit.source, unit.options, requests, stand_ins=unit.stand_ins)
        function = cursors.get((info.qualified_name, instance))
        if function is None:
            return ""  # NVRTC says what is wrong
        types = [t.spelling for t in function.type.get_canonical().argument_types()]
    return f"(void (*)({', '.join(types)}))&"


@dataclass
class _Builder:
    """Makes programs from slices, and leaves out what does not compile as long as something else can be left out."""

    unit: SliceUnit
    options: ParseOptions
    kernel: str
    instances: list[Instance]
    expressions: list[str]
    cubin: bool
    flags: list[str]
    timeout: float
    info: KernelInfo | None = None

    def slice(self, drop: frozenset[tuple[str, int]]) -> Slice:
        return self.unit.cut(self._roots(), self._outside, drop)

    def _roots(self) -> set[str]:
        return identifiers(self.kernel.replace("::", " ")) | {
            name for i in self.instances for arg in i.args for name in identifiers(arg)
        }

    def _outside(self, include: str, code: str) -> str:
        """The line for an include of something outside the project. Heavy headers that nothing mentions are left out:
        libcu++ alone takes NVRTC a second, cooperative groups and cub more."""
        for prefix, mention in _HEAVY:
            if include.startswith(prefix) and not re.search(mention, code):
                return ""
        if include.startswith("cub/"):
            return '#include "porter_oracle_cub.h"'
        if _HOST_HEADERS.match(include) or not require_nvrtc().has_header(include):
            return ""
        return f"#include <{include}>"

    def program(self, drop: frozenset[tuple[str, int]]) -> Program:
        return self._program(self.slice(drop))

    def _program(self, cut: Slice) -> Program:
        used = set(cut.names) - {name for item in cut.items for name in item.names}
        code = "\n".join([cut.code, *(a for i in self.instances for a in i.args)])
        lines = _shims(used, code, cut.outside)
        headers = {p.name: p.read_text() for p in sorted(_HEADERS.glob("*.h"))}
        cubs = sorted({header for key, header in _CUB.items() if any(name.startswith(key) for name in used)})
        includes = [f"#include <{h}>" for h in cubs]
        if re.search(rf"\bcub\s*::\s*(?:{'|'.join(sorted(_CUB2))})\b", code) or _USES_CUB.search(code):
            includes.append('#include "porter_oracle_cub2.h"')
        headers["porter_oracle_cub.h"] = "\n".join(["#pragma once", *includes, ""])
        for n, file in enumerate(cut.files[1:], 1):
            headers[include_name(n)] = f"#pragma once\n{_line_directive(file.path)}\n{_plain_lambdas(file.text)}"
        first = [n for n, file in enumerate(cut.files) if n and file.path in self.options.pre_include]
        lines += [f'#include "{include_name(n)}"' for n in first]
        main = "\n".join([*lines, _line_directive(cut.files[0].path), _plain_lambdas(cut.files[0].text)])
        arch = self.options.arch if self.cubin else self.options.arch.replace("sm_", "compute_")
        flags = [
            f"-arch={arch}",
            f"-std={language(self.options)}",
            "-lineinfo",
            "-default-device",
            "--device-int128",
            "-w",
        ]
        flags += [f"-D{d}" for d in self.options.defines] + [f"--{m}" for m in self.options.math] + self.flags
        return Program(main, Path(cut.files[0].path).name, headers, flags, self.expressions, self.cubin)

    def compile(self) -> Compilation:
        """The first program that compiles. Raises PorterError (PRT821) with the errors of the first try."""
        drop: frozenset[tuple[str, int]] = frozenset()
        first_errors: tuple[Diagnostic, ...] = ()
        for _ in range(_ROUNDS):
            cut = self.slice(drop)
            program = self._program(cut)
            made = compile_program(program, self.timeout)
            if not made.ok and (other := _concession(program, made.log)):
                made = compile_program(other, self.timeout)
            if made.ok:
                return made
            errors = tuple(messages(made.log)) or (Diagnostic(codes.NVRTC_REJECTS, f"NVRTC: {made.log.strip()[:500]}"),)
            first_errors = first_errors or errors
            more = self._to_drop(cut, errors) - drop
            if not more:
                break
            drop |= more
        errors = tuple(self._explained(e) for e in first_errors)
        raise PorterError(*_relevant(errors, str(self.unit.unit.source.path)))

    def _explained(self, error: Diagnostic) -> Diagnostic:
        """With what to do next, and at the kernel when NVRTC complains of the template arguments."""
        if error.span.file == _EXPRESSIONS:
            asked = ", ".join(f"{self.kernel}{i}" for i in self.instances)
            span = self.info.span if self.info else Span(str(self.unit.unit.source.path), 1)
            help_ = f"asked for: {asked}; write types and constants as they are named at global scope"
            return replace(error, span=span, help=help_)
        if re.search(r"\bcurand", error.message):
            return replace(error, help="pip install nvidia-curand, whose headers these names come from")
        return replace(error, help="give the folders and macros of the real build with -I and -D")

    def _to_drop(self, cut: Slice, errors: Sequence[Diagnostic]) -> frozenset[tuple[str, int]]:
        name = self.kernel.split("::")[-1]
        found = set()
        for error in errors:
            item = cut.item_at(error.span.file, error.span.line)
            if item is not None and name not in item.names:
                found.add(item.key)
        return frozenset(found)


def _relevant(errors: tuple[Diagnostic, ...], source: str) -> tuple[Diagnostic, ...]:
    """At most ten errors, those in the source first."""
    return tuple(sorted(errors, key=lambda e: e.span.file != source)[:10])


def _plain_lambdas(text: str) -> str:
    """Lambdas without `__device__`: NVRTC does not know nvcc's extended lambdas, and all of this is device code."""
    return _LAMBDA.sub(lambda m: re.sub(r"\S", " ", m.group()), text)


def _concession(program: Program, log: str) -> Program | None:
    """The program changed so that NVRTC takes what nvcc takes, where its log shows such a difference; else None."""
    changed = program
    if re.search("designated initializer|expected an expression", log):  # in C++17 where the host compiler has them
        changed = replace(changed, options=[f.replace("-std=c++17", "-std=c++20") for f in changed.options])
    if 'attribute "__host__" does not apply here' in log:  # on a variable, say; all of this is device code anyway
        head, line, rest = changed.text.partition("\n#line")
        changed = replace(changed, text=f"{head}\n#undef __host__\n#define __host__{line}{rest}")
    return changed if changed != program else None


def _line_directive(path: str) -> str:
    return '#line 1 "{}"'.format(path.replace("\\", "\\\\").replace('"', '\\"'))


def _shims(names: set[str], code: str, outside: Sequence[str]) -> list[str]:
    """The lines that come before the kept code: porter's own headers and CUDA's that it needs, from the names in it."""
    standard = set(re.findall(r"(?<!cuda::)\bstd\s*::\s*(\w+)", code))
    uses_std = bool(standard or re.search(r"using\s+namespace\s+std\b|\bcuda\s*::\s*std\b", code))
    libcudacxx = any(o.startswith(_LIBCUDACXX) for o in outside) or "cooperative_groups" in names
    libcudacxx = libcudacxx or not standard <= _small_std()
    lines = ["#define PORTER_ORACLE_LIBCUDACXX"] if libcudacxx else []
    lines.append('#include "porter_oracle.h"')
    if names & _HALF:
        lines.append("#include <cuda_fp16.h>")
    if names & _BFLOAT:
        lines.append("#include <cuda_bf16.h>")
    if _FP8.search(code):
        lines.append("#include <cuda_fp8.h>")
    if _FP4.search(code):
        lines.append("#include <cuda_fp4.h>")
    if names & {"cooperative_groups"} and not any(o.startswith("cooperative_groups") for o in outside):
        lines.append("#include <cooperative_groups.h>")
    if uses_std:
        lines.append(f'#include "porter_oracle_{"cudastd" if libcudacxx else "std"}.h"')
    if names & _TORCH or any(n.startswith(("C10_", "WARP_")) for n in names):
        lines.append('#include "porter_oracle_c10.h"')
    return lines


@cache
def _small_std() -> frozenset[str]:
    return frozenset(identifiers(code_of((_HEADERS / "porter_oracle_std.h").read_text())))
