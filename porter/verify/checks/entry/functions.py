"""The torch-facing functions of a port, and which operand of the case each of their parameters is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from porter.case import expressions
from porter.case.expressions import ExprError
from porter.case.reader import Case
from porter.emit.spelling import parameter
from porter.model import KernelInfo
from porter.syntax import module_tree
from porter.verify.checks.honesty.objection import dotted, host_functions, walk

Kind = str  # buffer, scalar, size, template


@dataclass(frozen=True)
class Parameter:
    """A parameter of a torch-facing function: the operand that it takes, and what kind of thing that is."""

    name: str
    operand: str
    kind: Kind


@dataclass(frozen=True)
class TorchFacing:
    """A function that launches the kernel when it is called. `unknown`: required parameters that name no operand."""

    name: str
    line: int
    parameters: tuple[Parameter, ...]
    unknown: tuple[str, ...]
    constants: frozenset[int]  # whole numbers in it and in the functions that it calls

    def takes(self, operand: str) -> bool:
        return any(p.operand == operand for p in self.parameters)


def launches_somewhere(text: str) -> bool:
    """Whether anything in the port launches KERNEL."""
    return any(isinstance(n, ast.Attribute) and dotted(n) == "KERNEL.launch" for n in walk(module_tree(text)))


def launching_nothing(text: str) -> list[ast.FunctionDef]:
    """The public functions of the host of a port that launches KERNEL nowhere: who calls one gets no result."""
    tree = module_tree(text)
    host = {id(f) for f in host_functions(tree)}
    top = [n for n in tree.body if isinstance(n, ast.FunctionDef) and id(n) in host]
    return [] if launches_somewhere(text) else [f for f in top if f.name != "launch_config" and f.name[0] != "_"]


def torch_facing(text: str, case: Case, info: KernelInfo) -> list[TorchFacing]:
    """The functions of a port that launch, directly or through others: those that no other one calls, and among the
    rest the public ones whose parameters are all known."""
    tree = module_tree(text)
    defined = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    host = {id(f) for f in host_functions(tree)}
    own = {n: f for n, f in defined.items() if id(f) in host and n != "launch_config"}
    uses = {n: _reached(f, own) for n, f in own.items()}
    launching = {n for n, reached in uses.items() if any(_launches(own[r]) for r in {n, *reached})}
    called = {r for n in launching for r in uses[n] if r != n}
    found = []
    for name in own:
        if name not in launching:
            continue
        nodes = [own[name], *(own[r] for r in uses[name]), *(defined[n] for n in ("launch_config",) if n in defined)]
        function = _read(own[name], nodes, case, info)
        if name not in called or (not name.startswith("_") and not function.unknown):
            found.append(function)
    return found


def _launches(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Attribute) and dotted(n) == "KERNEL.launch" for n in walk(function))


def _reached(function: ast.FunctionDef, own: Mapping[str, ast.FunctionDef]) -> set[str]:
    found: set[str] = set()
    todo = [function]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, ast.Name) and node.id in own and node.id not in found:
                found.add(node.id)
                todo.append(own[node.id])
    return found


def _read(function: ast.FunctionDef, nodes: list[ast.FunctionDef], case: Case, info: KernelInfo) -> TorchFacing:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    required = [a.arg for a in positional[:first_default]]
    required += [a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    every = [a.arg for a in (*positional, *arguments.kwonlyargs)]
    kinds = _kinds(case, info)
    parameters = [Parameter(n, *found) for n in every if (found := _operand(n, kinds)) is not None]
    named = {p.name for p in parameters}
    unknown = [n for n in required if n not in named]
    unknown += [a.arg for a in (arguments.vararg,) if a is not None] + [a.arg for a in arguments.posonlyargs]
    if unknown and set(unknown) <= {a.arg for a in arguments.args}:
        by_place = _by_place(unknown, {p.operand for p in parameters}, case, info)
        parameters, unknown = [*parameters, *by_place], [n for n in unknown if n not in {p.name for p in by_place}]
    numbers = frozenset(v for n in nodes for c in walk(n) if (v := _whole(c)) is not None)
    return TorchFacing(function.name, function.lineno, tuple(parameters), tuple(unknown), numbers)


def _whole(node: ast.AST) -> int | None:
    """The whole number above 1 that a node is, written down or as arithmetic: `4096`, `1 << 20`."""
    if isinstance(node, ast.Constant):
        value: object = node.value
    elif isinstance(node, ast.BinOp) and not any(isinstance(n, ast.Name | ast.Call) for n in walk(node)):
        try:
            value = expressions.evaluate(ast.unparse(node), {})
        except ExprError:
            return None
    else:
        return None
    return value if type(value) is int and value > 1 else None


def _kinds(case: Case, info: KernelInfo) -> dict[str, Kind]:
    """Operands by name. A scalar or a buffer goes before a size, and that before a template parameter."""
    found: dict[str, Kind] = {t.name: "template" for t in info.template_params}
    found |= {n: "size" for n, _ in case.sizes}
    found |= {n: "scalar" for n, _ in case.scalars}
    return found | {b.name: "buffer" for b in case.buffers}


def _operand(name: str, kinds: Mapping[str, Kind]) -> tuple[str, Kind] | None:
    """The operand that a parameter's name says; with an underscore, where Python or a port needs one."""
    own = next((k for k in kinds if parameter(k) == name), name)
    for candidate in (name, own, name.rstrip("_"), name.lstrip("_")):
        if candidate in kinds:
            return candidate, kinds[candidate]
    return None


def _by_place(unknown: list[str], taken: set[str], case: Case, info: KernelInfo) -> list[Parameter]:
    """Parameters with names of their own stand for what is left of the kernel's, in order, if there are as many."""
    buffers = {b.name for b in case.buffers}
    numbers = {n for n, v in case.scalars if is_given(case, n)}
    left = [p.name for p in info.params if p.name not in taken and p.name in buffers | numbers]
    if len(left) != len(unknown):
        left = [n for n in left if n in buffers]
    if len(left) != len(unknown):
        return []
    return [Parameter(n, o, "buffer" if o in buffers else "scalar") for n, o in zip(unknown, left, strict=True)]


def is_given(case: Case, scalar: str) -> bool:
    """Whether nothing but the caller knows a scalar: the case has a number for it, or several."""
    texts = dict(case.scalars)[scalar]
    strides = {str(s).strip() for b in case.buffers for s in b.strides or ()}
    return scalar not in strides and all(not expressions.names_in(t) for t in texts)
