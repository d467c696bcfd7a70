"""Kernels from a seed that reuse names in every scope, with every integer type and operator; no undefined behaviour.

A program is one `__global__` function, with device functions that stay functions and others that are inlined. It reads
`in[0..INPUTS)` of its thread and folds the value of everything that it computes into `out` of its thread.

Signed overflow is avoided by intervals: each expression knows the smallest and largest value that it can have, and
arithmetic that might leave the type is done in the unsigned type and converted back. Divisors are not 0, shifts are
smaller than the type, loops end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

INPUTS = 8  # numbers a thread reads
BLOCK = 64
GRID = 2
INSTANCES = ((3, True), (8, False))  # (N, F) of the programs that are templates


@dataclass(frozen=True)
class Integer:
    """An integer type: its C++ name, its bits and whether it is signed."""

    name: str
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << self.bits - self.signed) - 1

    def holds(self, low: int, high: int) -> bool:
        return self.low <= low and high <= self.high


BOOL = Integer("bool", 1, False)
I8, U8 = Integer("signed char", 8, True), Integer("unsigned char", 8, False)
I16, U16 = Integer("short", 16, True), Integer("unsigned short", 16, False)
I32, U32 = Integer("int", 32, True), Integer("unsigned", 32, False)
I64, U64 = Integer("long long", 64, True), Integer("unsigned long long", 64, False)
TYPES = (BOOL, I8, U8, I16, U16, I32, U32, I64, U64)
USUAL = (I32, I32, I32, U32, U32, I64, U64, I8, U8, I16, U16, BOOL)  # how often a declaration takes a type
UNSIGNED = {I32: U32, I64: U64, U32: U32, U64: U64}
NAMES = ("i", "j", "k", "v", "w", "x")
LITERALS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 63, 100, 127, 128, 255, 256, 1000, 32767, 65535, 0x7FFFFFFF)


def promoted(t: Integer) -> Integer:
    return I32 if t.bits < 32 else t


def common(a: Integer, b: Integer) -> Integer:
    """The type of the usual arithmetic conversions."""
    a, b = promoted(a), promoted(b)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if not a.signed else b


@dataclass(frozen=True)
class Value:
    """An expression: its text, its type and the range that its value is in."""

    text: str
    type: Integer
    low: int
    high: int

    def to(self, t: Integer) -> Value:
        """Converted, as an operand is: the text stays."""
        if t == BOOL:
            return Value(self.text, t, 0, 1)
        fits = t.holds(self.low, self.high)
        return Value(self.text, t, *((self.low, self.high) if fits else (t.low, t.high)))


@dataclass
class Variable:
    """`kind`: const (never assigned), plain (assigned anywhere), array (of 4)."""

    name: str
    type: Integer
    kind: str
    low: int
    high: int

    def value(self) -> Value:
        return Value(self.name, self.type, self.low, self.high)


@dataclass
class Function:
    """A device function: parameters as (type, by reference)."""

    name: str
    result: Integer
    params: tuple[tuple[Integer, bool], ...]


@dataclass
class Program:
    """Writes one program; `template` programs have a number N and a flag F, at INSTANCES."""

    seed: int
    name: str
    template: bool = False
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.r = random.Random(self.seed)
        self.scopes: list[dict[str, Variable]] = []
        self.hidden: set[str] = set()
        self.functions: list[Function] = []
        self.budget = 0
        self.loops = 0
        self.indent = 0
        self.fold = True
        self.pure = False
        self.fresh = 0

    # ---- text

    def text(self) -> str:
        for n in range(self.r.randint(0, 2)):
            self._function(n)
        self._kernel()
        return "\n".join(self.lines) + "\n"

    def put(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.put(head + " {")
        self.indent += 1
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.indent -= 1
        self.put("}")

    # ---- functions and kernel

    def _function(self, n: int) -> None:
        references = self.r.random() < 0.5
        params = tuple(
            (self.r.choice(USUAL), references and self.r.random() < 0.6) for _ in range(self.r.randint(1, 3))
        )
        f = Function(f"{self.name}_f{n}", self.r.choice(USUAL), params)
        names = self.r.sample(NAMES, len(params))
        heads = [f"{t.name}{'&' if ref else ''} {name}" for (t, ref), name in zip(params, names, strict=True)]
        self.scopes = [
            {
                name: Variable(name, t, "plain" if ref or self.r.random() < 0.5 else "const", t.low, t.high)
                for (t, ref), name in zip(params, names, strict=True)
            }
        ]
        self.fold, self.pure, self.budget = False, True, self.r.randint(3, 7)
        self.put(f"__device__ {f.result.name} {f.name}({', '.join(heads)}) {{")
        self.indent = 1
        self._statements(inside_function=f)
        self.put(f"return {self.expr(2).text};")
        self.indent = 0
        self.put("}")
        self.fold, self.pure = True, False
        self.functions.append(f)

    def _kernel(self) -> None:
        if self.template:
            self.put("template <int N, bool F>")
        self.put(f"__global__ void {self.name}(const unsigned* in, unsigned long long* out, int n) {{")
        self.indent = 1
        self.put("const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;")
        self.put("unsigned long long acc = at;")
        if self.r.random() < 0.2:
            self.put("if (at >= (unsigned)n) return;")
        self.scopes = [{}]
        self.budget = self.r.randint(16, 32)
        self._statements()
        self.put("out[at] = acc;")
        self.indent = 0
        self.put("}")

    # ---- statements

    def _statements(self, inside_function: Function | None = None, loop: bool = False) -> None:
        done = 0
        while self.budget > 0 or done < 2:
            self.budget -= 1
            done += 1
            self._statement(inside_function, loop)
            if done > 1 and len(self.scopes) > 1 and self.r.random() < 0.25:
                break
        if self.fold:
            for v in list(self.scopes[-1].values()):
                if self.r.random() < 0.75:
                    self._fold(v)

    def _fold(self, v: Variable) -> None:
        text = {"array": f"{v.name}[{self.r.randrange(4)}]", "pointer": f"*{v.name}"}.get(v.kind, v.name)
        self.put(f"acc = (acc ^ (unsigned long long)({text})) * 1099511628211ull;")

    def _statement(self, fn: Function | None, loop: bool) -> None:
        r = self.r
        deep = len(self.scopes) > 4 or self.budget <= 0
        kinds = (
            ["declare"] * 6 + ["assign"] * 4 + ["step"] * 2 + ["fold"] * 2 + ["array", "pointer", "reference", "call"]
        )
        if not deep:
            kinds += ["if"] * 3 + ["scope"] * 3 + ["switch"]
            kinds += ["lambda"] if not self.pure else []
            kinds += ["up"] * 3 + ["down"] * 2 + ["geometric", "while", "do"] if self.loops < 2 else []
            kinds += ["constexpr"] * 2 if self.template and not self.pure else []
        if loop:
            kinds += ["break", "continue"]
        if fn is not None and len(self.scopes) > 1:
            kinds += ["return"]
        kind = r.choice(kinds)
        if kind in ("break", "continue"):
            self.put(f"if ({self.condition(1)}) {kind};")
        elif kind == "return":
            self.put(f"if ({self.condition(1)}) return {self.expr(1).text};")
        elif kind == "fold":
            if self.fold:
                self.put(f"acc = (acc + (unsigned long long)({self.expr(2).text})) * 31u;")
        elif kind in ("if", "constexpr"):
            head = f"if ({self.condition(2)})"
            if kind == "constexpr":
                head = f"if constexpr ({r.choice(('F', '!F', 'N > 4', 'N % 2 == 1'))})"
            with self.block(head):
                self._statements(fn, loop)
            if r.random() < 0.5:
                with self.block("else"):
                    self._statements(fn, loop)
        elif kind == "scope":
            with self.block(""):
                self._statements(fn, loop)
        else:
            getattr(self, f"_{kind}")(fn, loop)

    def _new_name(self) -> str | None:
        free = [n for n in NAMES if n not in self.scopes[-1]]
        return self.r.choice(free) if free else None

    def _add(self, name: str, t: Integer, kind: str, value: Value | None = None) -> Variable:
        known = value.to(t) if value is not None and kind == "const" else None
        v = Variable(name, t, kind, known.low if known else t.low, known.high if known else t.high)
        self.scopes[-1][name] = v
        return v

    def _declare(self, fn: Function | None, loop: bool) -> None:
        name = self._new_name()
        if name is None:
            return
        t, kind = self.r.choice(USUAL), self.r.choice(("const", "plain"))
        self.hidden.add(name)
        value = self.literal() if self.r.random() < 0.15 else self.expr(2)
        self.hidden.discard(name)
        word = "const " if kind == "const" and self.r.random() < 0.5 else ""
        if kind == "plain" and self.r.random() < 0.2:
            self.put(f"{t.name} {name};")
            self.put(f"{name} = {value.text};")
        else:
            self.put(f"{word}{t.name} {name} = {value.text};")
        self._add(name, t, kind, value)

    def _array(self, fn: Function | None, loop: bool) -> None:
        name = self._new_name()
        if name is None:
            return
        t = self.r.choice([x for x in TYPES if x != BOOL])
        self.hidden.add(name)
        values = ", ".join(f"({t.name})({self.expr(1).text})" for _ in range(4))
        self.hidden.discard(name)
        self.put(f"{t.name} {name}[4] = {{{values}}};")
        self._add(name, t, "array")

    def _targets(self) -> list[Variable]:
        return [v for v in self.visible() if v.kind in ("plain", "array", "pointer")]

    def _assign(self, fn: Function | None, loop: bool) -> None:
        targets = self._targets()
        if not targets:
            return
        v = self.r.choice(targets)
        place = f"{v.name}[({self.expr(1).text}) & 3]" if v.kind == "array" else v.name
        place = f"*{v.name}" if v.kind == "pointer" else place
        current = Value(place, v.type, v.type.low, v.type.high)
        op = self.r.choice(("=", "=", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"))
        b = self.expr(2)
        if op == "=":
            self.put(f"{place} = {b.text};")
        elif op in ("/", "%"):
            self.put(f"{place} {op}= {self.divisor(current, b).text};")
        elif op in ("<<", ">>"):
            t = promoted(v.type)
            if op == "<<" and t.signed:  # a negative number is not shifted to the left
                self.put(f"{place} = ({UNSIGNED[t].name}){place} << {self.amount(t)};")
            else:
                self.put(f"{place} {op}= {self.amount(t)};")
        else:
            t = common(v.type, b.type)
            low, high = self._range(op, current.to(t), b.to(t))
            if t.signed and not t.holds(low, high):
                self.put(f"{place} {op}= ({UNSIGNED[t].name})({b.text});")
                if UNSIGNED[t] != common(v.type, UNSIGNED[t]):
                    raise AssertionError(place)
            else:
                self.put(f"{place} {op}= {b.text};")

    def _step(self, fn: Function | None, loop: bool) -> None:
        """++ and --, in statements and inside expressions; of types that wrap or cannot overflow in int."""
        targets = [v for v in self._targets() if v.kind == "plain" and v.type not in (I32, I64, BOOL)]
        if not targets:
            return
        v, op = self.r.choice(targets), self.r.choice(("++", "--"))
        text = self.r.choice((f"{v.name}{op}", f"{op}{v.name}"))
        others = [o for o in self._targets() if o.kind == "plain" and o is not v]
        if others and self.r.random() < 0.5:
            self.put(f"{self.r.choice(others).name} = {text};")
        else:
            self.put(f"{text};")

    def _pointer(self, fn: Function | None, loop: bool) -> None:
        name, targets = self._new_name(), [v for v in self._targets() if v.kind == "plain" and v.type != BOOL]
        if name is None or not targets:
            return
        v = self.r.choice(targets)
        if v.name == name:
            return
        self.hidden.add(name)
        first = self.expr(1)
        self.hidden.discard(name)
        self.scopes[-1][name] = Variable(name, v.type, "pointer", 0, 0)
        self.put(f"{v.type.name}* {name} = &{v.name};")
        self.put(f"*{name} = {first.text};")

    def _reference(self, fn: Function | None, loop: bool) -> None:
        name, targets = self._new_name(), [v for v in self._targets() if v.kind in ("plain", "array")]
        if name is None or not targets:
            return
        v = self.r.choice(targets)
        if v.name == name:
            return
        self.hidden.add(name)
        place = f"{v.name}[({self.expr(1).text}) & 3]" if v.kind == "array" else v.name
        self.hidden.discard(name)
        self.put(f"{v.type.name}& {name} = {place};")
        self._add(name, v.type, "plain")

    def _call(self, fn: Function | None, loop: bool) -> None:
        targets = [v for v in self._targets() if v.kind == "plain"]
        if not self.functions or not targets:
            return
        f = self.r.choice(self.functions)
        args = []
        for t, ref in f.params:
            fitting = [v for v in targets if v.type == t]
            if ref and not fitting:
                return
            args.append(self.r.choice(fitting).name if ref else self.expr(1).text)
        self.put(f"{self.r.choice(targets).name} = {f.name}({', '.join(args)});")

    def _lambda(self, fn: Function | None, loop: bool) -> None:
        targets = [v for v in self._targets() if v.kind == "plain"]
        if not targets:
            return
        self.fresh += 1
        name, t, parameter, v = f"f{self.fresh}", self.r.choice(USUAL), self.r.choice(NAMES), self.r.choice(targets)
        fold, pure, budget = self.fold, self.pure, self.budget
        self.put(f"auto {name} = [&]({t.name} {parameter}) {{")
        self.indent += 1
        self.scopes.append({parameter: Variable(parameter, t, "const", t.low, t.high)})
        self.fold, self.pure, self.budget = False, True, self.r.randint(1, 3)
        while self.budget > 0:
            self.budget -= 1
            self.r.choice((self._declare, self._assign, self._step))(fn, False)
        self.put(f"return {self.expr(2).text};")
        self.scopes.pop()
        self.indent -= 1
        self.put("};")
        self.fold, self.pure, self.budget = fold, pure, budget
        for _ in range(self.r.randint(1, 2)):
            self.put(f"{v.name} = {name}({self.expr(1).text});")

    def _switch(self, fn: Function | None, loop: bool) -> None:
        value = self.expr(1)
        with self.block(f"switch (({value.text}) & 3)"):
            for n in self.r.sample(range(4), self.r.randint(1, 3)):
                with self.block(f"case {n}:"):
                    self._statements(fn, False)
                self.put("break;")
            if self.r.random() < 0.5:
                with self.block("default:"):
                    self._statements(fn, False)

    # ---- loops

    @contextmanager
    def _loop(self, head: str, index: Variable | None) -> Iterator[None]:
        """The body's names are a scope of their own, but may not be the index's."""
        self.loops += 1
        self.put(head + " {")
        self.indent += 1
        self.scopes.append({index.name: index} if index is not None else {})
        yield
        self.scopes.pop()
        self.indent -= 1
        self.put("}")
        self.loops -= 1

    def _body(self, fn: Function | None, index: Variable | None) -> None:
        budget = self.budget
        self.budget = min(budget, self.r.randint(1, 5))
        spent = self.budget
        self._statements(fn, True)
        self.budget = budget - (spent - self.budget)
        if self.fold and index is not None and self.r.random() < 0.7:
            self._fold(index)

    def _bound(self, most: int) -> Value:
        """A loop's end: a constant, or a small number known at run time."""
        if self.template and not self.pure and self.r.random() < 0.3:
            return Value("N", I32, min(n for n, _ in INSTANCES), max(n for n, _ in INSTANCES))
        if self.r.random() < 0.5:
            n = self.r.randint(0, most)
            return Value(self.r.choice((f"{n}", f"{n}u")) if n else "0", I32, n, n)
        e = self.expr(1)
        mask = self.r.choice((1, 3, 7))
        t = common(e.type, I32)
        return Value(f"(({e.text}) & {mask})", t, 0, mask)

    def _pragma(self) -> None:
        if self.r.random() < 0.2:
            self.put(self.r.choice(("#pragma unroll", "#pragma unroll 1", "#pragma unroll 2")))

    def _up(self, fn: Function | None, loop: bool) -> None:
        t = self.r.choice([x for x in USUAL if x != BOOL])
        name = self.r.choice(NAMES)
        self.hidden.add(name)
        end = self._bound(9)
        first = self.r.choice((0, 0, 1, 2, -3 if t.signed and end.type.signed and "u" not in end.text else 0))
        start = Value(str(first), I32, first, first)
        if self.r.random() < 0.3:
            e = self.expr(1)
            start = Value(f"(int)(({e.text}) & 3)", I32, 0, 3)
        by = self.r.choice((1, 1, 1, 2, 3, 5))
        step = self.r.choice((f"{name}++", f"++{name}")) if by == 1 else f"{name} += {by}"
        if self.r.random() < 0.1:
            by, step = 3, f"{name} += (({self.expr(1).text}) & 1) + 1"
        inclusive = self.r.random() < 0.25
        test = f"{name} {'<=' if inclusive else '<'} {end.text}"
        if by == 1 and start.low == start.high and end.low == end.high >= start.low and self.r.random() < 0.2:
            test = f"{name} != {end.text}"
        others = [v for v in self._targets() if v.kind == "plain" and v.type in (U32, U64, U16) and v.name != name]
        if others and self.r.random() < 0.15:
            step += f", {self.r.choice(others).name} += 3"
        self.hidden.discard(name)
        changes = self.r.random() < 0.1 and "!=" not in test
        index = Variable(
            name, t, "const", t.low if changes else start.low, t.high if changes else max(end.high, start.low)
        )
        self._pragma()
        with self._loop(f"for ({t.name} {name} = {start.text}; {test}; {step})", index):
            self._body(fn, index)
            if changes:
                self.put(f"{name} += ({self.condition(1)}) ? 1 : 0;")

    def _down(self, fn: Function | None, loop: bool) -> None:
        t = self.r.choice([x for x in USUAL if x != BOOL])
        name = self.r.choice(NAMES)
        self.hidden.add(name)
        start = self._bound(9)
        self.hidden.discard(name)
        self._pragma()
        form = self.r.randrange(3 if t.signed else 2)
        if form == 0:  # the usual form for unsigned indices
            index = Variable(name, t, "const", 0, max(start.high - 1, 0))
            head = f"for ({t.name} {name} = {start.text}; {name}-- > 0;)"
        elif form == 1:
            index = Variable(name, t, "const", 1, max(start.high, 1))
            head = f"for ({t.name} {name} = {start.text}; {name} > 0; {self.r.choice((f'--{name}', f'{name} -= 1'))})"
        else:
            by, low = self.r.choice((1, 2, 3)), self.r.choice((0, 0, 2, -2))
            step = self.r.choice((f"{name} -= {by}", f"{name} += -{by}"))
            index = Variable(name, t, "const", low, max(start.high, low))
            head = f"for ({t.name} {name} = {start.text}; {name} >= {low}; {step})"
        with self._loop(head, index):
            self._body(fn, index)

    def _geometric(self, fn: Function | None, loop: bool) -> None:
        t = self.r.choice((I32, U32, I64, U64, U16, U8))
        name = self.r.choice(NAMES)
        self._pragma()
        index = Variable(name, t, "const", 1, 64)
        up = self.r.choice((f"{name} *= 2", f"{name} <<= 1"))
        down = self.r.choice((f"{name} /= 2", f"{name} >>= 1"))
        heads = (f"{t.name} {name} = 1; {name} < 64; {up}", f"{t.name} {name} = 32; {name} > 0; {down}")
        with self._loop(f"for ({self.r.choice(heads)})", index):
            self._body(fn, index)

    def _fuel(self) -> str:
        self.fresh += 1
        name = f"fuel{self.fresh}"
        self.put(f"int {name} = {self.r.randint(1, 6)};")
        return name

    def _while(self, fn: Function | None, loop: bool) -> None:
        fuel = self._fuel()
        test = self.r.choice((f"{fuel}-- > 0 && ({self.condition(1)})", f"({self.condition(1)}) && --{fuel} > 0"))
        with self._loop(f"while ({test})", None):
            self._body(fn, None)

    def _do(self, fn: Function | None, loop: bool) -> None:
        fuel = self._fuel()
        self.put("do {")
        self.indent += 1
        self.scopes.append({})
        self.loops += 1
        self._body(fn, None)
        self.loops -= 1
        self.scopes.pop()
        self.indent -= 1
        self.put(f"}} while (--{fuel} > 0 && ({self.condition(1)}));")

    # ---- expressions

    def visible(self) -> list[Variable]:
        found: dict[str, Variable] = {}
        for scope in self.scopes:
            found.update(scope)
        return [v for v in found.values() if v.name not in self.hidden]

    def literal(self) -> Value:
        n = self.r.choice(LITERALS)
        kind = self.r.randrange(8)
        if kind == 0:
            return Value(f"{n}u", U32, n, n)
        if kind == 1:
            return Value(f"{n}ll", I64, n, n)
        if kind == 2:
            return Value(f"{n}ull", U64, n, n)
        if kind == 3 and n:
            return Value(f"(-{n})", I32, -n, -n)
        if kind == 4:
            n = self.r.choice((0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 0xAAAAAAAA))
            return Value(f"{hex(n)}u", U32, n, n)
        return Value(f"{n}", I32, n, n)

    def leaf(self) -> Value:
        r = self.r
        variables = self.visible()
        pick = r.random()
        if variables and pick < 0.6:
            v = r.choice(variables)
            if v.kind == "array":
                return Value(f"{v.name}[{r.randrange(4)}]", v.type, v.type.low, v.type.high)
            if v.kind == "pointer":
                return Value(f"*{v.name}", v.type, v.type.low, v.type.high)
            return v.value()
        if self.template and not self.pure and pick < 0.65:
            return Value("N", I32, min(n for n, _ in INSTANCES), max(n for n, _ in INSTANCES))
        if pick < 0.72:
            name, most = r.choice(
                (("threadIdx.x", BLOCK - 1), ("blockIdx.x", GRID - 1), ("blockDim.x", BLOCK), ("gridDim.x", GRID))
            )
            return Value(name, U32, 0, most) if r.random() < 0.5 else Value(f"(int){name}", I32, 0, most)
        if pick < 0.85 and not self.pure:
            text = f"in[at * {INPUTS} + {r.randrange(INPUTS)}]"
            t = r.choice((U32, I32, I32, I8, U8, I16))
            if t == U32:
                return Value(text, t, t.low, t.high)
            return Value(f"({t.name}){text}", t, t.low, t.high)
        return self.literal()

    def expr(self, depth: int) -> Value:
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return self.leaf()
        kind = r.choice(("binary",) * 9 + ("unary", "unary", "cast", "cast", "select", "minmax", "logic", "call"))
        if kind == "binary":
            return self.binary(depth)
        if kind == "unary":
            return self.unary(self.expr(depth - 1))
        if kind == "cast":
            x, t = self.expr(depth - 1), r.choice(TYPES)
            text = f"static_cast<{t.name}>({x.text})" if r.random() < 0.3 else f"({t.name})({x.text})"
            return Value(text, *_of(x.to(t)))
        if kind == "select":
            a, b = self.expr(depth - 1), self.expr(depth - 1)
            t = a.type if a.type == b.type else common(a.type, b.type)
            a, b = a.to(t), b.to(t)
            return Value(f"(({self.condition(1)}) ? {a.text} : {b.text})", t, min(a.low, b.low), max(a.high, b.high))
        if kind == "minmax":
            a, b = self.expr(depth - 1), self.expr(depth - 1)
            t = common(a.type, b.type)
            a, b = a.to(t), b.to(t)
            name, pick = r.choice((("min", min), ("max", max)))
            text = f"{name}(({t.name})({a.text}), ({t.name})({b.text}))"
            return Value(text, t, pick(a.low, b.low), pick(a.high, b.high))
        if kind == "call":
            fitting = [f for f in self.functions if not any(ref for _, ref in f.params)]
            if fitting:
                f = r.choice(fitting)
                args = ", ".join(self.expr(depth - 1).text for _ in f.params)
                return Value(f"{f.name}({args})", f.result, f.result.low, f.result.high)
        return Value(f"({self.condition(depth)})", BOOL, 0, 1)

    def condition(self, depth: int) -> str:
        r = self.r
        if depth > 1 and r.random() < 0.3:
            return f"({self.condition(depth - 1)}) {r.choice(('&&', '||'))} ({self.condition(depth - 1)})"
        if r.random() < 0.15:
            return f"!({self.condition(depth - 1)})" if depth > 1 else self.expr(0).text
        a, b = self.expr(depth - 1), self.expr(depth - 1)
        return f"({a.text}) {r.choice(('<', '<=', '>', '>=', '==', '!='))} ({b.text})"

    def unary(self, x: Value) -> Value:
        t = promoted(x.type)
        x = x.to(t)
        op = self.r.choice(("-", "~", "!"))
        if op == "!":
            return Value(f"!({x.text})", BOOL, 0, 1)
        if op == "~":
            low, high = (~x.high, ~x.low) if t.signed else (t.high - x.high, t.high - x.low)
            return Value(f"~({x.text})", t, low, high)
        if t.signed and x.low == t.low:
            return Value(f"({t.name})(0u - ({UNSIGNED[t].name})({x.text}))", t, t.low, t.high)
        if not t.signed:
            return Value(f"(-({x.text}))", t, t.low, t.high)
        return Value(f"(-({x.text}))", t, -x.high, -x.low)

    def binary(self, depth: int) -> Value:
        op = self.r.choice(("+", "-", "*", "/", "%", "/", "%", "<<", ">>", ">>", "&", "|", "^"))
        a, b = self.expr(depth - 1), self.expr(depth - 1)
        if op in ("<<", ">>"):
            return self.shift(op, a)
        if op in ("/", "%"):
            b = self.divisor(a, b)
        t = common(a.type, b.type)
        a, b = a.to(t), b.to(t)
        low, high = self._range(op, a, b)
        if t.holds(low, high):
            return Value(f"({a.text} {op} {b.text})", t, low, high)
        if not t.signed:
            return Value(f"({a.text} {op} {b.text})", t, t.low, t.high)
        u = UNSIGNED[t].name
        return Value(f"({t.name})(({u})({a.text}) {op} ({u})({b.text}))", t, t.low, t.high)

    def divisor(self, a: Value, b: Value) -> Value:
        """A divisor that is never 0, and not -1 where the dividend may be the smallest number."""
        t = common(a.type, b.type)
        x, y = a.to(t), b.to(t)
        if (y.low > 0 or y.high < 0) and not (t.signed and x.low == t.low and y.low <= -1 <= y.high):
            return b
        if self.r.random() < 0.4:
            n = self.r.choice((2, 3, 4, 5, 7, 8, 10, 16, -2, -3, -7))
            return Value(f"({n})", I32, n, n)
        own = promoted(b.type)
        if not t.signed and not own.signed:
            return Value(f"(({b.text}) | 1)", own, 1, own.high)
        return Value(f"((({b.text}) & 15) + 1)", own, 1, 16)

    def amount(self, t: Integer) -> str:
        if self.r.random() < 0.5:
            return str(self.r.choice((0, 1, 2, 3, 4, 7, 8, 15, 31)))
        return f"(({self.expr(1).text}) & {self.r.choice((3, 7, t.bits - 1))})"

    def shift(self, op: str, a: Value) -> Value:
        t = promoted(a.type)
        a = a.to(t)
        n = self.amount(t)
        if op == ">>":
            low, high = min(a.low, 0), max(a.high, 0)
            if n.isdigit():
                low, high = a.low >> int(n), a.high >> int(n)
            elif a.low < 0:
                high = max(a.high, -1)
            return Value(f"({a.text} >> {n})", t, low, high)
        if t.signed:
            if n.isdigit() and a.low >= 0 and a.high << int(n) <= t.high:
                return Value(f"({a.text} << {n})", t, a.low << int(n), a.high << int(n))
            return Value(f"({t.name})(({UNSIGNED[t].name})({a.text}) << {n})", t, t.low, t.high)
        return Value(f"({a.text} << {n})", t, t.low, t.high)

    def _range(self, op: str, a: Value, b: Value) -> tuple[int, int]:
        """Range of the exact result; of operands in one type, the divisor not 0."""
        corners = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        if op in ("+", "-", "*"):
            found = [x + y if op == "+" else x - y if op == "-" else x * y for x, y in corners]
            return min(found), max(found)
        if op == "/":
            most = max(abs(a.low), abs(a.high))
            return (-most if a.low < 0 or b.low < 0 else 0), most
        if op == "%":
            most = max(abs(b.low), abs(b.high)) - 1
            return (-most if a.low < 0 else 0), most
        if op == "&" and (a.low >= 0 or b.low >= 0):
            return 0, min(x.high for x in (a, b) if x.low >= 0)
        bits = max(x.bit_length() for x in (a.low, a.high, b.low, b.high))
        return (0 if a.low >= 0 and b.low >= 0 else -(1 << bits)), (1 << bits) - 1


def _of(v: Value) -> tuple[Integer, int, int]:
    return v.type, v.low, v.high


def program(seed: int, name: str) -> tuple[str, bool]:
    """(text, whether it is a template) of the program of a seed; its kernel has the name."""
    template = seed % 4 == 3
    return Program(seed, name, template).text(), template
