"""Can the port tell where it runs? What it reads when it is traced and when it is launched is a closed list.

A kernel is traced, and launch_config answers, from parameters, constants and the library's documented queries alone
(`runtime.sm_count()`, which the verifier varies). What differs from machine to machine or from run to run (devices,
clocks, hashes, addresses, the order of sets, the text of objects) would let a port be right where it is verified only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import Objection, device_nodes, dotted, host_functions, walk
from porter.verify.checks.honesty.vocabulary import words

HELP = "what a port does may depend on its arguments, its constants and runtime.sm_count()"
LAUNCH = "launch_config"
_ASKS = words(
    "is_available get_device_properties get_device_capability get_device_name device_count is_initialized"
    " get_arch_list is_current_stream_capturing is_compiling multi_processor_count HardwareInfo hardware_info"
    " get_smem_capacity_in_bytes target_version Arch GPUArch DeviceTarget arch_for arch_of_capability"
)
_TRACED = words("cutlass_type dtype DType hole HoleReached name_of torch_type")  # of runtime, in kernels
_LAUNCHING = _TRACED | {"sm_count"}  # in launch_config and what it calls
_IDENTITY = {
    "hash": "whose value changes from process to process",
    "id": "which is an address",
    "repr": "which shows addresses",
    "object": "whose only property is an address",
}
_ORDERED = words("len sorted min max sum any all isinstance")  # what makes of a set something without an order
_SPOKEN = words("print cute.printf cute.print_tensor printf")  # text that is shown, not decided by
_TEXT = words("startswith endswith count index split join strip find")


def check_machine(tree: ast.Module) -> Iterator[Objection]:
    """Questions about the machine or the process, by name; sets whose order shows; SM counts that are compared."""
    device = device_nodes(tree)
    launching = _launching(tree)
    host = {id(n) for f in host_functions(tree) for n in walk(f)}
    quiet = {id(n) for top in walk(tree) if _is_spoken(top) for n in walk(top)}
    bases = {id(b) for c in walk(tree) if isinstance(c, ast.ClassDef) for b in c.bases}
    annotations, objects = _annotations(tree), _objects(tree)
    for node in walk(tree):
        inside = id(node) in device or id(node) in launching
        place = "a kernel" if id(node) in device else LAUNCH
        if isinstance(node, ast.Attribute):
            yield from _attribute(node, inside, id(node) in device, id(node) in host or id(node) in launching, place)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in _IDENTITY and id(node) not in bases | annotations and not _is_own(tree, node.id):
                yield Objection(node.lineno, f"asks for {node.id}(), {_IDENTITY[node.id]}", HELP)
            elif node.id in _ASKS and _is_imported(tree, node.id):
                yield Objection(node.lineno, f"asks about the machine: {node.id}", HELP)
            elif node.id == "torch" and inside and id(node) not in annotations:
                yield Objection(node.lineno, f"asks torch in {place}: `{_around(tree, node)}`", HELP)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in _ASKS:
                    yield Objection(node.lineno, f"asks about the machine: {node.module}.{alias.name}", HELP)
        elif isinstance(node, ast.Assert) and any(isinstance(n, ast.NamedExpr) for n in walk(node)):
            yield Objection(node.lineno, "assigns in an assert, which python -O leaves out", HELP)
        elif inside and id(node) not in quiet and not all(_plain(v, objects) for v in _shown(node)):
            message = f"makes text of an object in {place}: `{ast.unparse(node)}`"
            line = getattr(node, "lineno", 1)
            yield Objection(line, message, "an object's text may show its address; texts are for messages")
    yield from _sets(tree)
    yield from _counted(tree)


def _shown(node: ast.AST) -> list[ast.expr]:
    """The values that an f-string or str() makes text of."""
    if isinstance(node, ast.JoinedStr):
        return [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
    return list(node.args) if isinstance(node, ast.Call) and dotted(node.func) == "str" else []


def _launching(tree: ast.Module) -> set[int]:
    """ids of the nodes of launch_config and of the functions it calls."""
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    todo = [functions[LAUNCH]] if LAUNCH in functions else []
    for function in todo:
        names = {n.id for n in walk(function) if isinstance(n, ast.Name)}
        todo += [functions[n] for n in names if n in functions and functions[n] not in todo]
    return {id(n) for function in todo for n in walk(function)}


def _attribute(node: ast.Attribute, inside: bool, device: bool, host: bool, place: str) -> Iterator[Objection]:
    name = dotted(node)
    if node.attr in _ASKS:
        yield Objection(node.lineno, f"asks about the machine: {name or node.attr}", HELP)
    elif name.startswith("runtime.") and name.count(".") == 1:
        if inside and node.attr not in (_TRACED if device else _LAUNCHING):
            yield Objection(node.lineno, f"asks {name} in {place}", HELP)
        elif not host and node.attr in ("sm_count", "device_index", "arch_for"):
            yield Objection(node.lineno, f"asks {name} when it is imported", HELP)


def _is_own(tree: ast.Module, name: str) -> bool:
    """Whether the port gives the name to something of its own."""
    return any(
        (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load))
        or (isinstance(n, ast.arg) and n.arg == name)
        or (isinstance(n, ast.FunctionDef) and n.name == name)
        for n in walk(tree)
    )


def _is_imported(tree: ast.Module, name: str) -> bool:
    return any(
        (a.asname or a.name) == name for n in walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names
    )  # fmt: skip


def _annotations(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in walk(tree):
        part: ast.expr | None = None
        if isinstance(node, ast.arg | ast.AnnAssign):
            part = node.annotation
        elif isinstance(node, ast.FunctionDef):
            part = node.returns
        if part is not None:
            found |= {id(n) for n in walk(part)}
    return found


def _around(tree: ast.Module, name: ast.Name) -> str:
    """The dotted name that starts with this one."""
    longest = name.id
    for node in walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and dotted(node)
            and (node.lineno, node.col_offset)
            == (
                name.lineno,
                name.col_offset,
            )
        ):
            longest = max(longest, dotted(node), key=len)
    return longest


def _is_spoken(node: ast.AST) -> bool:
    """What is raised, asserted or printed is for people."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        return name in _SPOKEN or name.endswith(("Error", ".inline_asm", ".inline_ptx")) or name.startswith("lib.")
    return False


def _plain(node: ast.expr, objects: frozenset[str]) -> bool:
    """A number or a text by all that can be seen: constants, names of no object of the module, arithmetic on such."""
    return all(
        isinstance(n, ast.Constant | ast.BinOp | ast.operator | ast.UnaryOp | ast.unaryop | ast.expr_context)
        or (isinstance(n, ast.Name) and n.id not in objects)
        for n in walk(node)
    )


def _objects(tree: ast.Module) -> frozenset[str]:
    """Names of functions, classes, imports, pointers and tensors: their text is not theirs to choose."""
    found = {n.name for n in walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found |= {(a.asname or a.name).split(".")[0] for n in walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)
              for a in n.names}  # fmt: skip
    found |= {n.arg for n in walk(tree) if isinstance(n, ast.arg) and n.annotation is not None
              and re.search("Pointer|Tensor", ast.unparse(n.annotation))}  # fmt: skip
    return frozenset(found)


def _sets(tree: ast.Module) -> Iterator[Objection]:
    """Sets may be asked for members; what walks through one sees an order that changes with the process."""
    named = {
        t.id for n in walk(tree) if isinstance(n, ast.Assign) and _is_set(n.value, set())
        for t in n.targets if isinstance(t, ast.Name)
    }  # fmt: skip
    allowed: set[int] = set()
    for node in walk(tree):
        if isinstance(node, ast.Compare):
            allowed |= {id(c) for c in node.comparators}
        elif isinstance(node, ast.Call) and dotted(node.func) in (*_ORDERED, "set", "frozenset"):
            allowed |= {id(a) for a in node.args}
        elif isinstance(node, ast.BinOp):
            allowed |= {id(node.left), id(node.right)}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            allowed.add(id(node.value))
    for node in walk(tree):
        if isinstance(node, ast.expr) and _is_set(node, named) and id(node) not in allowed:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                continue
            message = f"the order of a set shows: `{ast.unparse(node)}`"
            yield Objection(node.lineno, message, "ask a set for members only; a tuple or sorted() has an order")


def _is_set(node: ast.expr, named: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        return dotted(node.func) in ("set", "frozenset")
    return isinstance(node, ast.Name) and node.id in named


def _counted(tree: ast.Module) -> Iterator[Objection]:
    """The number of multiprocessors may scale a grid; a test of it tells one machine from another."""
    for function in (n for n in walk(tree) if isinstance(n, ast.FunctionDef)):
        names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs) if a.arg == "sm_count"}
        while True:
            more = set(names)
            for node in walk(function):
                targets: list[ast.expr] = []
                value: ast.expr | None = None
                if isinstance(node, ast.Assign):
                    targets, value = node.targets, node.value
                elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                    targets, value = [node.target], node.value
                if value is not None and _asks(value, more):
                    more |= {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)}
            if more == names:
                break
            names = more
        for node in walk(function):
            test: ast.expr | None = None
            if isinstance(node, ast.Compare):
                test = node
            elif isinstance(node, ast.If | ast.IfExp | ast.While):
                test = node.test
            elif isinstance(node, ast.Subscript):
                test = node.slice
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift | ast.BitAnd | ast.BitXor | ast.Mod):
                test = node
            if test is not None and _direct(test, names):
                help_ = "scale with the number of multiprocessors, do not test it"
                yield Objection(test.lineno, f"asks which machine it runs on: `{ast.unparse(test)}`", help_)


def _asks(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Call) and dotted(n.func).endswith("sm_count")) or (isinstance(n, ast.Name) and n.id in names)
        for n in walk(node)
    )


def _direct(test: ast.expr, names: set[str]) -> bool:
    """Whether a test is about the number itself; one of sizes beside it, as `rows < 4 * sms`, is about sizes."""
    if not _asks(test, names):
        return False
    known = names | {"runtime", "sm_count", "min", "max", "int", "bool", "abs", "len", "range"}
    others = {n.id for n in walk(test) if isinstance(n, ast.Name)} - known
    return not others
