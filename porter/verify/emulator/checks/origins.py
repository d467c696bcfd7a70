"""Which argument the address of a bad access came from: a far index lies nearer to another buffer, or to none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from porter.verify.emulator.checks.violations import Violation
from porter.verify.emulator.decode.ir import Address, Function, Instr, Operand, Reg, Sym, Vector

# Where an address goes on from an address: the operands, by number, that may be one.
_FOLLOWED = {
    "mov": (1,), "cvta": (1,), "cvt": (1,), "add": (1, 2), "sub": (1,), "mad": (3,), "selp": (1, 2), "or": (1, 2),
    "and": (1,), "min": (1, 2), "max": (1, 2),
}  # fmt: skip


def parameters_behind(function: Function, line: int) -> set[str]:
    """The parameters that the address of the access in a PTX line is computed from, by moves and sums alone."""
    access = next((i for i in function.code if i.line == line), None)
    places = [o for o in access.operands if isinstance(o, Address)] if access is not None else []
    made: dict[str, list[Instr]] = {}
    for instr in function.code:
        for target in _targets(instr):
            made.setdefault(target, []).append(instr)
    found: set[str] = set()
    seen: set[str] = set()
    todo = [p.base.name for p in places if isinstance(p.base, Reg)]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for instr in made.get(name, ()):
            if instr.base == "ld" and "param" in instr.mods:
                found |= {o.base.name for o in instr.operands if isinstance(o, Address) and isinstance(o.base, Sym)}
                continue
            sources = [instr.operands[n] for n in _FOLLOWED.get(instr.base, ()) if n < len(instr.operands)]
            todo += [o.name for o in sources if isinstance(o, Reg) and o.type.bits == 64]
    return found


def _targets(instr: Instr) -> list[str]:
    first: Operand | None = instr.operands[0] if instr.operands else None
    items = first.items if isinstance(first, Vector) else (first,)
    return [o.name for o in items if isinstance(o, Reg)]


def named_after_arguments(
    violation: Violation, function: Function, buffers: Mapping[str, tuple[str, int, int]]
) -> Violation:
    """An access out of bounds with the buffer whose pointer it used. `buffers`: parameter -> name, address, bytes."""
    if violation.kind != "out-of-bounds" or violation.space not in ("global", ""):
        return violation
    behind = {buffers[p] for p in parameters_behind(function, violation.ptx_line) if p in buffers}
    if len(behind) != 1:
        return violation
    ((name, base, size),) = behind
    if not name or name == violation.buffer:
        return violation
    what = violation.message.split(" at ")[0].split(" of address")[0]
    offset = violation.address - base
    message = f"{what} at offset {offset} of {name} ({size} bytes)"
    return replace(violation, message=message, buffer=name, offset=offset)
