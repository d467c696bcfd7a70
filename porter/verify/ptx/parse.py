"""PTX text to ir.Module. The module is scanned once; the body of a function is parsed when it is first asked for."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right

from porter.verify.ptx.errors import PtxError, PtxSyntaxError
from porter.verify.ptx.ir import (
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
from porter.verify.ptx.types import TYPES, PtxType

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_SPACE = re.compile(r"\s*")
_BRACE = re.compile(r'[{}]|"(?:[^"\\\n]|\\.)*"')
_NAME = r"[A-Za-z_$%][\w$%]*"
_WORD = re.compile(r"\.?[\w$%:]+")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"[^\n]*')
_LINE_DIRECTIVE = re.compile(r"\.(version|target|address_size)\s+([^\n]*)")
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\b")
_FUNCTION = re.compile(r"\.(entry|func)\b")
_PARAM = re.compile(r"\.param\b")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)([^\n;]*)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_LABEL = re.compile(rf"({_NAME}|\d+)\s*:(?!:)")
_STATEMENT = re.compile(r'(?:[^;"]|"(?:[^"\\\n]|\\.)*")*;')
_INSTRUCTION = re.compile(rf"(?:@\s*(!?)\s*({_NAME})\s+)?([a-z_]\w*(?:\.[\w:]+)*)\s*(.*?)\s*;\Z", re.S)
_OPERANDS = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,{}\[\]()]+)\s*(,|\Z)")
_REG_DECL = re.compile(rf"({_NAME})\s*(?:<\s*(\d+)\s*>)?")
_FLOAT = re.compile(r"0[fFdD][0-9a-fA-F]+\Z")
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9]\d*)U?\Z")
_DECIMAL_FLOAT = re.compile(r"\d+\.\d*(?:[eE][+-]?\d+)?\Z|\d+[eE][+-]?\d+\Z")
_INIT_PART = re.compile(r"[^,(]*\([^)]*\)[^,]*|[^,]+")
_FAMILY = re.compile(r"(.*?)(\d+)\Z")

_SPECIAL_WORDS = """tid ntid laneid warpid nwarpid ctaid nctaid smid nsmid gridid is_explicit_cluster clusterid
nclusterid cluster_ctaid cluster_nctaid cluster_ctarank cluster_nctarank lanemask_eq lanemask_le lanemask_lt lanemask_ge
lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size
dynamic_smem_size reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap current_graph_exec"""
SPECIAL_NAMES = frozenset(
    _SPECIAL_WORDS.split()
    + [f"envreg{i}" for i in range(32)]
    + [f"pm{i}" for i in range(8)]
    + [f"pm{i}_64" for i in range(8)]
)
_SPACES = {"global", "const", "shared", "local", "param"}


def load(text: str | bytes) -> Module:
    """Scan PTX text. Bodies are not parsed yet. Raises PtxSyntaxError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.rstrip("\0")
    if ".version" not in text:
        raise PtxSyntaxError("no .version directive: not PTX text")
    try:
        return _Scanner(text).scan()
    except (IndexError, KeyError, ValueError, OverflowError, struct.error) as error:
        if isinstance(error, PtxError):
            raise
        raise PtxSyntaxError(f"malformed module ({error})") from error


def function(module: Module, name: str) -> Function:
    """The parsed body of an entry or device function. Raises PtxSyntaxError."""
    found = module.functions.get(name)
    if found is None:
        declaration = module.declarations[name]
        if not declaration.end:
            raise PtxSyntaxError(f"{name} is declared but has no body", declaration.line)
        try:
            found = _Body(module, declaration).parse()
        except (IndexError, KeyError, ValueError, OverflowError, struct.error, RecursionError) as error:
            if isinstance(error, PtxError):
                raise
            raise PtxSyntaxError(f"malformed body of {name} ({error})", declaration.line) from error
        module.functions[name] = found
    return found


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return text if text[0] == '"' else "\n" * text.count("\n") or " "


class _Scanner:
    def __init__(self, text: str):
        self.text = _COMMENT.sub(_blank, text)
        self.module = Module(self.text)
        self.module.newlines = [m.start() for m in re.finditer("\n", self.text)]
        self.at = 0

    def line(self, at: int | None = None) -> int:
        return bisect_right(self.module.newlines, self.at if at is None else at) + 1

    def fail(self, message: str) -> PtxSyntaxError:
        return PtxSyntaxError(message, self.line())

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def close_brace(self, start: int) -> int:
        """Index of the brace that closes the one at `start`."""
        depth = 0
        for match in _BRACE.finditer(self.text, start):
            token = match.group()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if depth == 0:
                    return match.start()
        raise PtxSyntaxError("unclosed {", self.line(start))

    def scan(self) -> Module:
        text, module = self.text, self.module
        linkage: set[str] = set()
        while True:
            self.skip()
            if self.at >= len(text):
                return module
            if match := _LINE_DIRECTIVE.match(text, self.at):
                value = match.group(2).strip()
                if match.group(1) == "version":
                    module.version = value
                elif match.group(1) == "target":
                    module.target = value
                else:
                    module.address_size = int(value)
                    if module.address_size != 64:
                        raise self.fail("only .address_size 64 is supported")
                self.at = match.end()
            elif match := _FILE.match(text, self.at):
                module.files[int(match.group(1))] = match.group(2)
                self.at = match.end()
            elif match := _LOC.match(text, self.at):
                self.at = match.end()
            elif match := _LINKAGE.match(text, self.at):
                linkage.add(match.group(1))
                self.at = match.end()
            elif match := _FUNCTION.match(text, self.at):
                self.at = match.end()
                self.function(match.group(1) == "entry")
                linkage = set()
            elif text.startswith(".section", self.at):
                brace = text.find("{", self.at)
                if brace < 0:
                    raise self.fail(".section without a body")
                self.at = self.close_brace(brace) + 1
            elif text[self.at] in ";}":
                self.at += 1
            elif match := _STATEMENT.match(text, self.at):
                statement = match.group()[:-1].strip()
                if statement.startswith((".global", ".const", ".shared", ".local")):
                    for variable in parse_variable(statement, self.line(), "extern" in linkage):
                        module.variables[variable.name] = variable
                elif not statement.startswith((".pragma", ".alias", ".param", ".abi_preserve", ".tex", ".sampler")):
                    raise self.fail(f"unknown module-level statement {statement[:60]!r}")
                linkage = set()
                self.at = match.end()
            else:
                raise self.fail(f"unknown text {text[self.at : self.at + 40]!r}")

    def parens(self) -> str | None:
        """The text inside a parenthesis at the current position, which moves behind it."""
        self.skip()
        if self.at >= len(self.text) or self.text[self.at] != "(":
            return None
        depth = 0
        for index in range(self.at, len(self.text)):
            char = self.text[index]
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    inside = self.text[self.at + 1 : index]
                    self.at = index + 1
                    return inside
        raise self.fail("unclosed (")

    def function(self, is_entry: bool) -> None:
        text, line = self.text, self.line()
        self.skip()
        while text.startswith(".", self.at):  # .attribute(...), .unified(...)
            self.at = _WORD.match(text, self.at).end()  # type: ignore[union-attr]
            self.parens()
            self.skip()
        returns = self.parens()
        self.skip()
        match = re.compile(_NAME).match(text, self.at)
        if not match:
            raise self.fail("a function needs a name")
        name = match.group()
        self.at = match.end()
        params = self.parens()
        directives: dict[str, tuple[int, ...]] = {}
        while True:
            self.skip()
            if self.at >= len(text):
                raise self.fail(f"{name} has neither a body nor a semicolon")
            if text[self.at] in "{;":
                break
            match = re.compile(r"\.(\w+)\s*([\d\s,]*)").match(text, self.at)
            if not match:
                raise self.fail(f"unknown directive of {name}: {text[self.at : self.at + 30]!r}")
            numbers = tuple(int(n) for n in re.findall(r"\d+", match.group(2)))
            directives[match.group(1)] = numbers
            self.at = match.end()
            self.parens()
        start = end = 0
        if text[self.at] == "{":
            start = self.at + 1
            end = self.close_brace(self.at)
            self.at = end + 1
        else:
            self.at += 1
        known = self.module.declarations.get(name)
        if known is not None and known.end:
            if end:
                raise PtxSyntaxError(f"{name} is defined twice", line)
            return
        self.module.declarations[name] = Declaration(
            name, is_entry, _parse_params(params, line), _parse_params(returns, line), directives, line, start, end
        )


def _parse_params(text: str | None, line: int) -> tuple[Variable, ...]:
    if text is None or not text.strip():
        return ()
    found: list[Variable] = []
    for part in text.split(","):
        part = part.strip()
        if not part.startswith((".param", ".reg")):
            raise PtxSyntaxError(f"a parameter must start with .param: {part[:60]!r}", line)
        found += parse_variable(part, line, False)
    return tuple(found)


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
    pieces = re.findall(rf"({_NAME})\s*((?:\[[^\]]*\]\s*)*)(?:,|\Z)", names.strip())
    if not pieces:
        raise PtxSyntaxError(f"declaration without a name: {statement[:60]!r}", line)
    for name, dims in pieces:
        count = vector
        is_array = bool(dims)
        for dim in re.findall(r"\[\s*(\w*)\s*\]", dims):
            count *= _int_literal(dim) if dim else 0
        text = init_text.strip()
        if is_array and count == 0 and text:
            count = text.count(",") + 1
        variables.append(
            Variable(name, space, type_, count, align or type_.bytes * vector, is_array, text, line, extern)
        )
    return variables


def _int_literal(text: str) -> int:
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
    if match := re.fullmatch(rf"(generic\s*\(\s*)?({_NAME})\s*\)?\s*(?:([+-])\s*(\w+))?", part):
        offset = _int_literal(match.group(4)) if match.group(4) else 0
        return Sym(match.group(2), -offset if match.group(3) == "-" else offset), mask
    negative = part.startswith("-")
    body = part.lstrip("+-").strip()
    value: int | float
    if _FLOAT.match(body):
        raw = int(body[2:], 16)
        if body[1] in "fF":
            value = struct.unpack("<f", struct.pack("<I", raw))[0]
        else:
            value = struct.unpack("<d", struct.pack("<Q", raw))[0]
    elif _INTEGER.match(body):
        value = _int_literal(body)
    elif _DECIMAL_FLOAT.match(body):
        value = float(body)
    else:
        raise PtxSyntaxError(f"unknown initialiser {part[:40]!r}", line)
    return -value if negative else value, mask


class _Scope:
    __slots__ = ("families", "names", "renamed")

    def __init__(self) -> None:
        self.names: dict[str, Reg] = {}
        self.families: dict[str, tuple[PtxType, int]] = {}
        self.renamed: dict[str, str] = {}


class _Body:
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
        while True:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if at >= end:
                break
            self.line = bisect_right(newlines, at) + 1
            char = text[at]
            if char == "{":
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
                loc = Loc(int(match.group(1)), int(match.group(2)), int(match.group(3)), inlined)  # type: ignore[arg-type]
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
        for match in re.compile(rf"[{{}}]|(?:(?<=[;{{}}\s])({_NAME})\s*:(?!:))").finditer(self.module.text, at, end):
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
                targets = re.findall(rf"{_NAME}|\d+", body.split(None, 1)[1])
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
        if first == "%" and text[1:].split(".")[0] in SPECIAL_NAMES:
            return Special(text)
        if text == "WARP_SZ":
            return Imm(32)
        match = re.fullmatch(rf"({_NAME})\s*(?:([+-])\s*(-?\w+))?", text)
        if not match or first == "%":
            raise PtxSyntaxError(f"unknown operand {text!r}", self.line)
        offset = _int_literal(match.group(3)) if match.group(3) else 0
        return Sym(self.symbol(match.group(1)), -offset if match.group(2) == "-" else offset)

    def symbol(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.renamed:
                return scope.renamed[name]
        return name

    def literal(self, text: str) -> Imm:
        negative = text[0] == "-"
        body = text.lstrip("+-").strip()
        if _FLOAT.match(body):
            bits = 32 if body[1] in "fF" else 64
            value = int(body[2:], 16)
            if value >> bits or len(body) != 2 + bits // 4:
                raise PtxSyntaxError(f"bad float literal {text!r}", self.line)
            return Imm(value ^ (1 << (bits - 1)) if negative else value, bits)
        if _INTEGER.match(body):
            value = _int_literal(body)
            return Imm(-value if negative else value)
        if _DECIMAL_FLOAT.match(body):
            value = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
            return Imm(value, 64)
        raise PtxSyntaxError(f"unknown literal {text!r}", self.line)

    def address(self, text: str) -> Address:
        parts = self.split(text)
        if not parts:
            raise PtxSyntaxError("empty address", self.line)
        match = re.fullmatch(rf"({_NAME}|\d\w*)\s*(?:([+-])\s*(-?\w+))?", parts[0])
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
    return -_int_literal(text[1:]) if text.startswith("-") else _int_literal(text)
