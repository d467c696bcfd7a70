"""Types that lead to functions, and the numbers that stand for pointers to them (see `function_pointers`)."""

from __future__ import annotations

from porter import ir
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Type as ClangType
from porter.frontend.parse.clang_compat import TypeKind

NUMBER = ir.I32  # the type that stands for a pointer to a function
_FUNCTION_TYPES = (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO)


def function_type(t: ClangType) -> ClangType | None:
    """The function type that a type is, points or refers to; None for others."""
    t = t.get_canonical()
    if t.kind in ast.REFERENCES:
        t = t.get_pointee().get_canonical()
    if t.kind is TypeKind.POINTER:
        t = t.get_pointee().get_canonical()
    return t if t.kind in _FUNCTION_TYPES else None


def concerns_functions(t: ClangType) -> bool:
    """Whether a type is a function's or that of pointers, references or arrays that lead to one."""
    t = t.get_canonical()
    while t.kind not in _FUNCTION_TYPES:
        if t.kind in (TypeKind.POINTER, *ast.REFERENCES):
            t = t.get_pointee().get_canonical()
        elif t.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            t = t.get_array_element_type().get_canonical()
        else:
            return False
    return True


def numbered_type(t: ClangType) -> ir.Type | None:
    """What stands for a pointer to a function, an array of them or a pointer into one; None for other types."""
    t = t.get_canonical()
    if t.kind is TypeKind.POINTER and function_type(t) is None:
        pointee = t.get_pointee()
        inner = numbered_type(pointee) if concerns_functions(pointee) else None
        return None if inner is None else ir.Pointer(inner, const=pointee.is_const_qualified())
    if t.kind is TypeKind.CONSTANTARRAY:
        elem = numbered_type(t.get_array_element_type())
        return None if elem is None else ir.Array(elem, t.get_array_size())
    return NUMBER if function_type(t) is not None else None
