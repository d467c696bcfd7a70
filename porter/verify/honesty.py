"""Does the port do the work itself? A static look at its syntax tree; nothing of it is imported or run.

It must contain a CuTeDSL kernel that a `@cute.jit` function launches, import nothing beyond an allow-list, compute
nothing with torch, catch nothing, remember nothing between calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from porter.model import Diagnostic
from porter.source import Span

CODE = "PRT830"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IMPORTS = (
    "cutlass", "torch", "math", "typing", "collections.abc", "dataclasses", "enum", "functools", "operator",
    "porter.corpus", "cuda.bindings.driver", "__future__",
)  # fmt: skip
# What a launcher needs of torch: types, allocation, streams and devices, registration. Nothing here computes.
TORCH_NAMES = _words(
    "Tensor dtype device Size Stream empty empty_like empty_strided zeros zeros_like full full_like cuda library Tag"
    " bfloat16 float16 float32 float64 half float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
    " float8_e4m3fn float8_e5m2 float8_e8m0fnu float4_e2m1fn_x2 iinfo finfo get_device_module compiler ops _check"
    " check_is_size promote_types result_type"
)
TORCH_CUDA_NAMES = _words(
    "current_stream current_device device Stream get_device_properties get_device_capability is_available stream"
    " is_current_stream_capturing"
)
# Methods of a tensor that look at it or make another view of the same memory.
TENSOR_METHODS = _words(
    "data_ptr size stride dim numel element_size is_contiguous view reshape flatten unflatten squeeze unsqueeze select"
    " narrow expand new_empty new_zeros new_full untyped_storage storage_offset get_device record_stream ndimension"
    " movedim permute transpose zero_ fill_ as_strided unbind chunk split is_floating_point nelement"
)
BUILTINS = _words(
    "eval exec compile __import__ open globals locals vars setattr delattr input breakpoint getattr memoryview"
)
REFLECTION = _words("__dict__ __globals__ __class__ __code__ __subclasses__ __builtins__")


def check_honesty(text: str, path: Path) -> list[Diagnostic]:
    """Everything that stands against the port, each a diagnostic at its line; empty when it is honest.

    A file that is not Python gives one diagnostic.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [Diagnostic(CODE, f"the port is not Python: {error.msg}", Span(str(path), error.lineno or 1))]
    found = [*_imports(tree), *_kernels(tree), *_statements(tree), *_torch(tree)]
    unique = dict.fromkeys(found)
    return [
        Diagnostic(CODE, message, Span(str(path), line), help=help)
        for line, message, help in sorted(unique, key=lambda f: (f[0], f[1]))
    ]


_Found = tuple[int, str, str]


def _imports(tree: ast.Module) -> Iterator[_Found]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "imports a neighbouring file", "a port is one file"
                continue
            yield from _import(node.module or "", node.lineno)
            if any(a.name == "*" for a in node.names):
                yield node.lineno, f"`from {node.module} import *` hides what is used", "import names one by one"


def _import(name: str, line: int) -> Iterator[_Found]:
    if not any(name == allowed or name.startswith(allowed + ".") for allowed in IMPORTS):
        yield line, f"imports {name}", f"a port may import {', '.join(IMPORTS)}"
    if name.startswith("torch.nn"):
        yield line, f"imports {name}, which computes", "the kernel has to compute the result"


def _dotted(node: ast.AST) -> str:
    """`cute.kernel` for such an attribute, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))


def _decorated(tree: ast.Module, which: str) -> dict[str, ast.FunctionDef]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if _dotted(target).split(".")[-1] == which and "cute" in _dotted(target):
                    found[node.name] = node
    return found


def _kernels(tree: ast.Module) -> Iterator[_Found]:
    kernels = _decorated(tree, "kernel")
    jits = _decorated(tree, "jit")
    if not kernels:
        yield 1, "no @cute.kernel in the port", "the work has to be done by a CuTeDSL kernel"
        return
    launched: dict[str, set[str]] = {}  # jit function -> kernels it launches
    for name, function in jits.items():
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch":
                made = node.func.value
                if isinstance(made, ast.Call):
                    launched.setdefault(name, set()).add(_dotted(made.func).split(".")[-1])
    for name, node in kernels.items():
        if not any(name in targets for targets in launched.values()):
            yield node.lineno, f"the kernel {name} is never launched", "launch it from a @cute.jit function"
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for name in launched:
        if name not in used:
            yield jits[name].lineno, f"nothing uses the launch function {name}", "give it to runtime.Kernel(launch=...)"


def _statements(tree: ast.Module) -> Iterator[_Found]:
    kernels = _decorated(tree, "kernel") | _decorated(tree, "jit")
    device = {id(n) for function in kernels.values() for n in ast.walk(function)}
    module_names = {t.id for s in tree.body for t in _targets(s)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.TryStar):
            yield node.lineno, "catches exceptions: a failure must not fall back to something else", "let it raise"
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, "keeps state between calls", "a port remembers nothing but its compiled kernel"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            if not (node.func.id == "getattr" and id(node) in device):
                yield node.lineno, f"calls {node.func.id}()", "a port is plain code that can be read"
        elif isinstance(node, ast.Name) and node.id.startswith("__") and node.id != "__all__":
            yield node.lineno, f"uses {node.id}", "a port is plain code that can be read"
        elif isinstance(node, ast.Attribute) and node.attr in REFLECTION:
            yield node.lineno, f"uses {node.attr}", "a port is plain code that can be read"
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and id(n) not in device]:
        tensors = _tensor_arguments(function)
        for decorator in function.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if tensors and _dotted(target).split(".")[-1] in ("cache", "lru_cache", "cached"):
                yield decorator.lineno, f"{function.name} remembers results of earlier calls", "remove the cache"
        for node in ast.walk(function):
            kept = _stored(node)
            if isinstance(kept, ast.Name) and kept.id in module_names:
                yield kept.lineno, f"stores into the module's {kept.id}", "keep nothing between calls"


def _stored(node: ast.AST) -> ast.expr | None:
    """`x` of an assignment to `x[...]`."""
    return node.value if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else None


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    nodes: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        nodes = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        nodes = [statement.target]
    for node in nodes:
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Name))


def _tensor_arguments(function: ast.FunctionDef) -> set[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {a.arg for a in arguments if a.annotation is not None and "Tensor" in ast.unparse(a.annotation)
            and "cute" not in ast.unparse(a.annotation)}  # fmt: skip


_HELP = "the kernel has to compute the result; torch may allocate and ask for streams"


def _torch(tree: ast.Module) -> Iterator[_Found]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts = _dotted(node).split(".")
            allowed = {("torch",): TORCH_NAMES, ("torch", "cuda"): TORCH_CUDA_NAMES}.get(tuple(parts[:-1]))
            if (allowed is not None and parts[-1] not in allowed) or parts[:2] == ["torch", "ops"]:
                yield node.lineno, f"uses {'.'.join(parts)}", _HELP
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                known = TORCH_NAMES if node.module == "torch" else TORCH_CUDA_NAMES | {"custom_op", "register_fake"}
                if alias.name not in known:
                    yield node.lineno, f"imports torch's {alias.name}", _HELP
        elif isinstance(node, ast.FunctionDef):
            yield from _tensor_operations(node)


def _tensor_operations(function: ast.FunctionDef) -> Iterator[_Found]:
    """Arithmetic and computing methods on tensors: arguments annotated so, views of them, fresh allocations."""
    tensors = _tensor_arguments(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_tensor(node.value, tensors):
            tensors |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    for node in ast.walk(function):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target]
        if any(_is_tensor(o, tensors) for o in operands):
            yield node.lineno, f"computes with tensors: `{ast.unparse(node)}`", _HELP  # type: ignore[attr-defined]
        kept = _stored(node)
        if kept is not None and _is_tensor(kept, tensors):
            yield kept.lineno, f"writes into a tensor: `{ast.unparse(node)}`", _HELP
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func
            if _is_tensor(method.value, tensors) and method.attr not in TENSOR_METHODS:
                yield node.lineno, f"calls .{method.attr}() of a tensor", _HELP


_SAME_TENSOR = _words(
    "view reshape flatten unflatten squeeze unsqueeze select narrow expand movedim permute transpose as_strided"
    " new_empty new_zeros new_full"
)


def _is_tensor(node: ast.AST, tensors: set[str]) -> bool:
    """Conservatively: a tensor argument, a view of one, or a fresh torch allocation."""
    if isinstance(node, ast.Name):
        return node.id in tensors
    if isinstance(node, ast.Subscript):
        return _is_tensor(node.value, tensors)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "data") and _is_tensor(node.value, tensors)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if _dotted(node.func).startswith(("torch.empty", "torch.zeros", "torch.full")):
            return True
        return node.func.attr in _SAME_TENSOR and _is_tensor(node.func.value, tensors)
    if isinstance(node, ast.IfExp):
        return _is_tensor(node.body, tensors) or _is_tensor(node.orelse, tensors)
    return False
