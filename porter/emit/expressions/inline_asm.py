"""Inline PTX of the source, kept as inline PTX of the port: operands renumbered, types matched to constraints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from porter import ir

if TYPE_CHECKING:
    from porter.emit.expressions.expr import ExprWriter
    from porter.emit.text import Text

_TYPES = {
    "r": ("Int32", "Uint32"),
    "l": ("Int64", "Uint64"),
    "f": ("Float32",),
    "d": ("Float64",),
    "h": ("Uint16", "Int16"),
}


def asm_lines(w: ExprWriter, s: ir.Asm) -> list[str] | None:
    """Python statements for an asm statement, or None when an operand has no counterpart."""
    results = []
    names: list[str] = []
    tied: list[str] = []
    for i, (constraint, place) in enumerate(s.outputs):
        letter = constraint.strip("=+&")
        t = _operand_type(w, letter, place)
        if t is None:
            return None
        results.append(t)
        name = f"asm_{i}" if len(s.outputs) > 1 else ""
        names.append(name)
        if "+" in constraint:
            current = _operand(w, letter, place)
            if current is None:
                return None
            tied.append(f"({i}, {current})")
    args: list[str] = []
    spelled = {i: f"${i}" for i in range(len(s.outputs))}  # operand number of the source -> its text in the template
    immediate = False
    for i, (constraint, value) in enumerate(s.inputs, len(s.outputs)):
        letter = constraint.strip("=+&")
        if letter in ("n", "i"):
            number = w.expr(value)
            if not number.static:
                return None
            literal = re.fullmatch(r"-?\w+", number.text) and number.text.lstrip("-").isdigit()
            spelled[i] = number.text if literal else f"{{{number.text}}}"
            immediate = immediate or not literal
            continue
        text = _operand(w, letter, value)
        if text is None:
            return None
        spelled[i] = f"${len(s.outputs) + len(args)}"
        args.append(text)
    template = re.sub(r"%%", "\x00", s.template)
    template = template.replace("$", "$$")
    if immediate:
        template = template.replace("{", "{{").replace("}", "}}")
    template = re.sub(r"%(\d+)", lambda m: spelled.get(int(m[1]), m[0]), template).replace("\x00", "%")
    template = re.sub(r"\s+", " ", template).strip()
    volatile = s.volatile or s.memory or not s.outputs
    types = "".join(t + ", " for t in results).strip()
    call = f"lib.asm({'f' if immediate else ''}{template!r}, ({types}), [{', '.join(args)}]"
    if tied:
        call += f", tied=[{', '.join(tied)}]"
    call += ", volatile=True)" if volatile else ")"
    if not s.outputs:
        return [call]
    lines = []
    if len(s.outputs) == 1:
        lines.append(_assign(w, s.outputs[0][1], s.outputs[0][0].strip("=+&"), results[0], call))
    else:
        lines.append(f"{', '.join(names)} = {call}")
        for (constraint, place), n, t in zip(s.outputs, names, results, strict=True):
            lines.append(_assign(w, place, constraint.strip("=+&"), t, n))
    return lines


def _operand_type(w: ExprWriter, letter: str, place: ir.Expr) -> str | None:
    kinds = w.kinds(place.type)
    if letter == "h":
        return "Uint16"
    if letter == "r":
        return "Int32" if kinds <= {"i32"} else "Uint32"
    if letter == "l":
        return "Int64" if kinds <= {"i64"} else "Uint64"
    return {"f": "Float32", "d": "Float64"}.get(letter)


def _operand(w: ExprWriter, letter: str, e: ir.Expr) -> str | None:
    if w.is_pointer(e.type):
        return f"lib.address({w.expr(e).text})" if letter == "l" else None
    v: Text = w.value(e)
    kinds = w.kinds(e.type)
    if letter == "h":
        return f"lib.bits({v.text}, Uint16)" if kinds & {"f16", "bf16"} else f"Uint16({v.text})"
    if letter == "r":
        return v.text if kinds <= {"i32", "u32"} else f"Int32({v.text})"
    if letter == "l":
        return v.text if kinds <= {"i64", "u64"} else f"Int64({v.text})"
    if letter == "f":
        return v.text if kinds <= {"f32"} else None
    if letter == "d":
        return v.text if kinds <= {"f64"} else None
    if letter == "n":
        return f"Int32({v.text})" if kinds <= {"i32", "u32"} else None
    return None


def _assign(w: ExprWriter, place: ir.Expr, letter: str, t: str, value: str) -> str:
    kinds = w.kinds(place.type)
    if letter == "h" and kinds & {"f16", "bf16"}:
        value = f"lib.bits({value}, {w.dtype(place.type)})"
    elif w.dtype(place.type) != t and kinds:
        value = f"{w.dtype(place.type)}({value})"
    from porter.emit.text import Text

    if isinstance(place, ir.Var) and place.name not in w.s.memory:
        return f"{w.name(place.name)} = {value}"
    return w.store(place, Text(value))
