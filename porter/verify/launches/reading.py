"""The plain Python of a port's launch_config, read step by step: what it answers, and which way it took.

A way is an arm of a condition or comparison, of a min or max, a side of a divisor (`n // 256` is zero or not), or the
element that a subscript takes. Nothing of the port is run: this reads arithmetic, conditions, loops, tables and the
port's own helpers, and says Unreadable of the rest.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from porter.case import expressions
from porter.case.expressions import ExprError
from porter.corpus.runtime.dtypes import DTYPES, dtype

STEPS = 20_000  # expressions of one call
DEEP = 40  # calls inside one another
WIDE = 256  # bits of a number
LONG = 4096  # elements of a table or range

Way = tuple[int, int]  # position of the expression in the text, number of the arm
Place = tuple[int, int]  # position, number of the operand


class Unreadable(Exception):
    """Not what this module reads, or an error of the port's own at these values."""


class PortRaises(Unreadable):
    """The port raises: it does not take these values."""


class _Return(Exception):
    def __init__(self, value: Any):
        self.value = value


class _Loop(Exception):
    def __init__(self, ends: bool):
        self.ends = ends


@dataclass
class Trace:
    """What one call did: its ways, and for each comparison by how much the left side is larger."""

    ways: set[Way] = field(default_factory=set)
    margins: dict[Place, float] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0


_SIMPLE: dict[str, Callable[..., Any]] = {
    "abs": abs, "int": int, "bool": bool, "float": float, "len": len, "sum": sum, "tuple": tuple, "list": list,
    "divmod": divmod, "round": round, "any": any, "all": all, "reversed": lambda x: list(reversed(x)),
    "zip": lambda *a: list(zip(*a, strict=False)), "enumerate": lambda x, start=0: list(enumerate(x, start)),
    "cutlass.const_expr": lambda x: x, "const_expr": lambda x: x, "str": str,
}  # fmt: skip
_MATH = ("ceil", "floor", "gcd", "lcm", "isqrt", "log2", "prod", "sqrt", "trunc")
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_ERRORS = (
    ExprError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError, MemoryError,
)  # fmt: skip


_KINDS = (ast.BinOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Subscript)


def _place(node: ast.expr) -> int:
    """Where an expression stands, and of which kind it is: `n % 8 == 1` and `n % 8` start at one place."""
    kind = next((k for k, of in enumerate(_KINDS) if isinstance(node, of)), len(_KINDS))
    return (node.lineno << 16 | node.col_offset) << 3 | kind


class Reading:
    """A port's functions and constants, to be evaluated at given values."""

    def __init__(self, tree: ast.Module):
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list}
        self.constants: dict[str, ast.expr] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.constants[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.constants[node.target.id] = node.value

    def evaluate(self, node: ast.expr, names: Mapping[str, Any], trace: Trace | None = None) -> Any:
        """The value of an expression. Raises Unreadable."""
        try:
            return _Frame(self, dict(names), trace or Trace()).value(node)
        except _ERRORS as error:
            raise Unreadable(str(error)) from None

    def call(self, name: str, given: Mapping[str, Any], trace: Trace) -> Any:
        """What a function of the port answers to keywords; those that it does not take are left out.

        Raises Unreadable, and Refused where the port raises.
        """
        function = self.functions.get(name)
        if function is None:
            raise Unreadable(f"no function {name}")
        try:
            return self.invoke(function, [], given, trace, extra=True)
        except _ERRORS as error:
            raise Unreadable(str(error)) from None

    def invoke(
        self,
        function: ast.FunctionDef,
        args: Sequence[Any],
        given: Mapping[str, Any],
        trace: Trace,
        extra: bool = False,
    ) -> Any:
        """The value that a function of the port returns."""
        a = function.args
        if trace.depth >= DEEP or a.vararg:
            raise Unreadable(f"calls {function.name}")
        positional = [*a.posonlyargs, *a.args]
        names: dict[str, Any] = {"sm_count": given["sm_count"]} if "sm_count" in given else {}
        names = {} if function.args.kwarg is None else names
        for parameter, default in zip(reversed(positional), reversed(a.defaults), strict=False):
            names[parameter.arg] = self.evaluate(default, {}, trace)
        for parameter, maybe in zip(a.kwonlyargs, a.kw_defaults, strict=True):
            if maybe is not None:
                names[parameter.arg] = self.evaluate(maybe, {}, trace)
        names.update(zip((p.arg for p in positional), args, strict=False))
        known = {p.arg for p in (*positional, *a.kwonlyargs)}
        rest = {k: v for k, v in given.items() if k not in known}
        names.update({k: v for k, v in given.items() if k in known})
        if rest and a.kwarg is None and not extra:
            raise Unreadable(f"calls {function.name} with {min(rest)}")
        if a.kwarg is not None:
            names[a.kwarg.arg] = rest
        for missing in known - names.keys():
            names[missing] = Unreadable(f"{function.name} is not given {missing}")
        frame = _Frame(self, names, trace, given.get("sm_count"))
        trace.depth += 1
        try:
            frame.body(function.body)
        except _Return as returned:
            return returned.value
        finally:
            trace.depth -= 1
        return None


class _Frame:
    """One call: local names, and the trace it adds to."""

    def __init__(self, reading: Reading, names: dict[str, Any], trace: Trace, sm_count: Any = None):
        self.reading, self.names, self.trace = reading, names, trace
        self.sm_count = sm_count if sm_count is not None else names.get("sm_count")

    def arm(self, node: ast.expr, number: int) -> None:
        self.trace.ways.add((_place(node), number))

    def margin(self, node: ast.expr, which: int, a: Any, b: Any) -> None:
        if isinstance(a, int | float) and isinstance(b, int | float):
            self.trace.margins[_place(node), which] = a - b

    # ---- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.maybe(value)
                for target in targets:
                    self.store(target, found)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.store(target, self.maybe(value))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                self.names[name] = self.operation(value, op, self.names[name], self.value(value))
            case ast.If(test=test, body=one, orelse=other):
                truth = bool(self.value(test))
                self.arm(test, 2 + truth)
                self.body(one if truth else other)
            case ast.For(target=target, iter=values, body=body, orelse=rest):
                for value in self.elements(self.value(values)):
                    self.store(target, value)
                    try:
                        self.body(body)
                    except _Loop as loop:
                        if loop.ends:
                            return
                self.body(rest)
            case ast.While(test=test, body=body, orelse=[]):
                while self.value(test):
                    try:
                        self.body(body)
                    except _Loop as loop:
                        if loop.ends:
                            return
            case ast.Return(value=value):
                raise _Return(None if value is None else self.value(value))
            case ast.Break() | ast.Continue():
                raise _Loop(isinstance(node, ast.Break))
            case ast.Assert(test=test):
                if not self.value(test):
                    raise PortRaises(ast.unparse(test))
            case ast.Raise():
                raise PortRaises(ast.unparse(node))
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise Unreadable(type(node).__name__)

    def maybe(self, node: ast.expr) -> Any:
        """A value that may never be used: what cannot be read matters where it is."""
        try:
            return self.value(node)
        except PortRaises:
            raise
        except (Unreadable, *_ERRORS) as error:
            return error if isinstance(error, Unreadable) else Unreadable(str(error))

    def store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            values = self.elements(value)
            if len(values) != len(target.elts):
                raise Unreadable("unpacking")
            for part, one in zip(target.elts, values, strict=True):
                self.store(part, one)
        else:
            raise Unreadable(ast.unparse(target))

    def elements(self, value: Any) -> Sequence[Any]:
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, range | tuple | list | str) and len(value) <= LONG:
            return value
        raise Unreadable("a loop")

    # ---- expressions

    def value(self, node: ast.expr) -> Any:
        self.trace.steps += 1
        if self.trace.steps > STEPS:
            raise Unreadable("too long")
        found = self.expression(node)
        if isinstance(found, int) and found.bit_length() > WIDE:
            raise Unreadable("a number too large")
        return found

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Name(id=name):
                return self.name(name)
            case ast.UnaryOp(op=op, operand=x):
                v = self.value(x)
                if isinstance(op, ast.Not):
                    return not v
                return ~v if isinstance(op, ast.Invert) else -v if isinstance(op, ast.USub) else +v
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(node, op, self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=values):
                wanted = isinstance(op, ast.Or)
                v = None
                for number, part in enumerate(values):
                    v = self.value(part)
                    if bool(v) is wanted:
                        self.arm(node, number)
                        return v
                return v
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return self.comparison(node, self.value(left), ops, rest)
            case ast.IfExp(test=test, body=one, orelse=other):
                truth = bool(self.value(test))
                self.arm(node, int(truth))
                return self.value(one if truth else other)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.names[name] = self.value(value)
                return self.names[name]
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                found: list[Any] = []
                for e in elts:
                    if isinstance(e, ast.Starred):
                        found += self.elements(self.value(e.value))
                    else:
                        found.append(self.value(e))
                return found if isinstance(node, ast.List) else tuple(found)
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self.value(k): self.value(v) for k, v in zip(keys, values, strict=True) if k is not None}
            case ast.Subscript(value=value, slice=index):
                return self.subscript(node, self.value(value), index)
            case ast.ListComp(elt=elt, generators=loops) | ast.GeneratorExp(elt=elt, generators=loops):
                return list(self.comprehended(elt, loops))
            case ast.Attribute(value=ast.Call(func=f, args=[kind], keywords=[]), attr="bytes" | "bits" as attr):
                name = self.value(kind)
                if ast.unparse(f) in ("runtime.dtype", "dtype") and name in DTYPES:
                    return dtype(name).bytes * (8 if attr == "bits" else 1)
            case ast.Call():
                return self.called(node)
        raise Unreadable(ast.unparse(node))

    def name(self, name: str) -> Any:
        if name in self.names:
            found = self.names[name]
            if isinstance(found, Unreadable):
                raise found
            return found
        if name in self.reading.constants:
            return _Frame(self.reading, {}, self.trace, self.sm_count).value(self.reading.constants[name])
        raise Unreadable(name)

    def operation(self, node: ast.expr, op: ast.operator, a: Any, b: Any) -> Any:
        if isinstance(op, ast.FloorDiv | ast.Mod):
            self.arm(node, int(abs(a) > abs(b)))
            self.margin(node, 0, abs(a), abs(b))
        elif isinstance(op, ast.LShift | ast.RShift):
            if not 0 <= b <= WIDE:
                raise Unreadable("a shift")
            found = a << b if isinstance(op, ast.LShift) else a >> b
            if isinstance(op, ast.RShift):
                self.arm(node, int(found != 0))
                self.margin(node, 0, a, 1 << b)
            return found
        elif isinstance(op, _BITS):
            found = a & b if isinstance(op, ast.BitAnd) else a | b if isinstance(op, ast.BitOr) else a ^ b
            self.arm(node, int(found == a))
            return found
        elif isinstance(op, ast.Pow):
            if not (isinstance(a, int) and isinstance(b, int) and 0 <= b <= WIDE and abs(a) < 1 << 32):
                raise Unreadable("a power")
            return a**b
        elif isinstance(op, ast.Div):
            return a / b
        elif isinstance(op, ast.Mult) and not (isinstance(a, int | float) and isinstance(b, int | float)):
            raise Unreadable("a product")
        elif isinstance(op, ast.Add) and isinstance(a, list | tuple | str):
            return a + b
        return expressions.arithmetic(op, a, b)

    def comparison(self, node: ast.expr, a: Any, ops: Sequence[ast.cmpop], rest: Sequence[ast.expr]) -> bool:
        for number, (relation, right) in enumerate(zip(ops, rest, strict=True)):
            b = self.value(right)
            self.margin(node, number, a, b)
            if isinstance(relation, ast.In | ast.NotIn):
                for n, one in enumerate(self.elements(b)):
                    self.margin(node, 16 + n, a, one)
                holds = (a in self.elements(b)) is isinstance(relation, ast.In)
            elif isinstance(relation, ast.Is | ast.IsNot):
                holds = (a is b) is isinstance(relation, ast.Is)
            elif isinstance(a, str) or isinstance(b, str) or a is None or b is None:
                holds = (a == b) is isinstance(relation, ast.Eq)
            else:
                holds = bool(expressions.compare(relation, a, b))
            self.arm(node, int(holds))
            if not holds:
                return False
            a = b
        return True

    def subscript(self, node: ast.expr, table: Any, index: ast.expr) -> Any:
        if isinstance(index, ast.Slice):
            bounds = [None if p is None else self.value(p) for p in (index.lower, index.upper, index.step)]
            for number, (bound, size) in enumerate((b, len(table)) for b in bounds if b is not None):
                self.margin(node, number, bound, size)
            found = table[slice(*bounds)]
            self.arm(node, min(len(found), 8))
            return found
        at = self.value(index)
        if not isinstance(index, ast.Constant) and isinstance(at, int):
            self.arm(node, int(at))
            self.margin(node, 0, at, 1)
        return table[at]

    def comprehended(self, elt: ast.expr, loops: Sequence[ast.comprehension]) -> Iterator[Any]:
        if len(loops) != 1:
            raise Unreadable("a comprehension")
        for value in self.elements(self.value(loops[0].iter)):
            self.store(loops[0].target, value)
            if all(self.value(test) for test in loops[0].ifs):
                yield self.value(elt)

    def called(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func)
        if any(k.arg is None for k in node.keywords):
            raise Unreadable(name)
        if name in ("runtime.sm_count", "sm_count") and self.sm_count is not None:
            return self.sm_count
        args: list[Any] = []
        for a in node.args:
            args += self.elements(self.value(a.value)) if isinstance(a, ast.Starred) else [self.value(a)]
        given = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        if isinstance(node.func, ast.Name) and name in self.reading.functions:
            hidden = self.reading.functions[name]
            return self._with_machine(hidden, args, given)
        if name in ("min", "max") and set(given) <= {"default"}:
            values = list(self.elements(args[0])) if len(args) == 1 else args
            if not values:
                return given["default"]
            best = min(values) if name == "min" else max(values)
            if values.count(best) == 1:
                self.arm(node, values.index(best))
            for number, v in enumerate(values[1:]):
                self.margin(node, number, values[0], v)
            return best
        if name == "sorted" and set(given) <= {"reverse"}:
            values = list(self.elements(args[0]))
            for number, (a, b) in enumerate(pairwise(values)):
                self.arm(node, 2 * number + int(a > b))
                self.margin(node, number, a, b)
            return sorted(values, reverse=bool(given.get("reverse", False)))
        if name == "range" and not given:
            made = range(*args)
            self.arm(node, int(len(made) > 0))
            self.margin(node, 0, made.stop, made.start)
            return made
        if given and name != "enumerate":
            raise Unreadable(name)
        if name == "pow":
            return self.operation(node, ast.Pow(), *args[:2]) % (args[2] if len(args) > 2 else 1 << WIDE)
        if name in _SIMPLE:
            return _SIMPLE[name](*args, **given)
        module, _, function = name.rpartition(".")
        if module == "math" and function in _MATH:
            return getattr(math, function)(*args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "index", "count", "bit_length"):
            owner = self.value(node.func.value)
            if isinstance(owner, dict | tuple | list | int):
                found = getattr(owner, node.func.attr)(*args)
                if isinstance(found, int):
                    self.arm(node, int(found))
                return found
        raise Unreadable(name)

    def _with_machine(self, function: ast.FunctionDef, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        inner = dict(given)
        if self.sm_count is None:
            return self.reading.invoke(function, args, inner, self.trace)
        takes = {p.arg for p in (*function.args.args, *function.args.kwonlyargs)}
        if "sm_count" not in takes:
            inner["sm_count"] = self.sm_count
            return self.reading.invoke(function, args, inner, self.trace, extra=True)
        return self.reading.invoke(function, args, inner, self.trace)
