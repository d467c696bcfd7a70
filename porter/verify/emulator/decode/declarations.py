"""Variable declarations and literals of PTX text."""

from __future__ import annotations

import re
import struct

from porter.verify.emulator.decode.ir import Sym, Variable
from porter.verify.emulator.decode.types import TYPES
from porter.verify.emulator.errors import PtxSyntaxError

NAME = r"[A-Za-z_$%][\w$%]*"
FLOAT = re.compile(r"0[fFdD][0-9a-fA-F]+\Z")
INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9]\d*)U?\Z")
DECIMAL_FLOAT = re.compile(r"\d+\.\d*(?:[eE][+-]?\d+)?\Z|\d+[eE][+-]?\d+\Z")
_INIT_PART = re.compile(r"[^,(]*\([^)]*\)[^,]*|[^,]+")
_SPACES = {"global", "const", "shared", "local", "param"}


def parse_variable(statement: str, line: int, extern: bool) -> list[Variable]:
    """Variables of one declaration without its semicolon, `.global .align 4 .b8 name[16] = {1, 2}`."""
    text = statement
    space, align, type_, vector, ptr = "", 0, None, 1, False
    while match := re.compile(r"\s*\.([\w:]+)\s*").match(text):
        word = match.group(1)
        text = text[match.end() :]
        if word.split("::")[0] in _SPACES | {"reg"}:
            if not ptr or not space:
                space = space or word.split("::")[0]
        elif word == "align":
            number = re.compile(r"(\d+)\s*").match(text)
            if not number:
                raise PtxSyntaxError(".align needs a number", line)
            if not ptr:
                align = int(number.group(1))
            text = text[number.end() :]
        elif word == "ptr":
            ptr = True
        elif word in ("v2", "v4", "v8"):
            vector = int(word[1])
        elif word in TYPES:
            type_ = TYPES[word]
        elif word in ("attribute", "managed"):
            text = re.sub(r"^\([^)]*\)\s*", "", text)
        else:
            raise PtxSyntaxError(f"unknown word .{word} in a declaration", line)
    if type_ is None:
        raise PtxSyntaxError(f"declaration without a type: {statement[:60]!r}", line)
    names, _, init_text = text.partition("=")
    variables = []
    pieces = re.findall(rf"({NAME})\s*((?:\[[^\]]*\]\s*)*)(?:,|\Z)", names.strip())
    if not pieces:
        raise PtxSyntaxError(f"declaration without a name: {statement[:60]!r}", line)
    for name, dims in pieces:
        count = vector
        is_array = bool(dims)
        for dim in re.findall(r"\[\s*(\w*)\s*\]", dims):
            count *= int_literal(dim) if dim else 0
        text = init_text.strip()
        if is_array and count == 0 and text:
            count = text.count(",") + 1
        variables.append(
            Variable(name, space, type_, count, align or type_.bytes * vector, is_array, text, line, extern)
        )
    return variables


def int_literal(text: str) -> int:
    text = text.rstrip("U")
    if len(text) > 1 and text[0] == "0" and text[1] in "01234567":
        return int(text, 8)
    return int(text, 0)


def initialisers(variable: Variable) -> list[tuple[int | float | Sym, int]]:
    """Each initial value with its `0xFF(symbol)` byte selector (0: none). Raises PtxSyntaxError."""
    text = variable.init.replace("{", " ").replace("}", " ").strip()
    if not text:
        return []
    if "(" not in text:
        try:
            return [(int(part, 0), 0) for part in text.split(",")]
        except ValueError:
            pass
    return [_initialiser(part.strip(), variable.line) for part in _INIT_PART.findall(text) if part.strip()]


def _initialiser(part: str, line: int) -> tuple[int | float | Sym, int]:
    mask = 0
    if match := re.fullmatch(r"(0[xX][0-9a-fA-F]+)\s*\((.*)\)", part):
        mask = int(match.group(1), 16)
        part = match.group(2).strip()
    if match := re.fullmatch(rf"(generic\s*\(\s*)?({NAME})\s*\)?\s*(?:([+-])\s*(\w+))?", part):
        offset = int_literal(match.group(4)) if match.group(4) else 0
        return Sym(match.group(2), -offset if match.group(3) == "-" else offset), mask
    negative = part.startswith("-")
    body = part.lstrip("+-").strip()
    value: int | float
    if FLOAT.match(body):
        raw = int(body[2:], 16)
        if body[1] in "fF":
            value = struct.unpack("<f", struct.pack("<I", raw))[0]
        else:
            value = struct.unpack("<d", struct.pack("<Q", raw))[0]
    elif INTEGER.match(body):
        value = int_literal(body)
    elif DECIMAL_FLOAT.match(body):
        value = float(body)
    else:
        raise PtxSyntaxError(f"unknown initialiser {part[:40]!r}", line)
    return -value if negative else value, mask
