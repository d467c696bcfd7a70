"""A readable, C-like print of the IR, stable for snapshot tests (`porter port --emit ir`). Not to be parsed back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from porter import ir

INDENT = "  "


def format_kernel(k: ir.Kernel) -> str:
    """The whole kernel: instance, globals, the functions it calls in order of first use, and its body."""
    names = function_names(k)
    out: list[str] = []
    for s in _structs(k):
        out += [*_struct(s), ""]
    for g in k.globals:
        out += [f"const {declarator(g.type, g.name)} = {_global_value(g.value)};", ""]
    for key in names:
        out += [*_function(k.functions[key], names), ""]
    if k.comment:
        out += [f"// {line}" for line in k.comment.splitlines()]
    if k.targs:
        out.append("// instance: " + ", ".join(f"{n} = {_targ(v)}" for n, v in k.targs))
    if k.launch_bounds:
        out.append(f"// launch bounds: {', '.join(map(str, k.launch_bounds))}")
    if k.cluster_dims:
        out.append(f"// cluster: {', '.join(map(str, k.cluster_dims))}")
    out.append(f"kernel {k.qualified_name}({_params(k.params)}) {{")
    out += format_stmts(k.body, 1, names)
    out.append("}")
    return "\n".join(out) + "\n"


def function_names(k: ir.Kernel) -> dict[str, str]:
    """Printed names by key, unique, in order of first call from the kernel."""
    order: list[str] = []

    def visit(body: Any) -> None:
        for n in ir.walk(body):
            keys = []
            if isinstance(n, ir.Call):
                keys = [n.function]
            elif isinstance(n, ir.Intrinsic):
                keys = [t for t in n.targs if isinstance(t, str)]
            for key in keys:
                if key in k.functions and key not in order:
                    visit_function(key)

    seen: set[str] = set()

    def visit_function(key: str) -> None:
        if key in seen:
            return
        seen.add(key)
        visit(k.functions[key].body)
        order.append(key)

    visit(k.body)
    used: dict[str, int] = {}
    names: dict[str, str] = {}
    for key in order:
        name = k.functions[key].name
        n = used.get(name, 0)
        used[name] = n + 1
        names[key] = name if n == 0 else f"{name}#{n + 1}"
    return names


def _structs(k: ir.Kernel) -> list[ir.Struct]:
    """Struct types that values in the kernel have, in order of first use."""
    seen: dict[str, ir.Struct] = {}

    def add(t: Any) -> None:
        if isinstance(t, (ir.Pointer, ir.Array)):
            add(t.elem)
        elif isinstance(t, ir.Struct) and t.name not in seen:
            for f in t.fields:
                add(f.type)
            if t.fields:
                seen[t.name] = t

    for p in k.params:
        add(p.type)
    for f in k.functions.values():
        for p in f.params:
            add(p.type)
    for n in (*ir.walk(k.body), *(n for f in k.functions.values() for n in ir.walk(f.body))):
        if isinstance(n, (ir.Decl, ir.SharedDecl, ir.Expr)):
            add(n.type)
    return list(seen.values())


def _struct(s: ir.Struct) -> list[str]:
    word = "union" if s.is_union else "struct"
    lines = [f"{word} {s.name} {{  // {s.size} bytes, align {s.align}"]
    lines += [f"{INDENT}{declarator(f.type, f.name)};  // at {f.offset}" for f in s.fields]
    return [*lines, "};"]


def _function(f: ir.Function, names: dict[str, str]) -> list[str]:
    lines = [f"// {line}" for line in f.comment.splitlines()] if f.comment else []
    if f.targs:
        lines.append("// instance: " + ", ".join(f"{n} = {_targ(v)}" for n, v in f.targs))
    ref = "&" if f.ret_ref else ""
    free = " [captures]" if f.captures_enclosing else ""
    lines.append(f"{type_text(f.ret)}{ref} {names[f.key]}({_params(f.params)}){free} {{")
    return [*lines, *format_stmts(f.body, 1, names), "}"]


def _params(params: Iterable[ir.FunctionParam]) -> str:
    out = []
    for p in params:
        text = declarator(p.type, ("&" if p.by_ref else "") + p.name)
        out.append(("const " if p.const else "") + text + (" restrict" if p.restrict else ""))
    return ", ".join(out)


def _targ(v: Any) -> str:
    return type_text(v) if isinstance(v, ir.Type) else str(v)


def _global_value(v: Any) -> str:
    return "{" + ", ".join(map(_global_value, v)) + "}" if isinstance(v, tuple) else _number(v, None)


# ---------------------------------------------------------------- types


def type_text(t: ir.Type) -> str:
    """`f32`, `const bf16*`, `f32[4][2]`, `Vec<float, 4>`."""
    if isinstance(t, ir.Scalar):
        return t.name
    if isinstance(t, ir.TypeParam):
        return t.name
    if isinstance(t, ir.Pointer):
        space = "" if t.space == "generic" else f"{t.space} "
        return f"{space}{'const ' if t.const else ''}{type_text(t.elem)}*"
    if isinstance(t, ir.Array):
        dims = ""
        inner: ir.Type = t
        while isinstance(inner, ir.Array):
            dims += f"[{_length(inner.length)}]"
            inner = inner.elem
        return type_text(inner) + dims
    if isinstance(t, ir.Struct):
        return t.name
    return str(t)


def _length(n: Any) -> str:
    return format_expr(n) if isinstance(n, ir.Expr) else str(n)


def declarator(t: ir.Type, name: str) -> str:
    """A declaration of `name`: array bounds stand behind it."""
    dims = ""
    while isinstance(t, ir.Array):
        dims += f"[{_length(t.length)}]"
        t = t.elem
    return f"{type_text(t)} {name}{dims}"


# ---------------------------------------------------------------- expressions

_RANK = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
_PREFIX, _POSTFIX = 12, 13


def format_expr(e: ir.Expr, names: dict[str, str] | None = None) -> str:
    """One expression as text."""
    return _expr(e, 0, names or {})


def _expr(e: ir.Expr, outer: int, names: dict[str, str]) -> str:
    text, rank = _ranked(e, names)
    return f"({text})" if rank < outer else text


def _ranked(e: ir.Expr, names: dict[str, str]) -> tuple[str, int]:
    """(text, binding strength)."""

    def sub(x: ir.Expr, rank: int = 0) -> str:
        return _expr(x, rank, names)

    if isinstance(e, ir.Const):
        return _const(e), 20 if not str(e.value).startswith("-") else _PREFIX
    if isinstance(e, ir.Param):
        return f"{{{e.text}}}", 20
    if isinstance(e, (ir.Builtin, ir.Var)):
        return e.name, 20
    if isinstance(e, ir.Field):
        return f"{sub(e.base, _POSTFIX)}.{e.name}", _POSTFIX
    if isinstance(e, ir.Index):
        return f"{sub(e.base, _POSTFIX)}[{sub(e.index)}]", _POSTFIX
    if isinstance(e, ir.Deref):
        if isinstance(e.ptr, ir.PtrAdd) and not e.volatile:
            return f"{sub(e.ptr.ptr, _POSTFIX)}[{sub(e.ptr.index)}]", _POSTFIX
        return ("*volatile " if e.volatile else "*") + sub(e.ptr, _PREFIX), _PREFIX
    if isinstance(e, ir.PtrAdd):
        return f"{sub(e.ptr, 9)} + {sub(e.index, 10)}", 9
    if isinstance(e, ir.PtrDiff):
        return f"{sub(e.a, 9)} - {sub(e.b, 10)}", 9
    if isinstance(e, ir.AddressOf):
        return f"&{sub(e.place, _PREFIX)}", _PREFIX
    if isinstance(e, ir.Decay):
        return f"decay({sub(e.place)})", 20
    if isinstance(e, ir.Unary):
        return f"{e.op}{sub(e.x, _PREFIX)}", _PREFIX
    if isinstance(e, ir.Binary):
        rank = _RANK.get(e.op, 0)
        return f"{sub(e.a, rank)} {e.op} {sub(e.b, rank + 1)}", rank
    if isinstance(e, ir.Cast):
        return f"{type_text(e.type)}({sub(e.x)})", 20
    if isinstance(e, ir.Select):
        return f"{sub(e.cond, 1)} ? {sub(e.a, 1)} : {sub(e.b)}", 0
    if isinstance(e, ir.StructInit):
        return f"{type_text(e.type)}{{{_items(e.values, names)}}}", 20
    if isinstance(e, ir.Intrinsic):
        targs = (
            f"<{', '.join(names.get(t, t) if isinstance(t, str) else _targ(t) for t in e.targs)}>" if e.targs else ""
        )
        return f"{e.name}{targs}({_items(e.args, names)})", 20
    if isinstance(e, ir.Call):
        return f"{names.get(e.function, e.function)}({_items(e.args, names)})", 20
    if isinstance(e, ir.HoleExpr):
        return f"HOLE[{e.code}: {e.reason}]({type_text(e.type)})", 20
    return repr(e), 20


def _items(values: tuple[ir.Expr, ...], names: dict[str, str]) -> str:
    if len(values) > 8 and all(v == values[0] for v in values):
        return f"{_expr(values[0], 0, names)} x {len(values)}"
    return ", ".join(_expr(v, 0, names) for v in values)


_SUFFIX = {"u32": "u", "i64": "l", "u64": "ul", "f32": "f"}


def _const(e: ir.Const) -> str:
    text = _number(e.value, e.type)
    return f"{text}<{e.origin}>" if e.origin and e.origin != text else text


def _number(v: Any, t: ir.Type | None) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, str):
        return '"' + v.encode("unicode_escape").decode().replace('"', '\\"') + '"'
    if isinstance(t, ir.Pointer):
        return "null" if v == 0 else str(v)
    name = t.name if isinstance(t, ir.Scalar) else ""
    if isinstance(v, float):
        if math.isnan(v):
            return f"nan{_SUFFIX.get(name, '')}"
        if math.isinf(v):
            return ("-" if v < 0 else "") + "inf" + _SUFFIX.get(name, "")
    suffix = _SUFFIX.get(name, f"_{name}" if name not in ("", "i32", "f64", "bool") else "")
    return f"{v!r}{suffix}"


# ---------------------------------------------------------------- statements


def format_stmts(body: Iterable[ir.Stmt], depth: int, names: dict[str, str] | None = None) -> list[str]:
    """The lines of a statement list."""
    out: list[str] = []
    for s in body:
        pad = INDENT * depth
        out += [f"{pad}// {line}" for line in s.comment.splitlines()]
        out += _stmt(s, depth, names or {})
    return out


def _stmt(s: ir.Stmt, depth: int, names: dict[str, str]) -> list[str]:
    pad = INDENT * depth

    def text(e: ir.Expr) -> str:
        return _expr(e, 0, names)

    def inner(body: Iterable[ir.Stmt]) -> list[str]:
        return format_stmts(body, depth + 1, names)

    if isinstance(s, ir.Decl):
        word = "constexpr " if s.is_constexpr else "const " if s.is_const else ""
        init = f" = {text(s.init)}" if s.init is not None else ""
        return [f"{pad}{word}{declarator(s.type, ('&' if s.ref else '') + s.name)}{init};"]
    if isinstance(s, ir.SharedDecl):
        align = f" align({s.align})" if s.align else ""
        return [f"{pad}{'dynamic ' if s.dynamic else ''}shared{align} {declarator(s.type, s.name)};"]
    if isinstance(s, ir.Assign):
        return [f"{pad}{text(s.target)} = {text(s.value)};"]
    if isinstance(s, ir.Copy):
        return [f"{pad}copy {text(s.target)} = {text(s.source)};"]
    if isinstance(s, ir.ExprStmt):
        return [f"{pad}{text(s.value)};"]
    if isinstance(s, ir.Asm):
        words = "asm" + (" volatile" if s.volatile else "") + (" memory" if s.memory else "")
        outs = ", ".join(f'"{c}"({text(x)})' for c, x in s.outputs)
        ins = ", ".join(f'"{c}"({text(x)})' for c, x in s.inputs)
        return [f"{pad}{words} {_number(s.template, None)} : {outs} : {ins};"]
    if isinstance(s, ir.If):
        head = "if constexpr" if s.is_constexpr else "if"
        taken = f"  // taken: {'yes' if s.taken else 'no'}" if s.is_constexpr else ""
        lines = [f"{pad}{head} ({text(s.cond)}) {{{taken}", *inner(s.then)]
        if s.orelse:
            lines += [f"{pad}}} else {{", *inner(s.orelse)]
        return [*lines, f"{pad}}}"]
    if isinstance(s, ir.For):
        lines = []
        if s.unroll is not None:
            lines.append(f"{pad}#unroll" + (f" {s.unroll}" if s.unroll else ""))
        init = "; ".join(x.strip().rstrip(";") for x in format_stmts(s.init, 0, names))
        step = ", ".join(x.strip().rstrip(";") for x in format_stmts(s.step, 0, names))
        cond = text(s.cond) if s.cond is not None else ""
        return [*lines, f"{pad}for ({init}; {cond}; {step}) {{", *inner(s.body), f"{pad}}}"]
    if isinstance(s, ir.While):
        pre = [f"{pad}{INDENT}pre:", *format_stmts(s.pre, depth + 2, names)] if s.pre else []
        return [f"{pad}while ({text(s.cond)}) {{", *pre, *inner(s.body), f"{pad}}}"]
    if isinstance(s, ir.DoWhile):
        post = [f"{pad}{INDENT}post:", *format_stmts(s.post, depth + 2, names)] if s.post else []
        return [f"{pad}do {{", *inner(s.body), *post, f"{pad}}} while ({text(s.cond)});"]
    if isinstance(s, ir.Switch):
        lines = [f"{pad}switch ({text(s.value)}) {{"]
        for values, body in s.cases:
            label = "default" if values is None else "case " + ", ".join(map(str, values))
            lines += [f"{pad}{INDENT}{label}:", *format_stmts(body, depth + 2, names)]
        return [*lines, f"{pad}}}"]
    if isinstance(s, ir.Break):
        return [f"{pad}break;"]
    if isinstance(s, ir.Continue):
        return [f"{pad}continue;"]
    if isinstance(s, ir.Return):
        return [f"{pad}return{' ' + text(s.value) if s.value is not None else ''};"]
    if isinstance(s, ir.Scope):
        return [f"{pad}{{", *inner(s.body), f"{pad}}}"]
    if isinstance(s, ir.HoleStmt):
        cuda = " ".join(s.cuda.split())
        return [f"{pad}HOLE[{s.code}: {s.reason}] {cuda[:100]}"]
    return [f"{pad}{s!r}"]
