"""The [[symbols]] of a drafted case: what the declaration and the host code say, and what a person must decide."""

from __future__ import annotations

from collections.abc import Callable

from porter import ir
from porter.case.model import FLOAT_NAMES
from porter.emit.symbols import dimensions, members


def draft_symbol(symbol: ir.Symbol, seen: str, need: Callable[[str], str]) -> list[str]:
    """Lines of one symbol. `seen` is what the kernel does with it (in, out, inout), "" where that is not known; `need`
    makes the comment of a TODO."""
    dtype, shape = dimensions(symbol.type)
    role = "in" if symbol.constant else seen or "inout"
    place = f", line {symbol.span.line}" if symbol.span.line else ""
    lines = [
        f"[[symbols]]  # {symbol.kind}{place}: {dtype} [{', '.join(map(str, shape))}]",
        f'name = "{symbol.declared}"',
        f'role = "{role}"',
    ]
    if role == "out":
        return lines
    if symbol.filled:
        return [*lines, *_filled(symbol, dtype, need, f"filled by {symbol.filled}")]
    if symbol.initialised or role == "inout":
        return [*lines, 'initial = "declared"  # the host was not seen to write it']
    return [*lines, *_filled(symbol, dtype, need, "")]


def _filled(symbol: ir.Symbol, dtype: str, need: Callable[[str], str], by: str) -> list[str]:
    """Values of a symbol that the host fills: a distribution, or the members of a struct of several types."""
    layout = members(symbol.type) if dtype == "u8" else ()
    if layout:
        rows = ", ".join(f'"{m.path}" = "TODO"' if "." in m.path else f'{m.path} = "TODO"' for m in layout)
        return [f"members = {{ {rows} }}  {need(by or 'what the host writes')}"]
    if not by:
        return [f'dist = "TODO"  {need("what the host writes: no copy to it was seen in these files")}']
    if dtype in FLOAT_NAMES:
        return [f'dist = "normal"  # {by}']
    if dtype == "bool":
        return [f'dist = "bool"  # {by}']
    return [f'dist = "randint"  # {by}', "low = 0", f'high = "TODO"  {need("one past the largest value it may hold")}']
