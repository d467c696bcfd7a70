"""Loops over the lanes of a vector as arithmetic of whole vectors.

`+`, `-`, `*`, conversions and `exp` of vectors are the same instructions, lane by lane, as the loop's, and contract
alike. What has a slow path (division, pow, tanh) would keep the registers of all lanes alive across it, so a loop with
such a chain stays a loop. A sum over the lanes is `lib.total`, which adds in the loop's order.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from porter.lift.terms import called, names_in, text_of

#: dtypes that a conversion of a vector rounds to as that of an element does
_FLOATS = {"Float32", "Float16", "BFloat16"}
CALL, PRODUCT, SUM = 0, 1, 2


@dataclass(frozen=True)
class Vector:
    """The text of a vector expression; `dtype` is Float32 where arithmetic may go on with it. `scalar`: no vector."""

    text: str
    dtype: str = "Float32"
    scalar: bool = False
    prec: int = 0

    def at(self, prec: int) -> str:
        """The text as an operand of what binds so tightly."""
        return self.text if self.prec <= prec else f"({self.text})"


class LaneLoop:
    """Writes one loop `for j in cutlass.range_constexpr(count)` as vector statements, if it can be."""

    def __init__(self, index: str, values: dict[str, str], floats: set[str], changing: set[str]):
        self.index = index
        self.values = dict(values)  # vectors by name, with their dtypes
        self.floats = _FLOATS | floats
        self.changing = changing  # names that the loop assigns
        self.made: dict[str, str] = {}  # temporaries of the loop that are vectors now
        self.filled: dict[str, str] = {}  # arrays that the loop fills, with their dtypes

    def statement(self, node: ast.stmt | None, arrays: dict[str, str]) -> str | None:
        """One line of the loop as a line beside it; None where that cannot be."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            array = target.value.id if isinstance(target.value, ast.Name) else ""
            if array not in arrays or array in self.filled or text_of(target.slice) != self.index:
                return None
            value = self.vector(node.value)
            if value is None or value.scalar or value.dtype != arrays[array]:
                return None
            self.filled[array] = self.values[array] = value.dtype
            return f"{array} = {value.text}"
        if not isinstance(target, ast.Name):
            return None
        name = target.id
        if name in names_in(node.value):
            return self._accumulated(name, node.value)
        value = self.vector(node.value)
        if value is None or value.scalar:
            return None
        self.made[name] = value.dtype
        return f"{name} = {value.text}"

    def _accumulated(self, name: str, value: ast.expr) -> str | None:
        if name in self.values or name in self.made:
            return None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and text_of(value.left) == name:
            terms = self.vector(value.right)
            if terms is not None and not terms.scalar and terms.dtype == "Float32":
                return f"{name} = lib.total({terms.text}, {name})"
        largest = called(value, "lib.fmax")
        if largest is not None and text_of(largest.args[0]) == name:
            terms = self.vector(largest.args[1])
            if terms is not None and not terms.scalar and terms.dtype == "Float32":
                return f"{name} = lib.largest({terms.text}, {name})"
        return None

    def vector(self, node: ast.expr) -> Vector | None:
        """The expression over all lanes; a scalar where it has no lanes; None where it cannot be written so."""
        if isinstance(node, ast.Subscript):
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            if name not in self.values or text_of(node.slice) != self.index:
                return None
            return Vector(name, self.values[name])
        if isinstance(node, ast.Name) and node.id in self.made:
            return Vector(node.id, self.made[node.id])
        if self.index not in names_in(node) and not names_in(node) & (set(self.values) | set(self.made)):
            simple = isinstance(node, ast.Name) and node.id not in self.changing
            number = isinstance(node, ast.Constant) and isinstance(node.value, float)
            return Vector(text_of(node), scalar=True) if simple or number else None
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            return self._call(text_of(node.func), self.vector(node.args[0]))
        return None

    def _arithmetic(self, node: ast.BinOp) -> Vector | None:
        a, b = self.vector(node.left), self.vector(node.right)
        if a is None or b is None or (a.scalar and b.scalar) or not a.dtype == b.dtype == "Float32":
            return None
        if isinstance(node.op, ast.Mult):
            left, right = (b, a) if a.scalar else (a, b)  # the vector first: a number has no product with a vector
            return Vector(f"{left.at(PRODUCT)} * {right.at(CALL)}", prec=PRODUCT)
        if isinstance(node.op, ast.Add):
            left, right = (b, a) if a.scalar else (a, b)
            return Vector(f"{left.at(SUM)} + {right.at(PRODUCT)}", prec=SUM)
        if isinstance(node.op, ast.Sub) and not a.scalar:
            return Vector(f"{a.at(SUM)} - {b.at(PRODUCT)}", prec=SUM)
        return None

    def _call(self, function: str, inner: Vector | None) -> Vector | None:
        if inner is None or inner.scalar:
            return None
        if function in self.floats:
            if function == inner.dtype:
                return inner
            return Vector(f"{inner.at(CALL)}.to({function})", function)
        if function == "cute.math.exp" and inner.dtype == "Float32":
            return Vector(f"cute.math.exp({inner.text})")
        return None
