"""Ports edited at random: one small change somewhere, drawn by number. Nothing is known of whether it matters."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tools.mutation.port_text import Edit, PortText

REGIONS = ("device", "launch", "description", "config", "torch")
# Attributes of a launch, each with values that are tried where it is absent and where it is there.
ATTRIBUTES = {
    "cooperative": ("True",), "cluster": ("(2, 1, 1)",), "use_pdl": ("True",), "smem": ("smem_bytes", "64", "0"),
    "max_number_threads": ("[256, 1, 1]", "[32, 1, 1]"), "min_blocks_per_mp": ("1", "8"),
}  # fmt: skip
# Functions of which one is written for another.
SIBLINGS = (
    ("lib.fmax", "lib.fmin", "lib.imax", "lib.imin"), ("lib.shfl_xor", "lib.shfl_down", "lib.shfl_up", "lib.shfl"),
    ("lib.rsqrt", "lib.sqrt", "lib.rcp"), ("cute.math.exp", "cute.math.exp2", "cute.math.log"),
    ("lib.isnan", "lib.isinf"), ("lib.rint", "lib.floor", "lib.ceil"),
    ("Int32", "Int64", "Uint32", "cutlass.Int32", "cutlass.Uint32", "cutlass.Int64"),
    ("Float32", "Float16", "BFloat16", "cutlass.Float32", "cutlass.BFloat16", "cutlass.Float16"),
    ("cute.arch.sync_threads", "cute.arch.sync_warp"), ("min", "max"), ("runtime.Ptr", "runtime.Num"),
    ("lib.block_dim", "lib.grid_dim", "cute.arch.grid_dim"), ("cute.arch.thread_idx", "cute.arch.block_idx"),
    ("cutlass.range_constexpr", "range"), ("lib.shared", "lib.local"),
    ("lib.atomic_add", "lib.atomic_max", "lib.atomic_min"), ("lib.ldg", "lib.ldcs", "lib.ldcg"),
)  # fmt: skip
OPERATORS: tuple[tuple[type[ast.operator], ...], ...] = (
    (ast.Add, ast.Sub, ast.Mult), (ast.FloorDiv, ast.Mod, ast.Mult), (ast.Div, ast.Mult, ast.Sub),
    (ast.BitAnd, ast.BitOr, ast.BitXor), (ast.LShift, ast.RShift),
)  # fmt: skip
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
DTYPES = ("bf16", "f16", "f32", "i32", "i64", "f8e4m3", "i8", "u8", "bool")


@dataclass(frozen=True)
class RandomEdit:
    """`kind` of change in a `region` of the port at `line`; `text` is the whole port with it."""

    number: int
    kind: str
    region: str
    line: int
    before: str
    after: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Places:
    """A port's syntax tree with what may be changed where."""

    def __init__(self, text: str):
        self.port = PortText(text)

    @cached_property
    def regions(self) -> dict[str, list[ast.stmt]]:
        """Statements at the top of the module, by region."""
        found: dict[str, list[ast.stmt]] = {r: [] for r in REGIONS}
        for node in self.port.tree.body:
            if isinstance(node, ast.FunctionDef):
                if node.name.startswith("_launch_"):
                    found["launch"].append(node)
                elif node.decorator_list:
                    found["device"].append(node)
                else:
                    found["config" if node.name == "launch_config" else "torch"].append(node)
            elif isinstance(node, ast.Assign):
                found["description"].append(node)
        return found

    @cached_property
    def strings(self) -> list[str]:
        """Short texts that the module has outside of docstrings, and names of types."""
        texts = [n.value for n in ast.walk(self.port.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        return sorted({t for t in texts if t.isidentifier()} | set(DTYPES))

    def nodes(self, region: str) -> Iterator[tuple[ast.stmt, ast.AST]]:
        """Expressions and statements of a region with the top statement that they are in; no docstrings, f-strings."""
        for top in self.regions[region]:
            body = top.body if isinstance(top, ast.FunctionDef) else [top]
            parts = [s for s in body if not _is_text(s)]
            if isinstance(top, ast.FunctionDef):
                parts += top.args.defaults + [d for d in top.args.kw_defaults if d]  # type: ignore[arg-type]
            for part in parts:
                for node in _walk(part):
                    yield top, node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def show(node: ast.AST) -> str:
    return ast.unparse(node)


def whole(node: ast.AST) -> str:
    """As an operand of anything."""
    text = show(node)
    return text if isinstance(node, (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.Attribute)) else f"({text})"


# ---------------------------------------------------------------- what becomes of a node


def constants(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    if not isinstance(node, ast.Constant):
        return []
    value = node.value
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int):
        return [str(v) for v in (value + 1, value - 1, value * 2, value // 2, 0, -value)]
    if isinstance(value, float):
        return [repr(v) for v in (value * 2, -value, 0.0, value * 1.01, value + 1.0)]
    if isinstance(value, str) and value.isidentifier():
        return [repr(s) for s in places.strings]
    return []


def indices(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    """Of a subscript; of a pointer, what is added to it."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return [f"{whole(node.value)}[{i}]" for i in _beside(node.slice)]
    return []


def offsets(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.left, ast.Name):
        return [f"({show(node.left)} + {i})" for i in _beside(node.right)]
    return []


def _beside(index: ast.expr) -> list[str]:
    return [f"({show(index)}) + 1", f"({show(index)}) - 1", f"({show(index)}) * 2", "0"]


def operators(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    if isinstance(node, ast.BinOp):
        left, right = whole(node.left), whole(node.right)
        found = [f"({right} {_sign(node.op)} {left})", left, right]
        for group in OPERATORS:
            if isinstance(node.op, group):
                found += [f"({left} {_sign(o())} {right})" for o in group if not isinstance(node.op, o)]
        return found
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = whole(node.left), whole(node.comparators[0])
        signs = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
        return [f"({left} {signs[o]} {right})" for o in COMPARISONS if not isinstance(node.ops[0], o)]
    if isinstance(node, ast.BoolOp):
        other = "or" if isinstance(node.op, ast.And) else "and"
        texts = [whole(v) for v in node.values]
        dropped = ["(" + f" {'and' if other == 'or' else 'or'} ".join(texts[:i] + texts[i + 1 :]) + ")"
                   for i in range(len(texts))]  # fmt: skip
        return [f"({f' {other} '.join(texts)})", *dropped]
    if isinstance(node, ast.UnaryOp):
        return [whole(node.operand)]
    if isinstance(node, ast.IfExp):
        test, first, second = whole(node.test), whole(node.body), whole(node.orelse)
        return [f"({second} if {test} else {first})", first, second]
    return []


def _sign(op: ast.operator) -> str:
    return show(ast.BinOp(ast.Name("a"), op, ast.Name("b"))).removeprefix("a ").removesuffix(" b")


def names(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    """Another name of the same function."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or not isinstance(top, ast.FunctionDef):
        return []
    arguments = [a.arg for a in (*top.args.args, *top.args.kwonlyargs)]
    local = [n.id for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    known = sorted({*arguments, *local})
    return [k for k in known if k != node.id] if node.id in known else []


def calls(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    if not isinstance(node, ast.Call):
        return []
    function = show(node.func)
    given = [show(a) for a in node.args]
    named = [f"{k.arg}={show(k.value)}" if k.arg else f"**{show(k.value)}" for k in node.keywords]
    others = [other for s in SIBLINGS if function in s for other in s if other != function]
    found = [f"{other}({', '.join(given + named)})" for other in others]
    if len(given) == 1 and not named:
        found.append(whole(node.args[0]))
    for i in range(len(given) - 1):
        swapped = [*given[:i], given[i + 1], given[i], *given[i + 2 :]]
        found.append(f"{function}({', '.join(swapped + named)})")
    for i in range(len(named)):
        found.append(f"{function}({', '.join(given + named[:i] + named[i + 1 :])})")
    if len(given) > 2:
        found.append(f"{function}({', '.join(given[:-1] + named)})")
    return found


def statements(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    """Left out, or done twice."""
    if isinstance(node, ast.Return) or isinstance(top, ast.Assign):
        return []
    if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)):
        return ["pass", f"{show(node)}; {show(node)}"]
    if isinstance(node, (ast.If, ast.For, ast.Raise)):
        return ["pass"]
    return []


def branches(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    """The condition of an `if` or `while`: always, never, the other way round."""
    tests = [n.test for n in ast.walk(top) if isinstance(n, (ast.If, ast.While))]
    if not any(node is t for t in tests):
        return []
    return [f"(not {whole(node)})", "True", "False"]


def attributes(node: ast.AST, top: ast.stmt, places: Places) -> list[str]:
    """Of the launch: each left out, added or changed."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch"):
        return []
    known = {k.arg: show(k.value) for k in node.keywords}
    found = []
    for name, values in ATTRIBUTES.items():
        without = {k: v for k, v in known.items() if k != name}
        texts = [without] if name in known else []
        texts += [{**without, name: v} for v in values if known.get(name) != v]
        found += [f"{show(node.func)}({', '.join(f'{k}={v}' for k, v in t.items())})" for t in texts]
    return found


Change = Callable[[ast.AST, ast.stmt, Places], list[str]]
# kind -> what it does, where
KINDS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "constant": (constants, ("device",)),
    "index": (indices, ("device",)),
    "offset": (offsets, ("device",)),
    "operator": (operators, ("device",)),
    "name": (names, ("device",)),
    "call": (calls, ("device",)),
    "statement": (statements, ("device",)),
    "branch": (branches, ("device",)),
    "launch argument": (names, ("launch",)),
    "launch call": (calls, ("launch",)),
    "attribute": (attributes, ("launch",)),
    "description": (constants, ("description",)),
    "parameters": (calls, ("description",)),
    "launch constant": (constants, ("config",)),
    "launch arithmetic": (operators, ("config",)),
    "launch name": (names, ("config",)),
    "torch-facing constant": (constants, ("torch",)),
    "torch-facing operator": (operators, ("torch",)),
    "torch-facing name": (names, ("torch",)),
    "torch-facing call": (calls, ("torch",)),
    "torch-facing statement": (statements, ("torch",)),
    "torch-facing branch": (branches, ("torch",)),
}
# the share of each in a port's edits
WEIGHTS = {
    "constant": 10, "index": 8, "offset": 6, "operator": 14, "name": 10, "call": 10, "statement": 8, "branch": 5,
    "launch argument": 4, "launch call": 2, "attribute": 4, "description": 2, "parameters": 2, "launch constant": 4,
    "launch arithmetic": 5, "launch name": 2, "torch-facing constant": 4, "torch-facing operator": 3,
    "torch-facing name": 4, "torch-facing call": 3, "torch-facing statement": 3, "torch-facing branch": 2,
}  # fmt: skip


def random_edits(text: str, label: str, count: int) -> list[RandomEdit]:
    """`count` different edits of a port, drawn by `label` and number; fewer where it has not so many."""
    places = Places(text)
    choices = {kind: _choices(places, kind) for kind in KINDS}
    kinds = [k for k in KINDS if choices[k]]
    if not kinds:
        return []
    found: list[RandomEdit] = []
    seen = {_tree(text)}
    for number in range(20 * count):
        if len(found) == count:
            break
        rng = random.Random(f"{label}/{number}")
        kind = rng.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        node, region, texts = rng.choice(choices[kind])
        new = rng.choice(texts)
        made = places.port.applied(Edit(node, new))
        tree = _tree(made)
        if tree and tree not in seen:  # neither broken nor the same
            seen.add(tree)
            line = node.lineno
            before, after = (t.splitlines()[line - 1].strip() for t in (text, made))
            found.append(RandomEdit(number, kind, region, line, before, after, made))
    return found


def _choices(places: Places, kind: str) -> list[tuple[ast.expr, str, Sequence[str]]]:
    change, regions = KINDS[kind]
    found: list[tuple[ast.expr, str, Sequence[str]]] = []
    for region in regions:
        for top, node in places.nodes(region):
            if isinstance(node, (ast.expr, ast.stmt)) and (texts := change(node, top, places)):
                found.append((node, region, texts))  # type: ignore[arg-type]
    return found


def _tree(text: str) -> str:
    """The syntax tree as text; "" where there is none."""
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return ""
