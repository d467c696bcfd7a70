"""Writes LLVM IR as text: values, instructions, labels. Vectors have LANES lanes."""

from __future__ import annotations

from typing import NamedTuple

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}


class Refused(Exception):
    """The program holds something that this backend does not do."""


class Value(NamedTuple):
    """A vector of LANES elements of `type` ("i1", "i32", "float"...)."""

    name: str
    type: str


class Writer:
    """Appends instructions to the current basic block of one function."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.lines: list[str] = []
        self.count = 0
        self.label = "entry"
        self.declared: set[str] = set()

    def fresh(self, hint: str = "v") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def vec(self, t: str) -> str:
        return f"<{self.lanes} x {t}>"

    def op(self, text: str, hint: str = "v") -> str:
        """Appends `%n = text` and returns the name."""
        name = self.fresh(hint)
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def start(self, label: str) -> None:
        """Begins a basic block; the one before must have ended."""
        self.lines.append(f"{label}:")
        self.label = label

    def new_label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def splat(self, t: str, scalar: str) -> str:
        """A vector with the run-time scalar in every lane."""
        one = self.op(f"insertelement {self.vec(t)} poison, {t} {scalar}, i64 0")
        return self.op(f"shufflevector {self.vec(t)} {one}, {self.vec(t)} poison, <{self.lanes} x i32> zeroinitializer")

    def declare(self, text: str) -> None:
        self.declared.add(text)
