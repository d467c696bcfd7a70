"""The only module that imports clang.cindex. Evens out libclang-ng 22 and libclang 18 and wraps C functions that the
Python binding lacks: operator kinds, constant evaluation, inline assembly."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import clang.cindex as cindex
from clang.cindex import Cursor, CursorKind, TranslationUnit, Type, TypeKind

from porter.source import NO_SPAN, Span

# The binding of libclang-ng adds its own libc++ and resource headers to every parse unless told not to: porter parses
# against its own headers only.
for _name in ("libcxx_dir", "resource_dir"):
    if hasattr(cindex.Config, _name):
        setattr(cindex.Config, _name, "")

# The 22 binding compares with the null cursor through C before every property: half of all time spent walking.
_NULL_KIND = 70
if hasattr(Cursor, "is_null"):
    Cursor.is_null = lambda self: self._kind_id == _NULL_KIND

_VISITOR = getattr(cindex, "cursor_visit_callback", None) or cindex.callbacks["cursor_visit"]

__all__ = [
    "AsmOperand", "AsmStatement", "Cursor", "CursorKind", "FilePosition", "TranslationUnit", "Type", "TypeKind",
    "asm_statement", "binary_op", "evaluate", "extent", "is_invalid", "is_verbatim", "overloaded", "parse_file",
    "place", "skipped_lines", "span", "specialised_template", "spelled", "tells_macro_bodies", "token_spellings",
    "unary_op", "walk",
]  # fmt: skip

KEEP_GOING = 0x200

_BINARY = (
    "", ".*", "->*", "*", "/", "%", "+", "-", "<<", ">>", "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&",
    "||", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", ",",
)  # fmt: skip
_UNARY = ("", "x++", "x--", "++x", "--x", "&", "*", "+", "-", "~", "!", "__real", "__imag", "__extension__", "co_await")


class _CXString(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


def _bind(name: str, restype: Any, *argtypes: Any) -> Any:
    """A C function of libclang, or None when this libclang does not export it."""
    fn = getattr(cindex.conf.lib, name, None)
    if fn is not None:
        fn = ctypes.cast(fn, ctypes.CFUNCTYPE(restype, *argtypes))
    return fn


class _Library:
    """The extra C functions, bound on first use (loading libclang takes 0.1 s)."""

    def __init__(self) -> None:
        self.binary = _bind("clang_getCursorBinaryOperatorKind", ctypes.c_int, Cursor)
        self.unary = _bind("clang_getCursorUnaryOperatorKind", ctypes.c_int, Cursor)
        self.evaluate = _bind("clang_Cursor_Evaluate", ctypes.c_void_p, Cursor)
        self.eval_kind = _bind("clang_EvalResult_getKind", ctypes.c_int, ctypes.c_void_p)
        self.eval_int = _bind("clang_EvalResult_getAsLongLong", ctypes.c_longlong, ctypes.c_void_p)
        self.eval_is_unsigned = _bind("clang_EvalResult_isUnsignedInt", ctypes.c_uint, ctypes.c_void_p)
        self.eval_unsigned = _bind("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong, ctypes.c_void_p)
        self.eval_float = _bind("clang_EvalResult_getAsDouble", ctypes.c_double, ctypes.c_void_p)
        self.eval_dispose = _bind("clang_EvalResult_dispose", None, ctypes.c_void_p)
        position = (cindex.SourceLocation, *(ctypes.c_void_p,) * 4)
        self.file_location = _bind("clang_getFileLocation", None, *position)
        self.spelling_location = _bind("clang_getSpellingLocation", None, *position)
        self.file_name = _bind("clang_getFileName", _CXString, ctypes.c_void_p)
        self.c_string = _bind("clang_getCString", ctypes.c_char_p, _CXString)
        self.dispose_string = _bind("clang_disposeString", None, _CXString)
        self.asm_template = _bind("clang_Cursor_getGCCAssemblyTemplate", _CXString, Cursor)
        self.asm_outputs = _bind("clang_Cursor_getGCCAssemblyNumOutputs", ctypes.c_uint, Cursor)
        self.asm_inputs = _bind("clang_Cursor_getGCCAssemblyNumInputs", ctypes.c_uint, Cursor)
        operand = (ctypes.c_uint, Cursor, ctypes.c_uint, ctypes.POINTER(_CXString), ctypes.POINTER(Cursor))
        self.asm_output = _bind("clang_Cursor_getGCCAssemblyOutput", *operand)
        self.asm_input = _bind("clang_Cursor_getGCCAssemblyInput", *operand)
        self.asm_clobbers = _bind("clang_Cursor_getGCCAssemblyNumClobbers", ctypes.c_uint, Cursor)
        self.asm_clobber = _bind("clang_Cursor_getGCCAssemblyClobber", _CXString, Cursor, ctypes.c_uint)
        self.asm_volatile = _bind("clang_Cursor_isGCCAssemblyVolatile", ctypes.c_uint, Cursor)

    def text(self, s: _CXString) -> str:
        raw = self.c_string(s)
        self.dispose_string(s)
        return raw.decode("utf-8", "replace") if raw else ""


_library: _Library | None = None


def _lib() -> _Library:
    global _library
    if _library is None:
        _library = _Library()
    return _library


def parse_file(
    path: str, args: list[str], unsaved: list[tuple[str, str]], *, preprocessing_record: bool = False
) -> TranslationUnit:
    """One parse that keeps going after fatal errors. Raises cindex.TranslationUnitLoadError when there is no AST."""
    options = KEEP_GOING | (cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD if preprocessing_record else 0)
    return cindex.Index.create().parse(path, args=args, unsaved_files=unsaved, options=options)


class _RangeList(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange)))


def skipped_lines(tu: TranslationUnit, path: str) -> list[tuple[int, int]]:
    """(first, last) lines that #if left out of a file, for a unit parsed with a preprocessing record."""
    ranges = _bind("clang_getSkippedRanges", ctypes.POINTER(_RangeList), ctypes.c_void_p, ctypes.c_void_p)
    dispose = _bind("clang_disposeSourceRangeList", None, ctypes.POINTER(_RangeList))
    file = tu.get_file(path)
    found = ranges(tu.obj, file.obj)
    try:
        listed = found.contents
        return [(place(r.start).line, place(r.end).line) for r in listed.ranges[: listed.count]]
    finally:
        dispose(found)


# ---------------------------------------------------------------- cursors


def walk(cursor: Cursor) -> Iterator[Cursor]:
    """`cursor` and everything below it, preorder. One call into C: much faster than nested get_children."""
    found = [cursor]
    tu = cursor._tu

    def visitor(child: Cursor, _parent: Cursor, _data: Any) -> int:
        child._tu = tu
        found.append(child)
        return 2  # CXChildVisit_Recurse

    cindex.conf.lib.clang_visitChildren(cursor, _VISITOR(visitor), None)
    return iter(found)


class FilePosition(NamedTuple):
    """A position in a file; `offset` counts bytes. `file` is "" for positions the compiler made up."""

    file: str
    line: int
    col: int
    offset: int


def _place(get: Any, loc: Any) -> FilePosition:
    file, line, col, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    get(loc, ctypes.byref(file), ctypes.byref(line), ctypes.byref(col), ctypes.byref(offset))
    name = ""
    if file.value:
        name = _lib().text(_lib().file_name(file))
    return FilePosition(name, line.value, col.value, offset.value)


def place(loc: Any) -> FilePosition:
    """Where a source location stands in a file: an argument of a macro where it is written, the body of a macro where
    the macro is used."""
    return _place(_lib().file_location, loc)


def spelled(loc: Any) -> FilePosition:
    """Where a source location is written: the body of a macro at its definition (libclang 18: as `place`)."""
    return _place(_lib().spelling_location, loc)


def extent(cursor: Cursor) -> tuple[FilePosition, FilePosition]:
    """Start and end of a cursor, as `place` gives them."""
    e = cursor.extent
    return place(e.start), place(e.end)


def tells_macro_bodies() -> bool:
    """False for libclang 18, whose spelling locations are file locations: `is_verbatim` is then always true."""
    return _lib().asm_template is not None  # came in the same releases


def is_verbatim(cursor: Cursor) -> bool:
    """True when the text of the cursor's extent is what it says: false for code that comes from a macro's body."""
    e, lib = cursor.extent, _lib()
    return all(_place(lib.file_location, loc) == _place(lib.spelling_location, loc) for loc in (e.start, e.end))


def span(cursor: Cursor) -> Span:
    """Where the cursor stands, with its end."""
    start, end = extent(cursor)
    if not start.file:
        return NO_SPAN
    if end.file != start.file or end.offset < start.offset:
        return Span(start.file, start.line, start.col)
    return Span(start.file, start.line, start.col, end.line, end.col)


def token_spellings(cursor: Cursor) -> list[str]:
    """The source tokens of the extent. Unreliable for code that comes from a macro."""
    return [t.spelling for t in cursor.get_tokens()]


def is_invalid(cursor: Cursor) -> bool:
    """True for an expression that clang could not type."""
    return cursor.kind.is_expression() and cursor.type.kind == TypeKind.INVALID


def binary_op(cursor: Cursor) -> str:
    """The operator of a BINARY_OPERATOR or COMPOUND_ASSIGNMENT_OPERATOR ("+", "<<=", ","); "" when there is none."""
    kind = _lib().binary(cursor)
    return _BINARY[kind] if 0 <= kind < len(_BINARY) else ""


def unary_op(cursor: Cursor) -> str:
    """The operator of a UNARY_OPERATOR: "-", "~", "!", "*", "&", "+", and "x++", "x--" (post), "++x", "--x" (pre)."""
    kind = _lib().unary(cursor)
    return _UNARY[kind] if 0 <= kind < len(_UNARY) else ""


def evaluate(cursor: Cursor) -> bool | int | float | None:
    """The constant value of an expression (or of a constexpr variable's declaration), None when it has none."""
    lib = _lib()
    result = lib.evaluate(cursor)
    if not result:
        return None
    try:
        kind = lib.eval_kind(result)
        if kind == 1:
            value = lib.eval_unsigned(result) if lib.eval_is_unsigned(result) else lib.eval_int(result)
            if cursor.type.get_canonical().kind == TypeKind.BOOL:
                return value != 0
            return int(value)
        return float(lib.eval_float(result)) if kind == 2 else None
    finally:
        lib.eval_dispose(result)


def overloaded(cursor: Cursor) -> Cursor | None:
    """The first declaration that an OVERLOADED_DECL_REF may mean."""
    if not cindex.conf.lib.clang_getNumOverloadedDecls(cursor):
        return None
    return _with_unit(cindex.conf.lib.clang_getOverloadedDecl(cursor, 0), cursor)


def specialised_template(cursor: Cursor) -> Cursor | None:
    """The template that a specialisation was instantiated from."""
    return _with_unit(cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor), cursor)


def _with_unit(found: Cursor | None, like: Cursor) -> Cursor | None:
    """Raw C functions return cursors that do not know their translation unit."""
    if found is None or _NULL_KIND <= found._kind_id <= 73:  # CXCursor_FirstInvalid to LastInvalid
        return None
    found._tu = like._tu
    return found


# ---------------------------------------------------------------- inline assembly


@dataclass(frozen=True)
class AsmOperand:
    constraint: str
    expr: Cursor


@dataclass(frozen=True)
class AsmStatement:
    """`template` in LLVM's notation ($0, ${0:x}, $$, plain %), escapes turned into the characters they mean."""

    template: str
    outputs: tuple[AsmOperand, ...]
    inputs: tuple[AsmOperand, ...]
    clobbers: tuple[str, ...]
    volatile: bool


def asm_statement(cursor: Cursor) -> AsmStatement:
    """The parts of an ASM_STMT. On libclang 18 they are read from the tokens, which fails for text built by macros."""
    lib = _lib()
    if lib.asm_template is None:
        return _asm_from_tokens(cursor)

    def operands(count: Any, get: Any) -> tuple[AsmOperand, ...]:
        found = []
        for i in range(count(cursor)):
            constraint, expr = _CXString(), Cursor()
            if get(cursor, i, ctypes.byref(constraint), ctypes.byref(expr)):
                expr._tu = cursor._tu
                found.append(AsmOperand(lib.text(constraint), expr))
        return tuple(found)

    return AsmStatement(
        lib.text(lib.asm_template(cursor)),
        operands(lib.asm_outputs, lib.asm_output),
        operands(lib.asm_inputs, lib.asm_input),
        tuple(lib.text(lib.asm_clobber(cursor, i)) for i in range(lib.asm_clobbers(cursor))),
        bool(lib.asm_volatile(cursor)),
    )


_GCC_OPERAND = re.compile(r"%%|%(\w?)(\d+)|\$")


def _llvm_notation(template: str) -> str:
    """`%0` to `$0`, `%x0` to `${0:x}`, `%%` to `%`, `$` to `$$`: what clang itself gives."""

    def convert(m: re.Match[str]) -> str:
        if m.group() in ("%%", "$"):
            return {"%%": "%", "$": "$$"}[m.group()]
        return f"${{{m.group(2)}:{m.group(1)}}}" if m.group(1) else f"${m.group(2)}"

    return _GCC_OPERAND.sub(convert, template)


def _asm_from_tokens(cursor: Cursor) -> AsmStatement:
    tokens = token_spellings(cursor)
    volatile = any(t in ("volatile", "__volatile__") for t in tokens[:3])
    sections: list[list[str]] = [[]]
    depth = 0
    for t in tokens[tokens.index("(") + 1 :] if "(" in tokens else []:
        depth += t in ("(", "[", "{")
        if t in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                break
        if depth == 0 and t in (":", "::"):
            sections += [[]] * 1 if t == ":" else [[], []]
            continue
        if depth == 0 and t.endswith('"'):
            sections[-1] = [*sections[-1], t]
    strings = [[_unquote(t) for t in s] for s in sections] + [[], [], [], []]
    exprs = list(cursor.get_children())
    exprs = [e for e in exprs if e.kind != CursorKind.STRING_LITERAL]
    n_out = len(strings[1])
    outputs = tuple(AsmOperand(c, e) for c, e in zip(strings[1], exprs[:n_out], strict=False))
    inputs = tuple(AsmOperand(c, e) for c, e in zip(strings[2], exprs[n_out:], strict=False))
    return AsmStatement(_llvm_notation("".join(strings[0])), outputs, inputs, tuple(strings[3]), volatile)


def _unquote(token: str) -> str:
    body = token[token.index('"') + 1 : -1]
    return body.encode().decode("unicode_escape") if "\\" in body else body
