"""C++ integer expressions of host launchers and template arguments, rewritten in the language of
porter.case.expressions.

Only what means the same in both is translated; everything else gives None (the caller drafts a TODO or a hole).
Quotients are printed as `//`: launch arithmetic is on non-negative integers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from porter.cxx.types import scalar_name

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+\.?\d*(?:[eE][+-]?\d+)?[fFuUlL]*|\.\d+(?:[eE][+-]?\d+)?[fF]?)"
    r"|(?P<name>[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<op><<|>>|<=|>=|==|!=|&&|\|\||->|[-+*/%<>!~&|^?:(),.\[\]{}]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
           ("+", "-"), ("*", "/", "%"))  # fmt: skip
_SPELL = {"||": "or", "&&": "and", "/": "//"}
_CALLS = {"min": "min", "std::min": "min", "max": "max", "std::max": "max", "ceil_div": "ceil_div",
          "ceildiv": "ceil_div",
          "cdiv": "ceil_div", "div_up": "ceil_div", "divup": "ceil_div", "CEIL_DIV": "ceil_div", "DIVUP": "ceil_div",
          "DivUp": "ceil_div", "ceilDiv": "ceil_div", "CeilDiv": "ceil_div", "DIV_UP": "ceil_div",
          "cutlass::ceil_div": "ceil_div", "cute::ceil_div": "ceil_div", "cuda::ceil_div": "ceil_div",
          "round_up": "round_up", "roundUp": "round_up", "cutlass::round_up": "round_up", "next_pow2": "next_pow2",
          "nextPow2": "next_pow2", "next_power_of_two": "next_pow2", "std::abs": "abs", "abs": "abs"}  # fmt: skip


class _Untranslated(Exception):
    pass


class _Parser:
    def __init__(self, text: str, names: Mapping[str, str]):
        self.names = names
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            m = _TOKEN.match(text, at)
            if not m:
                raise _Untranslated
            kind = m.lastgroup or ""
            self.tokens.append((kind, m.group(kind)))
            at = m.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else ""

    def take(self, want: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (want and self.peek() != want):
            raise _Untranslated
        self.at += 1
        return self.tokens[self.at - 1]

    def ternary(self) -> str:
        cond = self.binary(0)
        if self.peek() != "?":
            return cond
        self.take("?")
        a = self.ternary()
        self.take(":")
        return f"({a} if {cond} else {self.ternary()})"

    def binary(self, level: int) -> str:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            op = self.take()[1]
            left = f"{left} {_SPELL.get(op, op)} {self.binary(level + 1)}"
            if _LEVELS[level][0] in ("==", "<") and self.peek() in _LEVELS[level]:
                raise _Untranslated  # C's `a < b < c` is not Python's
            # C binds comparisons tighter than & ^ |, Python the other way round; keep C's tree visible
            if level in (2, 3, 4, 5, 6, 7):
                left = f"({left})"
        return left

    def unary(self) -> str:
        if self.peek() in ("-", "+", "~"):
            return self.take()[1] + self.unary()
        if self.peek() == "!":
            self.take()
            return f"(not {self.unary()})"
        if self.peek() == "(" and self._cast_ahead():
            while self.take()[1] != ")":
                pass
            return self.unary()
        return self.primary()

    def _cast_ahead(self) -> bool:
        """`(int)x`, `(unsigned long)x`: an integer type in parentheses before an operand."""
        i, words = 1, []
        while self.peek(i) not in (")", ""):
            words.append(self.peek(i))
            i += 1
        kind = scalar_name(" ".join(words)) if words else None
        return kind is not None and kind not in ("f16", "bf16", "f32", "f64") and self.peek(i + 1) not in ("", ")")

    def primary(self) -> str:
        kind, text = self.take()
        if text == "(":
            inner = self.ternary()
            self.take(")")
            return f"({inner})"
        if kind == "number":
            return _number(text)
        if kind != "name":
            raise _Untranslated
        if text == "sizeof":
            return self._sizeof()
        if text == "static_cast":
            return self._static_cast()
        if self.peek() == "<" and text in ("std::min", "std::max"):
            self._skip_angles()
        if self.peek() == "(":
            return self._call(text)
        if self.peek() in (".", "->", "[", "{"):
            raise _Untranslated
        if text in ("true", "false"):
            return text.capitalize()
        if "::" in text and text not in self.names:
            raise _Untranslated
        return self.names.get(text, text)

    def _sizeof(self) -> str:
        self.take("(")
        words = []
        while self.peek() not in (")", ""):
            words.append(self.take()[1])
        self.take(")")
        spelled = " ".join(words)
        scalar = scalar_name(spelled)
        if scalar is not None:
            return f"sizeof({scalar})"
        if len(words) != 1:
            raise _Untranslated
        return f"sizeof({self.names.get(spelled, spelled)})"

    def _static_cast(self) -> str:
        words = self._skip_angles()
        kind = scalar_name(" ".join(words))
        if kind is None or kind in ("f16", "bf16", "f32", "f64"):
            raise _Untranslated
        self.take("(")
        inner = self.ternary()
        self.take(")")
        return f"({inner})"

    def _skip_angles(self) -> list[str]:
        self.take("<")
        words: list[str] = []
        depth = 1
        while True:
            text = self.take()[1]
            depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
            if depth <= 0:
                return words
            words.append(text)

    def _call(self, name: str) -> str:
        self.take("(")
        args: list[str] = []
        while self.peek() != ")":
            args.append(self.ternary())
            if self.peek() == ",":
                self.take()
        self.take(")")
        if name in _CALLS and len(args) == (1 if _CALLS[name] in ("next_pow2", "abs") else 2):
            return f"{_CALLS[name]}({', '.join(args)})"
        if len(args) == 1 and scalar_name(name) in ("i32", "u32", "i64", "u64"):  # int(x)
            return f"({args[0]})"
        raise _Untranslated


def _number(text: str) -> str:
    if text[:2].lower() == "0x":
        return text.rstrip("uUlL")
    if "." in text or "e" in text.lower():
        return text.rstrip("fFlL")
    digits = text.rstrip("uUlLfF")
    if len(digits) > 1 and digits.startswith("0"):
        return f"0o{digits[1:]}"
    return digits


def to_case_expression(text: str, names: Mapping[str, str] | None = None) -> str | None:
    """A C++ expression in the case language, or None when some part of it has no certain meaning there.

    `names` replaces identifiers (already translated text, put in parentheses where it is more than a word).
    """
    wrapped = {k: v if re.fullmatch(r"\w+", v) else f"({v})" for k, v in (names or {}).items()}
    try:
        parser = _Parser(text, wrapped)
        out = parser.ternary()
    except (_Untranslated, RecursionError):
        return None
    if parser.at != len(parser.tokens):
        return None
    return tidy(out)


def tidy(text: str) -> str:
    """`(n + 255) // 256` and its like as ceil_div, and no parentheses around the whole."""
    text = re.sub(r"\((\w+) \+ (\w+) - 1\) // \2(?!\w)", r"ceil_div(\1, \2)", text)
    m = re.fullmatch(r"\((\w+) \+ (\d+)\) // (\d+)", text)
    if m and int(m.group(3)) == int(m.group(2)) + 1:
        return f"ceil_div({m.group(1)}, {m.group(3)})"
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1]
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if depth == 0:
            return i == len(text) - 1
    return False
