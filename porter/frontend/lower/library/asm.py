"""Inline PTX."""

from __future__ import annotations

import re

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, statement
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind


@statement(CursorKind.ASM_STMT)
def asm_statement(fx: FunctionLowering, c: Cursor) -> None:
    s = cc.asm_statement(c)
    if not s.template and not s.outputs and not s.inputs:
        if "memory" in s.clobbers:
            fx.emit(ir.Asm("", volatile=s.volatile, memory=True), c)  # a compiler barrier
            return
        raise Untranslatable(codes.UNREADABLE_ASM, "inline assembly that could not be read")
    inputs = tuple((o.constraint, fx.expr(o.expr)) for o in s.inputs)
    outputs = tuple((o.constraint, fx.place(o.expr, write=True)) for o in s.outputs)
    fx.emit(ir.Asm(as_written(s.template), outputs, inputs, s.volatile, "memory" in s.clobbers), c)


_LLVM = re.compile(r"\$\$|\$\{(\d+):(\w)\}|\$(\d+)|%")


def as_written(template: str) -> str:
    """libclang gives the template in LLVM's spelling (`$0`, `$$`, `%`): back to GCC's `%0`, `$`, `%%`."""

    def back(m: re.Match[str]) -> str:
        if m.group() == "$$":
            return "$"
        if m.group() == "%":
            return "%%"
        return f"%{m.group(2)}{m.group(1)}" if m.group(1) else f"%{m.group(3)}"

    return _LLVM.sub(back, template)


@statement(CursorKind.MS_ASM_STMT)
def ms_asm(fx: FunctionLowering, c: Cursor) -> None:
    raise Untranslatable(codes.UNREADABLE_ASM, "inline assembly in Microsoft's form")
