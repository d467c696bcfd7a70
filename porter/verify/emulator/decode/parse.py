"""PTX text to ir.Module. The module is scanned once; the body of a function is parsed when it is first asked for."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right

from porter.verify.emulator.decode.body import Body
from porter.verify.emulator.decode.declarations import NAME, parse_variable
from porter.verify.emulator.decode.ir import Declaration, Function, Module, Variable
from porter.verify.emulator.errors import PtxError, PtxSyntaxError

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_SPACE = re.compile(r"\s*")
_BRACE = re.compile(r'[{}]|"(?:[^"\\\n]|\\.)*"')
_WORD = re.compile(r"\.?[\w$%:]+")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"[^\n]*')
_LINE_DIRECTIVE = re.compile(r"\.(version|target|address_size)\s+([^\n]*)")
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\b")
_FUNCTION = re.compile(r"\.(entry|func)\b")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)([^\n;]*)")
_STATEMENT = re.compile(r'(?:[^;"]|"(?:[^"\\\n]|\\.)*")*;')

# what text that is no PTX can make the parser stumble over
_MALFORMED = (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)


def load(text: str | bytes) -> Module:
    """Scan PTX text. Bodies are not parsed yet. Raises PtxSyntaxError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.rstrip("\0")
    if ".version" not in text:
        raise PtxSyntaxError("no .version directive: not PTX text")
    try:
        return _Scanner(text).scan()
    except _MALFORMED as error:
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
            found = Body(module, declaration).parse()
        except _MALFORMED as error:
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
        match = re.compile(NAME).match(text, self.at)
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
