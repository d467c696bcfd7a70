"""The expression language of case files: a small, safe subset of Python, evaluated over names or printed as Python.

Nothing here calls eval. Integers, floats, bools and scalar type names ("bf16") are the values.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from porter.cxx.types import scalar_name
from porter.ir import SCALAR_BYTES, SCALARS
from porter.syntax import expression_tree
from porter.wording import plural

Value = int | float | bool | str
Aligned = Callable[[str, int], bool]

MAX_BITS = 128  # no integer of a case needs more; keeps `9 ** 9 ** 9` from filling memory
_OPERATOR_WORDS = frozenset({"and", "or", "not", "if", "else", "True", "False"})
_KEYWORD_MARK = "kw__"  # a CUDA parameter may be called `in` or `lambda`; Python's parser must not see that


class ExprError(ValueError):
    """An expression that cannot be read or evaluated; the message is for a person."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return -(-a // b) * b


def next_pow2(a: int) -> int:
    """The smallest power of two >= a (1 for a <= 1)."""
    return 1 if a <= 1 else 1 << (int(a) - 1).bit_length()


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {  # function, least and most arguments
    "min": (min, 2, 64),
    "max": (max, 2, 64),
    "abs": (abs, 1, 1),
    "int": (int, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "ceil_div": (ceil_div, 2, 2),
    "round_up": (round_up, 2, 2),
    "next_pow2": (next_pow2, 1, 1),
}
FUNCTION_NAMES = (*_FUNCTIONS, "sizeof", "aligned", "sm_count")

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", lambda a, b: a + b),
    ast.Sub: ("-", lambda a, b: a - b),
    ast.Mult: ("*", lambda a, b: a * b),
    ast.FloorDiv: ("//", lambda a, b: a // b),
    ast.Div: ("/", lambda a, b: a / b),
    ast.Mod: ("%", lambda a, b: a % b),
    ast.Pow: ("**", lambda a, b: a**b),
    ast.LShift: ("<<", lambda a, b: a << b),
    ast.RShift: (">>", lambda a, b: a >> b),
    ast.BitAnd: ("&", lambda a, b: a & b),
    ast.BitOr: ("|", lambda a, b: a | b),
    ast.BitXor: ("^", lambda a, b: a ^ b),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("-", lambda a: -a),
    ast.UAdd: ("+", lambda a: +a),
    ast.Not: ("not ", lambda a: not a),
    ast.Invert: ("~", lambda a: ~a),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
}


def _mark(word: re.Match[str]) -> str:
    text = word.group(0)
    if text in ("true", "false"):
        return text.capitalize()
    return _KEYWORD_MARK + text if keyword.iskeyword(text) and text not in _OPERATOR_WORDS else text


def _unmark(name: str) -> str:
    return name.removeprefix(_KEYWORD_MARK)


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """The checked syntax tree of an expression; raises ExprError naming the first construct that is not allowed."""
    marked = re.sub(r"[A-Za-z_]\w*", _mark, text.strip())
    if not marked:
        raise ExprError("an empty expression")
    try:
        tree = expression_tree(marked)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "too deeply nested or not text"
        hint = "; write `a if c else b` instead of `c ? a : b`" if "?" in text else ""
        raise ExprError(f"`{text}` is not an expression ({reason}){hint}") from None
    try:
        _check(tree, text)
    except RecursionError:
        raise ExprError("an expression nested too deeply") from None
    return tree


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=op, operand=x) if type(op) in _UNARY:
            _check(x, text)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
            _check(a, text)
            _check(b, text)
        case ast.BoolOp(values=values):
            for v in values:
                _check(v, text)
        case ast.Compare(left=a, ops=ops, comparators=rest) if all(type(o) in _COMPARE for o in ops):
            for v in (a, *rest):
                _check(v, text)
        case ast.IfExp(test=t, body=a, orelse=b):
            for v in (t, a, b):
                _check(v, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if not any(
            isinstance(a, ast.Starred) for a in args
        ):
            _check_call(name, args, text)
        case _:
            what = ast.unparse(node) if not isinstance(node, ast.Constant) else repr(node.value)
            raise ExprError(f"`{_unmark(what)}` is not allowed in a case expression (in `{text}`)")


def _check_call(name: str, args: list[ast.expr], text: str) -> None:
    if name in _FUNCTIONS:
        _, least, most = _FUNCTIONS[name]
        if not least <= len(args) <= most:
            raise ExprError(f"{name}() takes {plural(least, 'argument')} (in `{text}`)")
        for a in args:
            _check(a, text)
    elif name == "sizeof":
        if len(args) != 1 or not isinstance(args[0], ast.Name):
            raise ExprError(f"sizeof() takes the name of a type (in `{text}`)")
    elif name == "aligned":
        if len(args) != 2 or not isinstance(args[0], ast.Name):
            raise ExprError(f"aligned() takes a buffer's name and a number of bytes (in `{text}`)")
        _check(args[1], text)
    elif name == "sm_count":
        if args:
            raise ExprError(f"sm_count() takes no argument (in `{text}`)")
    else:
        raise ExprError(f"unknown function {_unmark(name)}() (in `{text}`); known: {' '.join(FUNCTION_NAMES)}")


def names_in(text: str) -> frozenset[str]:
    """Every name an expression reads, buffers of aligned() and types of sizeof() included."""
    tree = parse(text)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(_unmark(n.id) for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def uses_aligned(text: str) -> bool:
    """True when the expression asks for the alignment of a buffer."""
    calls = (n for n in ast.walk(parse(text)) if isinstance(n, ast.Call))
    return any(isinstance(c.func, ast.Name) and c.func.id == "aligned" for c in calls)


def evaluate(
    text: str | int | float | bool,
    names: Mapping[str, Value],
    *,
    aligned: Aligned | None = None,
    sm_count: int = 132,
) -> Value:
    """The value of an expression over `names` (sizes, scalars, template values; types as ir scalar names).

    `aligned(buffer, bytes)` decides aligned(); without it every buffer counts as aligned. Raises ExprError.
    """
    if not isinstance(text, str):
        return text
    tree = parse(text)
    try:
        return _eval(tree, names, aligned or (lambda _buffer, _bytes: True), sm_count)
    except ExprError as error:
        raise ExprError(f"{error} (in `{text}`)") from None
    except ZeroDivisionError:
        raise ExprError(f"division by zero (in `{text}`)") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ExprError(f"{error} (in `{text}`)") from None


def _eval(node: ast.expr, names: Mapping[str, Value], aligned: Aligned, sm_count: int) -> Any:
    def rec(n: ast.expr) -> Any:
        return _eval(n, names, aligned, sm_count)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=marked):
            name = _unmark(marked)
            if name in names:
                return names[name]
            if name in SCALARS:
                return name
            known = ", ".join(sorted(names)) or "none"
            raise ExprError(f"unknown name {name}; known: {known}")
        case ast.UnaryOp(op=op, operand=x):
            return _UNARY[type(op)][1](rec(x))
        case ast.BinOp(left=left, op=op, right=right):
            return arithmetic(op, rec(left), rec(right))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(rec(v) for v in values)
        case ast.BoolOp(values=values):
            return any(rec(v) for v in values)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            a = rec(left)
            for relation, right in zip(ops, rest, strict=True):
                b = rec(right)
                if not _COMPARE[type(relation)][1](a, b):
                    return False
                a = b
            return True
        case ast.IfExp(test=t, body=a, orelse=b):
            return rec(a) if rec(t) else rec(b)
        case ast.Call(func=ast.Name(id=name), args=args):
            if name == "sm_count":
                return sm_count
            if name == "sizeof":
                return _sizeof(args[0], names)
            if name == "aligned":
                assert isinstance(args[0], ast.Name)
                return aligned(_unmark(args[0].id), int(rec(args[1])))
            return _FUNCTIONS[name][0](*(rec(a) for a in args))
    raise ExprError(f"`{ast.unparse(node)}` is not allowed")


def compare(op: ast.cmpop, a: Any, b: Any) -> bool:
    """One comparison. Raises ExprError for an operator that the language has not."""
    if type(op) not in _COMPARE:
        raise ExprError(f"{type(op).__name__} is not a comparison of numbers")
    return bool(_COMPARE[type(op)][1](a, b))


def arithmetic(op: ast.operator, a: Any, b: Any) -> Any:
    """One operation on numbers, with a bound on how large they may become. Raises ExprError."""
    if type(op) not in _BINARY:
        raise ExprError(f"{type(op).__name__} is not arithmetic")
    if isinstance(a, str) or isinstance(b, str):
        raise ExprError(f"a type ({a if isinstance(a, str) else b}) is not a number")
    if isinstance(op, ast.Pow | ast.LShift) and isinstance(a, int) and isinstance(b, int):
        grown = b * max(a.bit_length(), 1) if isinstance(op, ast.Pow) else b + a.bit_length()
        if grown > MAX_BITS:
            raise ExprError(f"the result needs more than {MAX_BITS} bits")
    return _BINARY[type(op)][1](a, b)


def _sizeof(node: ast.expr, names: Mapping[str, Value]) -> int:
    assert isinstance(node, ast.Name)
    name = _unmark(node.id)
    bound = names.get(name, name)
    scalar = scalar_name(bound) if isinstance(bound, str) else None
    if scalar is None:
        raise ExprError(f"sizeof({name}): not a type")
    return SCALAR_BYTES[scalar]


# ---------------------------------------------------------------- printing

Render = Callable[[Sequence[str]], str]

_PRECEDENCE = {"or": 1, "and": 2, "not": 3, "cmp": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9,
               "*": 10, "//": 10, "/": 10, "%": 10, "unary": 11, "**": 12, "atom": 14}  # fmt: skip


def _wrap(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+(\(.*\))?", text) and text.count("(") <= 1 else f"({text})"


# How a port spells what plain Python lacks. The emitter may give its own for any of them.
PYTHON_FUNCTIONS: dict[str, Render] = {
    "ceil_div": lambda a: f"-(-{_wrap(a[0])} // {_wrap(a[1])})",
    "round_up": lambda a: f"-(-{_wrap(a[0])} // {_wrap(a[1])}) * {_wrap(a[1])}",
    "next_pow2": lambda a: f"1 << (max({a[0]}, 1) - 1).bit_length()",
    "sqrt": lambda a: f"math.sqrt({a[0]})",
    "sizeof": lambda a: f"{a[0]}.width // 8",
    "aligned": lambda a: f"{a[0]}.data_ptr() % {_wrap(a[1])} == 0",
    "sm_count": lambda a: "sm_count()",
}
_PYTHON_FUNCTION_LEVEL = {"ceil_div": 11, "round_up": 10, "next_pow2": 8, "sizeof": 10, "aligned": 4}


def to_python(
    text: str | int | float | bool,
    names: Mapping[str, str] | None = None,
    functions: Mapping[str, Render] | None = None,
) -> str:
    """The expression as Python source for a port's launcher.

    `names` renames (a name that is a Python keyword gets a trailing underscore unless renamed); `functions` gives the
    spelling of a function from its printed arguments, over PYTHON_FUNCTIONS; a function with neither prints as a call.
    """
    if not isinstance(text, str):
        return repr(text)
    return _print(parse(text), names or {}, functions or {})[0]


def _is_call(text: str) -> bool:
    """`name(...)`, the parenthesis closing at the end: needs no parentheses of its own."""
    head = re.match(r"[\w.]+\(", text)
    if not head:
        return False
    depth = 0
    for i, c in enumerate(text[head.end() - 1 :], head.end() - 1):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if depth == 0:
            return i == len(text) - 1
    return False


def _print(node: ast.expr, names: Mapping[str, str], functions: Mapping[str, Render]) -> tuple[str, int]:
    def at(n: ast.expr, level: int) -> str:
        text, own = _print(n, names, functions)
        return text if own >= level else f"({text})"

    match node:
        case ast.Constant(value=value):
            return repr(value), 14
        case ast.Name(id=marked):
            name = _unmark(marked)
            return names.get(name, name + "_" if keyword.iskeyword(name) else name), 14
        case ast.UnaryOp(op=op, operand=x):
            level = _PRECEDENCE["not" if isinstance(op, ast.Not) else "unary"]
            return _UNARY[type(op)][0] + at(x, level), level
        case ast.BinOp(left=a, op=op, right=b):
            sign = _BINARY[type(op)][0]
            level = _PRECEDENCE[sign]
            left, right = (level + 1, level) if sign == "**" else (level, level + 1)
            return f"{at(a, left)} {sign} {at(b, right)}", level
        case ast.BoolOp(op=op, values=values):
            word = "and" if isinstance(op, ast.And) else "or"
            level = _PRECEDENCE[word]
            return f" {word} ".join(at(v, level + 1) for v in values), level
        case ast.Compare(left=a, ops=ops, comparators=rest):
            parts = [at(a, 5)]
            for relation, b in zip(ops, rest, strict=True):
                parts += [_COMPARE[type(relation)][0], at(b, 5)]
            return " ".join(parts), 4
        case ast.IfExp(test=t, body=a, orelse=b):
            return f"{at(a, 1)} if {at(t, 1)} else {at(b, 0)}", 0
        case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=t)]) if t not in names and scalar_name(t):
            return str(SCALAR_BYTES[scalar_name(t) or "void"]), 14
        case ast.Call(func=ast.Name(id=name), args=args):
            printed = [_print(a, names, functions)[0] for a in args]
            if name in functions:
                text = functions[name](printed)
                return text, 14 if _is_call(text) else 0  # of unknown precedence: parenthesised wherever it matters
            if name in PYTHON_FUNCTIONS:
                return PYTHON_FUNCTIONS[name](printed), _PYTHON_FUNCTION_LEVEL.get(name, 14)
            return f"{name}({', '.join(printed)})", 14
    raise ExprError(f"`{ast.unparse(node)}` is not allowed")
