"""The line of the user's own file that a PTX instruction belongs to, library code and compiler-made places included."""

from __future__ import annotations

from pathlib import PurePath

from porter.verify.emulator import Module
from porter.verify.emulator.decode.ir import Address, Instr, Operand, Pair, Reg, Vector

_STORES = ("st", "red")
_ACCESSES = ("ld", "st", "red", "atom")
_STEPS = 4  # definitions followed back


class Lines:
    """Lines of one module's instructions. `file`: the user's file (compared by name: ports move between folders)."""

    def __init__(self, module: Module, file: str):
        self.module = module
        name = PurePath(file).name
        self.own = {number for number, path in module.files.items() if PurePath(path).name == name}
        self.known: dict[int, int] = {}
        self.position: dict[int, tuple[list[Instr], int]] = {}
        for function in module.functions.values():
            for k, instr in enumerate(function.code):
                self.position[id(instr)] = (function.code, k)

    def of(self, instr: Instr) -> int:
        """The line, 0 where none can be found."""
        found = self.known.get(id(instr))
        if found is None:
            found = self.known[id(instr)] = self._find(instr)
        return found

    def _find(self, instr: Instr) -> int:
        line = self._written(instr)
        code, at = self.position.get(id(instr), ([], 0))
        if line or not code:
            return line
        # A library call: the address that it accesses was computed by its caller, what it returns is used there.
        if instr.base in _ACCESSES:
            line = self._made(code, at, _STEPS)
        return line or self._used(code, at) or self._made(code, at, _STEPS) or self._before(instr)

    def _written(self, instr: Instr) -> int:
        """The line that the `.loc` gives, when it is one of the user's. Column 0 marks what no statement asked for."""
        loc = instr.loc
        if loc is None:
            return 0
        if loc.file in self.own and loc.line and loc.column:
            return loc.line
        return next((line for f, line, column in loc.inlined if f in self.own and line and column), 0)

    def _before(self, instr: Instr) -> int:
        before = instr.loc.before if instr.loc else None
        return before.line if before is not None and before.file in self.own else 0

    def _used(self, code: list[Instr], at: int) -> int:
        results = _registers(code[at].operands[:1]) if code[at].base not in _STORES else set()
        for later in code[at + 1 :]:
            if results & _registers(later.operands if later.base in _STORES else later.operands[1:]):
                line = self._written(later)
                if line:
                    return line
        return 0

    def _made(self, code: list[Instr], at: int, steps: int) -> int:
        instr = code[at]
        places = tuple(o for o in instr.operands if isinstance(o, Address))
        sources = _registers(places if instr.base in _ACCESSES else instr.operands[1:])
        for k in range(at - 1, -1, -1):
            if code[k].base not in _STORES and sources & _registers(code[k].operands[:1]):
                line = self._written(code[k])
                if line or steps == 0:
                    return line
                line = self._made(code, k, steps - 1)
                if line:
                    return line
        return 0


def _registers(operands: tuple[Operand, ...]) -> set[int]:
    found: set[int] = set()
    for operand in operands:
        match operand:
            case Reg():
                found.add(operand.index)
            case Vector(items=items):
                found |= _registers(items)
            case Pair(first=a, second=b):
                found |= _registers((a, b))
            case Address(base=Reg() as base):
                found.add(base.index)
    return found
