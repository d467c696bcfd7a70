"""Small kernels written as PTX text, for the emulator's tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from porter.verify import ptx

REGISTERS = (
    ".reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<32>; .reg .f64 %fd<8>;"
)
HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def kernel(body: str, params: Sequence[str] = ("u64 out",), globals_: str = "", name: str = "k") -> str:
    """A module with one entry. `params`: "type name" each.

    Pointers are loaded into %rd0, %rd1...; %r0 is %tid.x, %r1 the global thread number.
    """
    declared = ", ".join(f".param .{p.split()[0]} {p.split()[1]}" for p in params)
    loads = [f"ld.param.u64 %rd{k}, [{p.split()[1]}];" for k, p in enumerate(params) if p.startswith("u64")]
    prologue = [*loads, "mov.u32 %r0, %tid.x;", "mov.u32 %r1, %ctaid.x;", "mov.u32 %r2, %ntid.x;",
                "mad.lo.u32 %r1, %r1, %r2, %r0;"]  # fmt: skip
    lines = [HEADER, globals_, f".visible .entry {name}({declared})", "{", REGISTERS, *prologue, body, "ret;", "}"]
    return "\n".join(lines)


def store32(value: str, base: str = "%rd0") -> str:
    """out[global thread] = value."""
    return f"mul.wide.u32 %rd30, %r1, 4; add.u64 %rd31, {base}, %rd30; st.global.u32 [%rd31], {value};"


def run(text: str, out: np.ndarray, *more: object, grid: int = 1, block: int = 32, **options: object) -> ptx.Result:
    """Launches kernel `k` with `out` as its first buffer (numpy arrays become buffers)."""
    args = [ptx.Buffer(a) if isinstance(a, np.ndarray) else a for a in (out, *more)]
    return ptx.launch(ptx.load(text), "k", grid, block, args, **options)  # type: ignore[arg-type]


def kinds(result: ptx.Result) -> list[str]:
    return [v.kind for v in result.violations]
