"""Does torch, or Python over tensors, compute anything? Host code may look at tensors, allocate them and launch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import WORK, Objection, dotted, host_functions, walk
from porter.verify.checks.honesty.vocabulary import SIZES, TAKES_TENSORS, TENSOR_METHODS, words

_SAME_TENSOR = words(
    "view reshape flatten unflatten squeeze unsqueeze select narrow expand movedim permute transpose as_strided"
    " new_empty new_zeros new_full"
)
_FRESH = ("torch.empty", "torch.zeros", "torch.full")


def check_tensors(tree: ast.Module) -> Iterator[Objection]:
    """Torch's operators, arithmetic and computing methods on tensors, stores into them, streams of its own."""
    host = {id(f) for f in host_functions(tree)}
    pointers = _pointer_positions(tree)
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node).startswith("torch.ops."):
            yield Objection(node.lineno, f"uses {dotted(node)}", WORK)
        elif isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in ("Stream", "stream", "ExternalStream"):
            yield Objection(node.lineno, f"works on another stream: `{ast.unparse(node)}`", "use the current one")
        elif isinstance(node, ast.FunctionDef) and id(node) in host:
            yield from _operations(node, pointers, {n.name for n in walk(tree) if isinstance(n, ast.FunctionDef)})


def _pointer_positions(tree: ast.Module) -> list[int]:
    """Positions of pointers among the parameters of the Kernel, as it is written down in the port."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == "Kernel":
            for keyword in node.keywords:
                if keyword.arg == "params" and isinstance(keyword.value, ast.Tuple | ast.List):
                    names = [dotted(p.func) if isinstance(p, ast.Call) else "" for p in keyword.value.elts]
                    return [n for n, name in enumerate(names) if name.split(".")[-1] == "Ptr"]
    return []


def _operations(function: ast.FunctionDef, pointers: list[int], own: set[str]) -> Iterator[Objection]:
    tensors = _tensors(function, pointers)
    for node in walk(function):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            operands = [node.operand]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target, node.value]
        elif isinstance(node, ast.Compare) and not all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
            operands = [node.left, *node.comparators]
        if any(_mentions(o, tensors) for o in operands):
            yield Objection(node.lineno, f"computes with tensors: `{ast.unparse(node)}`", WORK)  # type: ignore[attr-defined]
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _mentions(node.value, tensors):
            yield Objection(node.lineno, f"writes into a tensor: `{ast.unparse(node)}`", WORK)
        if isinstance(node, ast.Call) and any(_mentions(a, tensors) for a in (*node.args, *node.keywords)):
            name = dotted(node.func)
            given = name in TAKES_TENSORS | own or name.split(".")[0] in ("runtime", "KERNEL", "torch")
            if not given and not name.endswith(("Error", ".append", ".extend")):
                yield Objection(node.lineno, f"computes with tensors: `{ast.unparse(node)}`", WORK)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func
            if method.attr not in TENSOR_METHODS and _is_tensor(method.value, tensors):
                yield Objection(node.lineno, f"calls .{method.attr}() of a tensor", WORK)


def _tensors(function: ast.FunctionDef, pointers: list[int]) -> set[str]:
    """Names that are, or may hold, tensors: by annotation, by what is asked of them, by where they are passed."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = {a.arg for a in arguments}
    annotations = {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation is not None}
    found = {name for name, text in annotations.items() if "Tensor" in text and "cute" not in text}
    for node in walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in SIZES | _SAME_TENSOR:
            found |= {node.value.id} & names
        elif isinstance(node, ast.Call) and dotted(node.func) in ("runtime.check", "runtime.aligned"):
            found |= {a.id for a in node.args[:2] if isinstance(a, ast.Name)} & names
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(".launch") and len(node.args) >= 2:
            found |= _passed(function, node.args[1], pointers) & names
    while True:  # through assignments, loops and comprehensions
        more = set(found)
        for node in walk(function):
            target: ast.expr | None = None
            values: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                target, values = ast.Tuple(node.targets, ast.Store()), [node.value]
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
                target, values = node.target, [node.value]
            elif isinstance(node, ast.For | ast.comprehension):
                target, values = node.target, [node.iter]
            if target is not None and any(_mentions(v, more) for v in values):
                more |= {n.id for n in walk(target) if isinstance(n, ast.Name)}
        if more == found:
            return found
        found = more


def _passed(function: ast.FunctionDef, args: ast.expr, pointers: list[int]) -> set[str]:
    """Names at the pointers' places of a launch, whose arguments are a tuple there or a name given to one before."""
    tuples = [args]
    if isinstance(args, ast.Name):
        tuples = [
            n.value
            for n in walk(function)
            if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == args.id for t in n.targets)
        ]
    elements = [e.elts[n] for e in tuples if isinstance(e, ast.Tuple | ast.List) for n in pointers if n < len(e.elts)]
    return {n.id for e in elements for n in walk(e) if isinstance(n, ast.Name)}


def _mentions(node: ast.AST, tensors: set[str]) -> bool:
    """Whether a value may be or hold one of the tensors: sizes, dtypes and questions about them do not."""
    if isinstance(node, ast.Name):
        return node.id in tensors
    if isinstance(node, ast.Attribute) and node.attr in SIZES:
        return False
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if name.startswith("runtime.") or name in ("len", "isinstance", "launch_config", "str", "int"):
            return False
        if name.startswith(_FRESH):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in SIZES:
            return False
    if isinstance(node, ast.Compare):
        return False  # has a finding of its own where it compares tensors
    return any(_mentions(child, tensors) for child in ast.iter_child_nodes(node))


def _is_tensor(node: ast.AST, tensors: set[str]) -> bool:
    """A tensor itself, or a view of one: what methods are looked at for."""
    if isinstance(node, ast.Name):
        return node.id in tensors
    if isinstance(node, ast.Subscript):
        return _is_tensor(node.value, tensors)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "data") and _is_tensor(node.value, tensors)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if dotted(node.func).startswith(_FRESH):
            return True
        return node.func.attr in _SAME_TENSOR and _is_tensor(node.func.value, tensors)
    if isinstance(node, ast.IfExp):
        return _is_tensor(node.body, tensors) or _is_tensor(node.orelse, tensors)
    return False
