"""C++ types as IR types: scalars, CUDA's scalar classes (half, bf16, fp8), records with their layout from libclang."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from porter import codes, ir
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType

SCALAR_KINDS: dict[TypeKind, ir.Scalar] = {
    TypeKind.VOID: ir.VOID, TypeKind.BOOL: ir.BOOL, TypeKind.CHAR_U: ir.U8, TypeKind.UCHAR: ir.U8,
    TypeKind.CHAR_S: ir.I8, TypeKind.SCHAR: ir.I8, TypeKind.SHORT: ir.I16, TypeKind.USHORT: ir.U16,
    TypeKind.INT: ir.I32, TypeKind.UINT: ir.U32, TypeKind.LONG: ir.I64, TypeKind.ULONG: ir.U64,
    TypeKind.LONGLONG: ir.I64, TypeKind.ULONGLONG: ir.U64, TypeKind.FLOAT: ir.F32, TypeKind.DOUBLE: ir.F64,
    TypeKind.HALF: ir.F16, TypeKind.FLOAT16: ir.F16,
    TypeKind.CHAR16: ir.U16, TypeKind.CHAR32: ir.U32, TypeKind.WCHAR: ir.I32,
}  # fmt: skip

# Classes that CUDA and PyTorch give for one number. Qualified name -> scalar.
SCALAR_CLASSES: dict[str, ir.Scalar] = {
    "__half": ir.F16, "c10::Half": ir.F16, "at::Half": ir.F16,
    "__nv_bfloat16": ir.BF16, "c10::BFloat16": ir.BF16, "at::BFloat16": ir.BF16,
    "__nv_fp8_e4m3": ir.E4M3, "c10::Float8_e4m3fn": ir.E4M3, "at::Float8_e4m3fn": ir.E4M3,
    "__nv_fp8_e5m2": ir.E5M2, "c10::Float8_e5m2": ir.E5M2, "at::Float8_e5m2": ir.E5M2,
    "__nv_fp8_e8m0": ir.Scalar("e8m0"), "c10::Float8_e8m0fnu": ir.Scalar("e8m0"),
    "__nv_fp4_e2m1": ir.Scalar("e2m1"),
}  # fmt: skip

INT128 = ir.Struct("__int128", (ir.StructField("lo", ir.U64, 0), ir.StructField("hi", ir.U64, 8)), 16, 16)

# Library namespaces whose classes are handles: their layout is not ours to look into.
OPAQUE_NAMESPACES = ("cub", "cooperative_groups", "nvcuda", "cuda", "thrust")
# data with public members
_PLAIN_LIBRARY_CLASSES = ("cub::KeyValuePair", "nvcuda::wmma::fragment", "cuda::fast_mod_div")
_LAMBDA = re.compile(r"\(lambda at .*?:(\d+):(\d+)\)")
_UNNAMED = re.compile(r"\((?:unnamed|anonymous)(?: \w+)? at .*?:(\d+):(\d+)\)")
_WORDS = re.compile(r"\b(?:struct|class|union|enum) (?=[A-Za-z_(])")


class UnsupportedType(Exception):
    """A C++ type that the IR has no word for. `code` is PRTnnn."""

    def __init__(self, reason: str, code: str = codes.UNSUPPORTED_TYPE):
        super().__init__(reason)
        self.code = code


def spelled(text: str) -> str:
    """A canonical C++ spelling without paths of this machine and elaborated keywords."""
    text = _LAMBDA.sub(r"lambda_\1_\2", text)
    text = _UNNAMED.sub(r"unnamed_\1_\2", text)
    return _WORDS.sub("", text)


@dataclass(frozen=True)
class Bits:
    """Where a bit-field lies: `width` bits from `shift` (bits) of the unsigned storage at byte `offset`."""

    storage: ir.Scalar
    offset: int
    shift: int
    width: int
    type: ir.Scalar  # of the field as declared

    @property
    def member(self) -> str:
        """Name of the IR member that stands for the storage."""
        return f"bits_{self.offset}"


def bits_of(f: Cursor) -> Bits:
    """The place of a bit-field; UnsupportedType when it crosses the units of its type (packed classes)."""
    t = f.type.get_canonical()
    declared = SCALAR_KINDS.get(t.kind) or SCALAR_KINDS.get(t.get_declaration().enum_type.get_canonical().kind)
    if declared is None:
        raise UnsupportedType(f"bit-field {f.spelling!r}", codes.BIT_FIELD)
    size = ir.sizeof(declared)
    at, width = f.get_field_offsetof(), f.get_bitfield_width()
    offset = at // (8 * size) * size
    if at - 8 * offset + width > 8 * size:
        raise UnsupportedType(f"bit-field {f.spelling!r} that crosses its storage", codes.BIT_FIELD)
    return Bits(ir.Scalar(f"u{8 * size}"), offset, at - 8 * offset, width, declared)


def storage_members(t: ClangType) -> dict[str, Bits]:
    """Member name -> one of its bit-fields, in order, for the storage units that the fields of a class share."""
    out: dict[str, Bits] = {}
    for f in t.get_canonical().get_fields():
        if f.is_bitfield() and f.spelling:
            b = bits_of(f)
            known = out.setdefault(b.member, b)
            if known.storage != b.storage:
                raise UnsupportedType(f"bit-field {f.spelling!r} that shares storage of another width", codes.BIT_FIELD)
    return out


class TypeTable:
    """Translates types and remembers records, so that one C++ record is one `ir.Struct`."""

    def __init__(self, is_prelude: Any):
        self._is_prelude = is_prelude  # Cursor -> bool
        self._structs: dict[str, ir.Struct] = {}
        self._open: set[str] = set()

    def of(self, t: ClangType) -> ir.Type:
        """The IR type of a C++ type; references become their referee. Raises UnsupportedType."""
        t = t.get_canonical()
        kind = t.kind
        scalar = SCALAR_KINDS.get(kind)
        if scalar is not None:
            return scalar
        if kind is TypeKind.POINTER:
            return self._pointer(t)
        if kind in ast.REFERENCES:
            return self.of(t.get_pointee())
        if kind is TypeKind.CONSTANTARRAY:
            return ir.Array(self.of(t.get_array_element_type()), t.get_array_size())
        if kind in (TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY):
            return ir.Array(self.of(t.get_array_element_type()), 0)
        if kind is TypeKind.ENUM:
            return self.of(t.get_declaration().enum_type)
        if kind in (TypeKind.INT128, TypeKind.UINT128):
            return INT128  # only carried about: arithmetic on it is a hole
        if kind is TypeKind.NULLPTR:
            return ir.Pointer(ir.VOID)
        if kind is TypeKind.RECORD:
            return self._record(t)
        raise UnsupportedType(f"type {spelled(t.spelling)!r} has no equivalent")

    def _pointer(self, t: ClangType) -> ir.Pointer:
        pointee = t.get_pointee().get_canonical()
        const = pointee.is_const_qualified()
        if pointee.kind in (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO):
            raise UnsupportedType("pointer to function")
        if pointee.kind is TypeKind.RECORD and ast.unqualified(pointee) in self._open:
            # A record that points to itself: the inner occurrence is named only.
            return ir.Pointer(ir.Struct(spelled(ast.unqualified(pointee)), (), 0, 1), const=const)
        try:
            elem = self.of(pointee)
        except UnsupportedType:
            if pointee.kind in (TypeKind.POINTER, TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
                raise  # as from a function's pointer: what is read there would have no meaning
            elem = ir.VOID  # e.g. pointer to an incomplete record: only carried about
        return ir.Pointer(elem, const=const)

    def scalar_class(self, t: ClangType) -> ir.Scalar | None:
        """The scalar behind a half/bf16/fp8 class, else None."""
        t = t.get_canonical()
        if t.kind in ast.REFERENCES:
            t = t.get_pointee().get_canonical()
        if t.kind is not TypeKind.RECORD:
            return None
        return SCALAR_CLASSES.get(ast.unqualified(t))

    def is_opaque(self, t: ClangType) -> bool:
        """True for a library handle (cub, cooperative_groups, curand state, ...)."""
        d = t.get_canonical().get_declaration()
        return self._opaque_declaration(d)

    def _opaque_declaration(self, d: Cursor) -> bool:
        if not self._is_prelude(d):
            return False
        name = ast.qualified_name(d)
        if name.startswith("cuda::std::") or name in _PLAIN_LIBRARY_CLASSES:
            return False
        if name in ("curandStatePhilox4_32_10", "curandStateXORWOW"):
            return False  # its functions are written out in the prelude
        return name.split("::")[0] in OPAQUE_NAMESPACES or "curand" in name

    def _record(self, t: ClangType) -> ir.Type:
        name = ast.unqualified(t)
        scalar = SCALAR_CLASSES.get(name)
        if scalar is not None:
            return scalar
        known = self._structs.get(name)
        if known is not None:
            return known
        if name in self._open:
            raise UnsupportedType(f"record {spelled(name)!r} contains itself")
        decl = t.get_declaration()
        size, align = t.get_size(), t.get_align()
        if size < 0:
            raise UnsupportedType(f"record {spelled(name)!r} is incomplete")
        self._open.add(name)
        try:
            if self._opaque_declaration(decl) or ast.is_closure(t):
                fields: tuple[ir.StructField, ...] = ()
            else:
                fields = self._fields(t, decl)
        finally:
            self._open.discard(name)
        is_union = decl.kind is CursorKind.UNION_DECL
        made = ir.Struct(spelled(name), fields, size, align, is_union)
        self._structs[name] = made
        return made

    def _fields(self, t: ClangType, decl: Cursor) -> tuple[ir.StructField, ...]:
        out: list[ir.StructField] = []
        for base in t.get_bases() if hasattr(t, "get_bases") else ():
            base_type = self.of(base.type)
            if isinstance(base_type, ir.Struct) and not (base_type.fields or base_type.size > 1):
                continue  # an empty base holds nothing
            offset = base.get_base_offsetof(decl) // 8
            out.append(ir.StructField(base_name(base.type), base_type, offset))
        storage = storage_members(t)
        for i, f in enumerate(t.get_fields()):
            if f.is_bitfield():
                unit = storage.pop(bits_of(f).member, None) if f.spelling else None
                if unit is not None:
                    out.append(ir.StructField(unit.member, unit.storage, unit.offset))
                continue
            f_type = f.type.get_canonical()
            if f_type.kind in ast.REFERENCES:
                field_type: ir.Type = ir.Pointer(
                    self.of(f_type.get_pointee()), const=f_type.get_pointee().is_const_qualified()
                )
            else:
                field_type = self.of(f.type)
            out.append(ir.StructField(field_name(f, i), field_type, f.get_field_offsetof() // 8))
        return tuple(out)


def base_name(t: ClangType) -> str:
    """The field name under which a base class subobject is kept."""
    return re.sub(r"\W+", "_", spelled(ast.unqualified(t))).strip("_")


def field_name(f: Cursor, index: int | None = None) -> str:
    """A field's name; unnamed members (anonymous unions) are numbered by their place."""
    name = f.spelling
    if not is_unnamed(f):
        return name
    if index is None:
        siblings = [k for k in f.semantic_parent.type.get_fields()]
        index = next((i for i, k in enumerate(siblings) if k == f), 0)
    return f"_anon{index}"


def is_unnamed(f: Cursor) -> bool:
    """True for the member that stands for an anonymous union or struct."""
    return not f.spelling or "(" in f.spelling or " at " in f.spelling


def usual_arithmetic(a: ir.Scalar, b: ir.Scalar) -> ir.Scalar:
    """The common type of C++'s usual arithmetic conversions."""
    for f in (ir.F64, ir.F32, ir.F16, ir.BF16):
        if f in (a, b):
            return f
    a, b = promote(a), promote(b)
    if a == b:
        return a
    ranks = {"i32": 0, "u32": 1, "i64": 2, "u64": 3}  # with LP64, each holds or outranks the ones before
    return a if ranks[a.name] > ranks[b.name] else b


def promote(a: ir.Scalar) -> ir.Scalar:
    """C++ integer promotion."""
    return ir.I32 if a.name in ("bool", "i8", "u8", "i16", "u16") else a
