"""The body of one function: statements, scopes, registers, operands."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from dataclasses import replace

from porter.verify.emulator.decode.declarations import DECIMAL_FLOAT, FLOAT, INTEGER, NAME, int_literal, parse_variable
from porter.verify.emulator.decode.ir import (
    Address,
    Declaration,
    Function,
    Group,
    Imm,
    Instr,
    Label,
    Loc,
    Module,
    Not,
    Operand,
    Pair,
    Reg,
    Sink,
    Special,
    Sym,
    Variable,
    Vector,
)
from porter.verify.emulator.decode.types import TYPES, PtxType
from porter.verify.emulator.errors import PtxSyntaxError

_SPACE = re.compile(r"\s*")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)([^\n;]*)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_LABEL = re.compile(rf"({NAME}|\d+)\s*:(?!:)")
_STATEMENT = re.compile(r'(?:[^;"]|"(?:[^"\\\n]|\\.)*")*;')
_INSTRUCTION = re.compile(rf"(?:@\s*(!?)\s*({NAME})\s+)?([a-z_]\w*(?:\.[\w:]+)*)\s*(.*?)\s*;\Z", re.S)
_OPERANDS = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,{}\[\]()]+)\s*(,|\Z)")
_REG_DECL = re.compile(rf"({NAME})\s*(?:<\s*(\d+)\s*>)?")
_FAMILY = re.compile(r"(.*?)(\d+)\Z")

_SPECIAL_WORDS = """tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid is_explicit_cluster clusterid
nclusterid cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank lanemask_eq lanemask_le lanemask_lt lanemask_ge
lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size
dynamic_smem_size reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap current_graph_exec"""
VECTOR_SPECIALS = frozenset(
    ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
)
MOST_NESTED = 50  # compilers write two or three levels
SPECIAL_NAMES = frozenset(
    _SPECIAL_WORDS.split()
    + [f"envreg{i}" for i in range(32)]
    + [f"pm{i}" for i in range(8)]
    + [f"pm{i}_64" for i in range(8)]
)


class _Scope:
    __slots__ = ("families", "names", "renamed")

    def __init__(self) -> None:
        self.names: dict[str, Reg] = {}
        self.families: dict[str, tuple[PtxType, int]] = {}
        self.renamed: dict[str, str] = {}


class Body:
    """Parses one function body; nested `{ }` scopes get registers of their own."""

    def __init__(self, module: Module, declaration: Declaration):
        self.module = module
        self.declaration = declaration
        self.function = Function(
            declaration.name,
            declaration.is_entry,
            declaration.params,
            declaration.returns,
            declaration.line,
            directives=declaration.directives,
        )
        self.scopes = [_Scope()]
        self.memo: dict[str, Operand] = {}
        self.line = declaration.line
        self.scope_count = 0
        self.label_scopes: list[dict[str, str]] = [{}]
        for variable in (*declaration.params, *declaration.returns):
            if variable.space == "reg":
                self.declare_register(variable.name, variable.type)

    def declare_register(self, name: str, type_: PtxType) -> Reg:
        reg = Reg(len(self.function.registers), type_, name)
        self.function.registers.append(reg)
        self.scopes[-1].names[name] = reg
        return reg

    def parse(self) -> Function:
        text, end = self.module.text, self.declaration.end
        newlines = self.module.newlines
        at = self.declaration.start
        function = self.function
        loc: Loc | None = None
        placed: dict[int, Loc] = {}  # the latest place in each file, in order of files left
        while True:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if at >= end:
                break
            self.line = bisect_right(newlines, at) + 1
            char = text[at]
            if char == "{":
                if len(self.scopes) > MOST_NESTED:
                    raise PtxSyntaxError(f"scopes are nested more than {MOST_NESTED} deep", self.line)
                self.scopes.append(_Scope())
                self.label_scopes.append(self.local_labels(at, end))
                self.memo = {}
                at += 1
            elif char == "}":
                if len(self.scopes) == 1:
                    raise PtxSyntaxError("unbalanced }", self.line)
                self.scopes.pop()
                self.label_scopes.pop()
                self.memo = {}
                at += 1
            elif char == ";":
                at += 1
            elif match := _LOC.match(text, at):
                inlined = tuple(tuple(map(int, m.groups())) for m in _INLINED.finditer(match.group(4)))
                file, column = int(match.group(1)), int(match.group(3))
                if loc is not None and loc.column and loc.file != file:
                    placed.pop(loc.file, None)
                    placed[loc.file] = replace(loc, before=None)
                nearest = [x for f, x in placed.items() if f != file]
                before = nearest[-1] if nearest else None
                loc = Loc(file, int(match.group(2)), column, inlined, before)  # type: ignore[arg-type]
                at = match.end()
            elif match := _LABEL.match(text, at):
                at = self.label(match, text)
            else:
                match = _STATEMENT.match(text, at)
                if not match or match.end() > end:
                    raise PtxSyntaxError(f"unfinished statement {text[at : at + 40]!r}", self.line)
                statement = match.group()
                if char == ".":
                    self.directive(statement[:-1].strip())
                else:
                    function.code.append(self.instruction(statement, loc))
                at = match.end()
        for instruction in function.code:
            for operand in instruction.operands:
                if isinstance(operand, Label) and operand.name not in function.labels:
                    raise PtxSyntaxError(f"branch to unknown label {operand.name}", instruction.line)
        return function

    def local_labels(self, at: int, end: int) -> dict[str, str]:
        """Labels declared inside the scope that opens at `at`, renamed when the name was used before."""
        depth, labels = 0, {}
        for match in re.compile(rf"[{{}}]|(?:(?<=[;{{}}\s])({NAME})\s*:(?!:))").finditer(self.module.text, at, end):
            token = match.group()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if depth == 0:
                    break
            elif depth == 1 and match.group(1):
                self.scope_count += 1
                labels[match.group(1)] = f"{match.group(1)}@{self.scope_count}"
        return labels

    def label_name(self, name: str) -> str:
        for labels in reversed(self.label_scopes):
            if name in labels:
                return labels[name]
        return name

    def label(self, match: re.Match[str], text: str) -> int:
        name, at = self.label_name(match.group(1)), match.end()
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith((".branchtargets", ".callprototype", ".calltargets"), at):
            statement = _STATEMENT.match(text, at)
            if not statement:
                raise PtxSyntaxError("unfinished directive", self.line)
            body = statement.group()[:-1]
            if body.startswith(".callprototype"):
                self.function.prototypes[name] = body
            else:
                targets = re.findall(rf"{NAME}|\d+", body.split(None, 1)[1])
                self.function.branch_targets[name] = tuple(self.label_name(t) for t in targets)
            return statement.end()
        if name in self.function.labels:
            raise PtxSyntaxError(f"label {name} is defined twice", self.line)
        self.function.labels[name] = len(self.function.code)
        return at

    def directive(self, statement: str) -> None:
        word = re.match(r"\.(\w+)", statement)
        if not word:
            raise PtxSyntaxError(f"unknown directive {statement[:40]!r}", self.line)
        name = word.group(1)
        if name == "reg":
            match = re.match(r"\.reg\s*(?:\.v([24])\s*)?\.(\w+)\s+", statement)
            if not match or match.group(2) not in TYPES:
                raise PtxSyntaxError(f"unknown register declaration {statement[:60]!r}", self.line)
            if match.group(1):
                raise PtxSyntaxError("vector registers are not supported", self.line)
            type_ = TYPES[match.group(2)]
            for reg in _REG_DECL.finditer(statement, match.end()):
                if reg.group(2) is not None:
                    self.scopes[-1].families[reg.group(1)] = (type_, int(reg.group(2)))
                else:
                    self.declare_register(reg.group(1), type_)
        elif name in ("local", "shared", "param", "global", "const"):
            for variable in parse_variable(statement, self.line, False):
                if len(self.scopes) > 1:
                    self.scope_count += 1
                    unique = f"{variable.name}@{self.scope_count}"
                    self.scopes[-1].renamed[variable.name] = unique
                else:
                    unique = variable.name
                self.function.variables[unique] = Variable(
                    unique,
                    variable.space,
                    variable.type,
                    variable.count,
                    variable.align,
                    variable.is_array,
                    variable.init,
                )
            self.memo = {}
        elif name not in ("pragma", "file", "maxnreg", "noreturn"):
            raise PtxSyntaxError(f"unknown directive {statement[:40]!r}", self.line)

    def instruction(self, statement: str, loc: Loc | None) -> Instr:
        match = _INSTRUCTION.match(statement)
        if not match:
            raise PtxSyntaxError(f"not an instruction: {statement[:60]!r}", self.line)
        negated, pred_name, opcode, rest = match.groups()
        pred = None
        if pred_name:
            pred = self.register(pred_name)
            if pred is None:
                raise PtxSyntaxError(f"unknown predicate {pred_name}", self.line)
        branch = opcode.split(".")[0] in ("bra", "brx")
        operands = tuple(
            Label(self.label_name(text)) if branch and not text.startswith("%") else self.operand(text)
            for text in self.split(rest)
        )
        if branch and opcode.startswith("brx"):
            operands = (self.operand(self.split(rest)[0]), Label(operands[1].name))  # type: ignore[union-attr]
            targets = self.function.branch_targets.get(operands[1].name)  # type: ignore[union-attr]
            if targets is None:
                raise PtxSyntaxError("brx.idx needs a .branchtargets list before it", self.line)
            operands = (operands[0], *(Label(t) for t in targets))
        return Instr(opcode, operands, self.line, pred, negated == "!", loc)

    def split(self, text: str) -> list[str]:
        if not text:
            return []
        parts, at = [], 0
        while at < len(text):
            match = _OPERANDS.match(text, at)
            if not match:
                raise PtxSyntaxError(f"operands not understood: {text[:60]!r}", self.line)
            parts.append(match.group(1).strip())
            at = match.end()
        return parts

    def register(self, name: str) -> Reg | None:
        for scope in reversed(self.scopes):
            reg = scope.names.get(name)
            if reg is not None:
                return reg
            if scope.families and (match := _FAMILY.match(name)):
                family = scope.families.get(match.group(1))
                if family and int(match.group(2)) < family[1]:
                    reg = Reg(len(self.function.registers), family[0], name)
                    self.function.registers.append(reg)
                    scope.names[name] = reg
                    return reg
        return None

    def operand(self, text: str) -> Operand:
        found = self.memo.get(text)
        if found is None:
            found = self.memo[text] = self.parse_operand(text)
        return found

    def parse_operand(self, text: str) -> Operand:
        first = text[0]
        if first == "[":
            return self.address(text[1:-1].strip())
        if first == "{":
            return Vector(tuple(self.operand(t) for t in self.split(text[1:-1].strip())))
        if first == "(":
            return Group(tuple(self.operand(t) for t in self.split(text[1:-1].strip())))
        if first == "!":
            reg = self.register(text[1:].strip())
            if reg is None:
                raise PtxSyntaxError(f"unknown register in {text!r}", self.line)
            return Not(reg)
        if "|" in text:
            a, b = (part.strip() for part in text.split("|", 1))
            return Pair(self.operand(a), self.operand(b))
        if text == "_":
            return Sink()
        if first.isdigit() or first in "+-":
            return self.literal(text)
        reg = self.register(text)
        if reg is not None:
            return reg
        if first == "%" and (
            text[1:] in SPECIAL_NAMES or (text[-2:-1] == "." and text[1:-2] in VECTOR_SPECIALS and text[-1] in "xyzw")
        ):
            return Special(text)
        if text == "WARP_SZ":
            return Imm(32)
        match = re.fullmatch(rf"({NAME})\s*(?:([+-])\s*(-?\w+))?", text)
        if not match or first == "%":
            raise PtxSyntaxError(f"unknown operand {text!r}", self.line)
        offset = int_literal(match.group(3)) if match.group(3) else 0
        return Sym(self.symbol(match.group(1)), -offset if match.group(2) == "-" else offset)

    def symbol(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.renamed:
                return scope.renamed[name]
        return name

    def literal(self, text: str) -> Imm:
        negative = text[0] == "-"
        body = text.lstrip("+-").strip()
        if FLOAT.match(body):
            bits = 32 if body[1] in "fF" else 64
            value = int(body[2:], 16)
            if value >> bits or len(body) != 2 + bits // 4:
                raise PtxSyntaxError(f"bad float literal {text!r}", self.line)
            return Imm(value ^ (1 << (bits - 1)) if negative else value, bits)
        if INTEGER.match(body):
            value = int_literal(body)
            return Imm(-value if negative else value)
        if DECIMAL_FLOAT.match(body):
            value = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
            return Imm(value, 64)
        raise PtxSyntaxError(f"unknown literal {text!r}", self.line)

    def address(self, text: str) -> Address:
        parts = self.split(text)
        if not parts:
            raise PtxSyntaxError("empty address", self.line)
        match = re.fullmatch(rf"({NAME}|\d\w*)\s*(?:([+-])\s*(-?\w+))?", parts[0])
        if not match:
            raise PtxSyntaxError(f"unknown address [{text}]", self.line)
        offset = _int_literal_signed(match.group(3)) if match.group(3) else 0
        if match.group(2) == "-":
            offset = -offset
        base = self.operand(match.group(1))
        if isinstance(base, Sym):
            base = Sym(base.name, base.offset)
        elif not isinstance(base, (Reg, Imm)):
            raise PtxSyntaxError(f"unknown address [{text}]", self.line)
        return Address(base, offset, tuple(self.operand(p) for p in parts[1:]))


def _int_literal_signed(text: str) -> int:
    return -int_literal(text[1:]) if text.startswith("-") else int_literal(text)
