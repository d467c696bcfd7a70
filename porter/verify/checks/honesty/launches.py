"""Is what is verified what is launched? One kernel, launched once by the launch function with its own arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import Objection, decorated, device_nodes, dotted, host_functions, walk
from porter.verify.checks.honesty.vocabulary import words

_ONLY_FIRST = "the verifier runs one kernel: the one that KERNEL launches"
_GRID = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "smem_bytes")
# What a launch function may say besides: none of it changes what is computed.
_LAUNCH = words(
    "grid block smem stream cluster cooperative use_pdl min_blocks_per_mp max_number_threads preferred_smem_carveout"
)


def check_launches(tree: ast.Module) -> Iterator[Objection]:
    """Kernels that nothing launches, several of them, launch functions that do more or other than launch."""
    kernels = decorated(tree, "kernel")
    jits = decorated(tree, "jit")
    if not kernels:
        yield Objection(1, "no @cute.kernel in the port", "the work has to be done by a CuTeDSL kernel")
        return
    launched: dict[str, set[str]] = {}  # jit function -> kernels it launches
    for name, function in jits.items():
        for made, _ in _launches(function):
            launched.setdefault(name, set()).add(dotted(made.func).split(".")[-1])
    for name, node in kernels.items():
        if not any(name in targets for targets in launched.values()):
            help = "launch it from a @cute.jit function"
            yield Objection(node.lineno, f"the kernel {name} is never launched", help)
    used = {n.id for n in walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for name in launched:
        function = jits[name]
        if name not in used:
            help = "give it to runtime.Kernel(launch=...)"
            yield Objection(function.lineno, f"nothing uses the launch function {name}", help)
        yield from _launch_function(function, tree, kernels, jits)
    yield from _kernel_objects(tree)
    for host in host_functions(tree):
        yield from _returns_before_launch(host)


def _launches(function: ast.FunctionDef) -> Iterator[tuple[ast.Call, ast.Call]]:
    """(the call that makes a launcher, the call of its .launch)."""
    for node in walk(function):
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr == "launch" and isinstance(method.value, ast.Call):
            assert isinstance(node, ast.Call)
            yield method.value, node


def _launch_function(
    function: ast.FunctionDef, tree: ast.Module, kernels: dict[str, ast.FunctionDef], jits: dict[str, ast.FunctionDef]
) -> Iterator[Objection]:
    launches = list(_launches(function))
    if len(launches) > 1 and not _alternatives(function):
        yield Objection(launches[1][1].lineno, f"{function.name} launches more than one kernel", _ONLY_FIRST)
    own = [a.arg for a in function.args.args]
    for made, launch in launches:
        names = [a.id if isinstance(a, ast.Name) else "" for a in made.args]
        kernel = kernels.get(dotted(made.func))
        arguments = [n for n in own if n not in _GRID and n != "stream" and n != "smem"]
        if kernel is None or made.keywords or (set(_GRID[:6]) <= set(own) and names != arguments):
            help = "hand the launch function's own arguments on, in order"
            yield Objection(
                made.lineno, f"{function.name} changes what the kernel is given: `{ast.unparse(made)}`", help
            )
        given = {k.arg: k.value for k in launch.keywords}
        if unknown := [k or "**" for k in given if k not in _LAUNCH]:
            yield Objection(launch.lineno, f"{function.name} launches with {unknown[0]}", _ONLY_FIRST)
        stream = given.get("stream")
        if not isinstance(stream, ast.Name) or stream.id not in own:
            help = "launch on the stream that the launch function is given"
            yield Objection(launch.lineno, f"{function.name} works on another stream", help)
        for key in ("grid", "block"):
            launched = [n.id for n in walk(given[key]) if isinstance(n, ast.Name)] if key in given else []
            asked = [n for n in _GRID if n.startswith(key)]
            if set(asked) <= set(own) and (launched != asked or not isinstance(given[key], ast.Tuple | ast.List)):
                help = "launch the grid and the block that the launch function is given"
                yield Objection(launch.lineno, f"{function.name} changes the {key} of the launch", help)
    yield from _host_code(function, tree, kernels, jits)


def _alternatives(function: ast.FunctionDef) -> bool:
    """Whether the launches stand in different arms of compile-time conditions: an instance has one of them."""

    def most(body: list[ast.stmt]) -> int:
        total = 0
        for statement in body:
            if isinstance(statement, ast.If) and "const_expr" in ast.unparse(statement.test):
                total += max(most(statement.body), most(statement.orelse))
            else:
                total += sum(
                    isinstance(n, ast.Attribute) and n.attr == "launch" for n in walk(statement)
                )  # fmt: skip
        return total

    return most(function.body) <= 1


def _host_code(
    function: ast.FunctionDef, tree: ast.Module, kernels: dict[str, ast.FunctionDef], jits: dict[str, ast.FunctionDef]
) -> Iterator[Objection]:
    """A launch function becomes code of the host: instructions written by hand there would run on the CPU."""
    todo, seen = [function], {function.name}
    functions = {n.name: n for n in walk(tree) if isinstance(n, ast.FunctionDef)}
    dialects = {
        a.asname or a.name
        for n in walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("cutlass._mlir")
        for a in n.names
    }  # fmt: skip
    while todo:
        at = todo.pop()
        for node in walk(at):
            if isinstance(node, ast.Attribute):
                text = dotted(node)
                if text.startswith(("lib.", "cute.arch.", "cutlass.cute.arch.")) or node.attr == "inline_ptx":
                    help = "only kernels may use device instructions"
                    yield Objection(node.lineno, f"{function.name} runs {text or node.attr} on the host", help)
            elif isinstance(node, ast.Name) and node.id in dialects:
                help = "only kernels may use device instructions"
                yield Objection(node.lineno, f"{function.name} runs {node.id} on the host", help)
            elif isinstance(node, ast.Name) and node.id in functions and node.id not in seen | kernels.keys():
                seen.add(node.id)
                todo.append(jits.get(node.id) or functions[node.id])


def _kernel_objects(tree: ast.Module) -> Iterator[Objection]:
    """One runtime.Kernel, named KERNEL, is what the verifier compiles; nothing else may be launched."""
    named = {
        id(s.value) for s in tree.body
        if isinstance(s, ast.Assign) and [dotted(t) for t in s.targets] == ["KERNEL"]
    }  # fmt: skip
    device = device_nodes(tree)
    for node in walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in ("runtime.Kernel", "Kernel") and id(node) not in named:
            yield Objection(node.lineno, "makes a Kernel other than KERNEL, which is not verified", _ONLY_FIRST)
        if not isinstance(node, ast.Attribute) or id(node) in device or dotted(node) == f"KERNEL.{node.attr}":
            continue
        if node.attr in ("launch", "prepare", "compile"):
            yield Objection(node.lineno, f"launches `{ast.unparse(node.value)}`, which is not verified", _ONLY_FIRST)
    stores = [n for n in walk(tree) if isinstance(n, ast.Name) and n.id == "KERNEL" and isinstance(n.ctx, ast.Store)]
    for again in sorted(stores, key=lambda n: n.lineno)[1:]:
        yield Objection(again.lineno, "gives KERNEL another value", _ONLY_FIRST)


def _returns_before_launch(function: ast.FunctionDef) -> Iterator[Objection]:
    """A way round the launch: a return that is not about an empty problem, above the launch."""
    lines = [n.lineno for n in walk(function) if isinstance(n, ast.Attribute) and dotted(n) == "KERNEL.launch"]
    if not lines:
        return
    for node in walk(function):
        if not isinstance(node, ast.If) or node.lineno > max(lines) or _about_nothing(node.test):
            continue
        if any(isinstance(s, ast.Return) for s in node.body):
            help = "every call must launch; only an empty problem may not"
            yield Objection(node.lineno, f"returns without a launch when `{ast.unparse(node.test)}`", help)
    for at, statement in enumerate(function.body):
        if isinstance(statement, ast.Return) and statement.lineno < max(lines) and at + 1 < len(function.body):
            yield Objection(statement.lineno, "returns without a launch", "every call must launch")


def _about_nothing(test: ast.expr) -> bool:
    """`x.numel() == 0`, `0 in (a, b)`, `not n`, and the like."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return all(_about_nothing(v) for v in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not any(isinstance(n, ast.Compare | ast.BoolOp) for n in walk(test.operand))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    left, right, op = test.left, test.comparators[0], test.ops[0]
    zero = [isinstance(n, ast.Constant) and n.value == 0 for n in (left, right)]
    return (
        (isinstance(op, ast.Eq) and any(zero))
        or (isinstance(op, ast.In) and zero[0])
        or (isinstance(op, ast.LtE) and zero[1])
    )


def offered_instances(tree: ast.Module) -> list[tuple[int, dict[str, object]]]:
    """(line, template values) of the instances that the torch-facing function chooses from, where written out."""
    found = []
    for node in walk(tree):
        if isinstance(node, ast.Assign) and [dotted(t) for t in node.targets] == ["constexprs"]:
            table = node.value
            if isinstance(table, ast.Dict) and all(isinstance(v, ast.Constant) for v in (*table.keys, *table.values)):
                found.append((node.lineno, ast.literal_eval(table)))
    return found
