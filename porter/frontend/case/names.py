"""Names of the sizes of a derived case, and the element types of its buffers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from porter.case.expressions import Value
from porter.cxx.types import normalise, pointee, scalar_name
from porter.frontend.case.from_host import Evaluated
from porter.frontend.host import terms
from porter.frontend.host.run import Stated
from porter.frontend.parse.clang_compat import CursorKind
from porter.ir import SCALARS
from porter.model import KernelInfo


def named(made: Evaluated) -> dict[str, str]:
    """Symbol -> the name of the size in the case: the kernel's parameter that is just it, else the host's variable."""
    info = made.info
    parameters = {p.name for p in info.params} | {p.name for p in info.template_params}
    names: dict[str, str] = {}
    for p in info.params:
        t = made.scalars.get(p.name)
        if t is not None and t.op == "sym" and str(t.args[0]) not in names and not is_stride(str(t.args[0])):
            names[str(t.args[0])] = p.name
    used: set[str] = set()
    for t in made.terms():
        used |= terms.symbols(t)
    for s in (*made.required, *(Stated(w) for w in made.whens)):
        used |= terms.symbols(s.condition)
    for key in sorted(used):
        if key in names or key not in made.symbols:
            continue
        symbol = made.symbols[key]
        made_up = key.replace(".", "_") if symbol.kind == "dim" else ""
        candidates = [n for n in symbol.names if n != made_up] + [n for n in symbol.names if n == made_up]
        candidates = [_legal(c) for c in candidates]
        taken = parameters | set(names.values())
        name = next((c for c in candidates if c not in taken), "")
        stem, n = candidates[0], 1
        while not name or name in taken:
            name = f"{stem}_size" if n == 1 else f"{stem}_{n}"
            n += 1
        names[key] = name
    return names


def is_stride(key: str) -> bool:
    return ".stride." in key


def _legal(name: str) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "size"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_size" if name in SCALARS or keyword.iskeyword(name) or scalar_name(name) else name


def element_type(made: Evaluated | None, info: KernelInfo, name: str, written: str) -> str | None:
    """The dtype of a buffer by the parameter's type: a template type parameter or a scalar; None: neither."""
    target = normalise(pointee(written) or "")
    if target in {p.name for p in info.template_params if p.kind == "type"}:
        return target
    scalar = scalar_name(target)
    if scalar is not None and scalar != "void":
        return scalar
    if made is None:
        return None
    spelled = []
    for launch in (x for x in made.entry.launches if x.kernel is not None and x.template_args in _chosen(made)):
        if launch.kernel.spelling != info.name:
            continue
        for p in launch.kernel.get_children():
            if p.kind == CursorKind.PARM_DECL and p.spelling == name:
                spelled.append((launch.template_args, normalise(p.type.get_canonical().get_pointee().spelling)))
    kinds = {scalar_name(s) for _, s in spelled}
    if len(kinds) == 1:
        found = next(iter(kinds))
        return found if found != "void" else None
    for p in info.template_params:
        if p.kind == "type" and spelled and all(
            scalar_name(s) is not None and scalar_name(s) == made.values[_chosen(made).index(a)].get(p.name)
            for a, s in spelled
        ):  # fmt: skip
            return p.name
    return None


def vector_element(written: str) -> str | None:
    """The scalar of a pointer to one of CUDA's vector types, None for any other."""
    text = normalise(pointee(written) or "")
    found = re.fullmatch(r"(u?(?:char|short|int|long|longlong)|float|double|__half|half|__nv_bfloat16|nv_bfloat16)"
                         r"([1-4])", text)  # fmt: skip
    if not found:
        return None
    spelled = found.group(1)
    table = {"uchar": "u8", "ushort": "u16", "uint": "u32", "ulong": "u64", "longlong": "i64", "ulonglong": "u64"}
    return table.get(spelled) or scalar_name(spelled)


def pointee_of_void(
    info: KernelInfo, name: str, scalar: str | None, values: Mapping[str, Value], text: str
) -> str | None:
    """The dtype of a `void*` that the body reads as `scalar` at an instance with these template values: the template
    parameter that the body casts it to, or that is the only one with this type; else the scalar."""
    types = [p.name for p in info.template_params if p.kind == "type"]
    cast = r"_cast<\s*(?:const\s+)?(\w+)(?:\s+const)?\s*\*\s*>\s*\(\s*"  # static_cast<T*>(
    c_cast = r"\(\s*(?:const\s+)?(\w+)\s*\*\s*\)\s*\(?\s*"  # (T*)
    spelled = {a or b for a, b in re.findall(rf"(?:{cast}|{c_cast}){name}\b", text)} & set(types)
    if len(spelled) == 1:
        return spelled.pop()
    if scalar in (None, "void", "pointer"):
        return None
    same = [t for t in types if values.get(t) == scalar]
    return same[0] if len(same) == 1 else scalar


def _chosen(made: Evaluated) -> list[tuple[str, ...]]:
    return [i.args for i in made.instances]
