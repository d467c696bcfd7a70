"""Small kernels written as PTX text, for the emulator's tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from porter.verify import emulator as ptx

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


def run(
    text: str, out: np.ndarray, *more: object, grid: int = 1, block: int = 32, parity: bool = True, **options: object
) -> ptx.Result:
    """Launches kernel `k` with `out` as its first buffer (numpy arrays become buffers).

    Compiled code runs the same launch on copies, where it can: its memory and its reports must be the same.
    """
    module = ptx.load(text)
    arguments = (out, *more)
    copies = [_copy(a) for a in arguments]
    result = ptx.launch(module, "k", grid, block, _buffers(arguments), **({"backend": "numpy"} | options))  # type: ignore[arg-type]
    plain = not (set(options) & {"seed", "perturb", "budget", "resident", "cooperative", "backend"})
    checks = options.get("checks")
    counts = isinstance(checks, ptx.Checks) and (checks.counts or checks.fill)
    if parity and plain and not counts and not result.deadlock:
        other = ptx.launch(module, "k", grid, block, _buffers(copies), **({"backend": "llvm"} | options))  # type: ignore[arg-type]
        assert [(v.kind, v.ptx_line, v.count) for v in other.violations] == [
            (v.kind, v.ptx_line, v.count) for v in result.violations
        ]
        for a, b in zip(arguments, copies, strict=True):
            assert np.array_equal(_memory(a), _memory(b)), f"compiled code differs ({other.backend} {other.refusal})"
    return result


def _buffers(arguments: Sequence[object]) -> list[object]:
    return [ptx.Buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]


def _copy(argument: object) -> object:
    if isinstance(argument, ptx.Buffer):
        a = argument
        return ptx.Buffer(a.array.copy(), a.name, a.initialised, a.writable, a.guard)
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _memory(argument: object) -> np.ndarray:
    array = argument.array if isinstance(argument, ptx.Buffer) else argument
    return array.reshape(-1).view(np.uint8) if isinstance(array, np.ndarray) else np.zeros(0, np.uint8)


def kinds(result: ptx.Result) -> list[str]:
    return [v.kind for v in result.violations]
