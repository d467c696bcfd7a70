"""The IR as plain C++ with every conversion spelled out, so that a host compiler can run what a lowering means.

Only what single-thread code needs: no shared memory, no CUDA intrinsics but a few that have host equivalents.
"""

from __future__ import annotations

from porter import ir

SCALARS = {
    "void": "void", "bool": "bool", "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t",
    "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t", "f32": "float", "f64": "double",
}  # fmt: skip


def _name(name: str) -> str:
    return "self_" if name == "this" else name


class Printer:
    def __init__(self, k: ir.Kernel):
        self.k = k
        self.structs: dict[str, str] = {}
        self.struct_text: list[str] = []
        self.functions = {key: f"f{n}" for n, key in enumerate(k.functions)}
        self.refs: set[str] = set()

    # ------------------------------------------------------------ types

    def type(self, t: ir.Type) -> str:
        if isinstance(t, ir.Scalar):
            return SCALARS[t.name]
        if isinstance(t, ir.Pointer):
            return f"P<{self.type(t.elem)}>" if not isinstance(t.elem, ir.Scalar) else f"{SCALARS[t.elem.name]}*"
        if isinstance(t, ir.Array):
            return f"A<{self.type(t.elem)}, {t.length}>"
        assert isinstance(t, ir.Struct)
        if t.name not in self.structs:
            self.structs[t.name] = name = f"S{len(self.structs)}"
            fields = " ".join(f"{self.type(f.type)} {f.name};" for f in t.fields)
            word = "union" if t.is_union else "struct"
            self.struct_text.append(f"{word} alignas({t.align}) {name} {{ {fields} }};")
            if t.fields:
                self.struct_text.append(f"static_assert(sizeof({name}) == {t.size});")
        return self.structs[t.name]

    # ------------------------------------------------------------ expressions

    def e(self, x: ir.Expr) -> str:
        if isinstance(x, ir.Const):
            if isinstance(x.type, ir.Pointer):
                return f"({self.type(x.type)}){x.value}"
            if isinstance(x.value, float):
                return f"({self.type(x.type)}){x.value.hex()}"
            value = "INT64_MIN" if x.value == -(2**63) else f"{int(x.value)}{'ull' if x.value > 2**63 - 1 else 'll'}"
            return f"({self.type(x.type)})({value})"
        if isinstance(x, ir.Var):
            name = _name(x.name)
            return f"(*{name})" if x.name in self.refs else name
        if isinstance(x, ir.Field):
            return f"{self.e(x.base)}.{x.name}"
        if isinstance(x, ir.Index):
            return f"{self.e(x.base)}.v[{self.e(x.index)}]"
        if isinstance(x, ir.Deref):
            return f"(*{self.e(x.ptr)})"
        if isinstance(x, ir.PtrAdd):
            return f"({self.e(x.ptr)} + {self.e(x.index)})"
        if isinstance(x, ir.PtrDiff):
            return f"(int64_t)({self.e(x.a)} - {self.e(x.b)})"
        if isinstance(x, ir.AddressOf):
            return f"(&{self.e(x.place)})"
        if isinstance(x, ir.Decay):
            return f"(&{self.e(x.place)}.v[0])"
        if isinstance(x, ir.Unary):
            return f"({self.type(x.type)})({x.op}{self.e(x.x)})"
        if isinstance(x, ir.Binary):
            return f"({self.type(x.type)})({self.e(x.a)} {x.op} {self.e(x.b)})"
        if isinstance(x, ir.Cast):
            return f"(({self.type(x.type)}){self.e(x.x)})"
        if isinstance(x, ir.Select):
            return f"({self.e(x.cond)} ? {self.e(x.a)} : {self.e(x.b)})"
        if isinstance(x, ir.StructInit):
            return f"{self.type(x.type)}{{{', '.join(map(self.e, x.values))}}}"
        if isinstance(x, ir.Intrinsic):
            assert x.name in ("min", "max", "fmaxf"), x.name
            a, b = map(self.e, x.args)
            return f"({a} < {b} ? {a} : {b})" if x.name == "min" else f"({a} < {b} ? {b} : {a})"
        assert isinstance(x, ir.Call), x
        f = self.k.functions[x.function]
        args = [f"&{self.e(a)}" if p.by_ref else self.e(a) for p, a in zip(f.params, x.args, strict=True)]
        return f"{'(*' if f.ret_ref else ''}{self.functions[x.function]}({', '.join(args)}){')' if f.ret_ref else ''}"

    # ------------------------------------------------------------ statements

    def s(self, s: ir.Stmt, ret_ref: bool) -> str:
        def body(stmts: tuple[ir.Stmt, ...]) -> str:
            return "{ " + " ".join(self.s(x, ret_ref) for x in stmts) + " }"

        if isinstance(s, ir.Decl):
            if s.init is None:
                return ""
            return f"{s.name} = {'&' if s.ref else ''}{self.e(s.init)};"
        if isinstance(s, ir.Assign):
            return f"{self.e(s.target)} = {self.e(s.value)};"
        if isinstance(s, ir.ExprStmt):
            return f"{self.e(s.value)};"
        if isinstance(s, ir.If):
            return f"if ({self.e(s.cond)}) {body(s.then)} else {body(s.orelse)}"
        if isinstance(s, ir.For):
            cond = self.e(s.cond) if s.cond is not None else ""
            step = ", ".join(self.s(x, ret_ref).rstrip(";") for x in s.step)
            init = " ".join(self.s(x, ret_ref) for x in s.init)
            return f"{{ {init} for (; {cond}; {step}) {body(s.body)} }}"
        if isinstance(s, ir.While):
            return f"for (;;) {{ {body(s.pre)} if (!({self.e(s.cond)})) break; {body(s.body)} }}"
        if isinstance(s, ir.DoWhile):
            cond = f"([&] {{ {body(s.post)} return {self.e(s.cond)}; }}())"
            return f"do {body(s.body)} while ({cond});"
        if isinstance(s, ir.Switch):
            cases = ""
            for values, b in s.cases:
                label = "default:" if values is None else " ".join(f"case {v}:" for v in values)
                cases += f"{label} {body(b)} break; "
            return f"switch ({self.e(s.value)}) {{ {cases} }}"
        if isinstance(s, ir.Break):
            return "break;"
        if isinstance(s, ir.Continue):
            return "continue;"
        if isinstance(s, ir.Return):
            return f"return {'&' if ret_ref else ''}{self.e(s.value)};" if s.value is not None else "return;"
        assert isinstance(s, ir.Scope), s
        return body(s.body)

    # ------------------------------------------------------------ functions

    def locals(self, body: tuple[ir.Stmt, ...]) -> str:
        out = ""
        for n in ir.walk(body):
            if isinstance(n, ir.Decl):
                if n.ref:
                    self.refs.add(n.name)
                out += f"{self.type(n.type)}{'*' if n.ref else ''} {n.name}{{}}; "
        return out

    def params(self, params: tuple[ir.FunctionParam, ...]) -> str:
        return ", ".join(f"{self.type(p.type)}{'*' if p.by_ref else ''} {_name(p.name)}" for p in params)

    def inner(self, body: tuple[ir.Stmt, ...]) -> list[str]:
        """Capturing functions that a body needs, callees first."""
        out: list[str] = []

        def visit(node: tuple[ir.Stmt, ...]) -> None:
            for n in ir.walk(node):
                if isinstance(n, ir.Call) and self.k.functions[n.function].captures_enclosing:
                    visit(self.k.functions[n.function].body)
                    if n.function not in out:
                        out.append(n.function)

        visit(body)
        return out

    def body(self, body: tuple[ir.Stmt, ...], params: tuple[ir.FunctionParam, ...], ret_ref: bool) -> str:
        saved = set(self.refs)
        self.refs |= {p.name for p in params if p.by_ref}
        text = self.locals(body)
        for key in self.inner(body):
            f = self.k.functions[key]
            kept = set(self.refs)
            self.refs |= {p.name for p in f.params if p.by_ref}
            local = self.locals(f.body)
            stmts = " ".join(self.s(x, f.ret_ref) for x in f.body)
            text += (
                f"auto {self.functions[key]} = [&]({self.params(f.params)}) -> {self.type(f.ret)}"
                f"{'*' if f.ret_ref else ''} {{ {local}{stmts} }};\n"
            )
            self.refs = kept
        text += "\n".join(self.s(x, ret_ref) for x in body)
        self.refs = saved
        return text

    def program(self) -> str:
        """The kernel as `void lowered(...)`, preceded by its functions, tables and structs."""
        out = []
        for g in self.k.globals:
            values = repr(g.value).replace("(", "{").replace(",)", "}").replace(")", "}")
            out.append(f"static const {self.type(g.type)} {g.name} = {values};")
        for key, f in self.k.functions.items():
            if f.captures_enclosing:
                continue
            ret = self.type(f.ret) + ("*" if f.ret_ref else "")
            out.append(
                f"{ret} {self.functions[key]}({self.params(f.params)}) {{ {self.body(f.body, f.params, f.ret_ref)} }}"
            )
        out.append(f"void lowered({self.params(self.k.params)}) {{\n{self.body(self.k.body, self.k.params, False)}\n}}")
        return "\n".join([*self.struct_text, *out])
