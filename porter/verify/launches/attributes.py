"""How a port's launch function launches: cooperative, in clusters, overlapping the kernel before, with what memory.

Read from the text of `.launch(...)`, for each instance: an attribute is a constant, or arithmetic over template values.
What cannot be read is refused, since the case's attributes would then be verified and the port's be run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from porter import codes
from porter.case.expressions import Value
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.syntax import module_tree
from porter.verify.launches.reading import Reading, Unreadable

_DYNAMIC = ("dyn_shared", "get_dyn_smem")  # what reaches memory that the launch has to ask for


@dataclass(frozen=True)
class LaunchAttributes:
    """Of one instance. `smem`: dynamic shared memory in bytes; None: what launch_config gives."""

    cooperative: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)
    use_pdl: bool = False
    smem: int | None = None
    line: int = 0


def attributes_of(text: str, values: Mapping[str, Value], path: str = "") -> LaunchAttributes:
    """The attributes of a port's launch at these template values.

    Raises PorterError PRT844 for a launch whose attributes are not known before it runs.
    """
    tree = module_tree(text)
    launch = _launch_call(tree, values)
    if launch is None:
        return LaunchAttributes()
    given = {k.arg: k.value for k in launch.keywords if k.arg}
    reading = Reading(tree)

    def value(name: str, default: Any) -> Any:
        node = given.get(name)
        if node is None:
            return default
        try:
            return reading.evaluate(node, values)
        except Unreadable:
            message = f"{name} of the launch is not known before it runs: `{ast.unparse(node)}`"
            help_ = "a constant, or arithmetic over template values"
            raise PorterError(
                Diagnostic(codes.UNVERIFIABLE_BRANCH, message, Span(path, node.lineno), help=help_)
            ) from None

    cluster = value("cluster", None)
    dims = (1, 1, 1) if cluster is None else _three(cluster)
    if dims is None or min(dims) < 1:
        message = f"the cluster of the launch is {cluster!r}, not one to three positive numbers"
        raise PorterError(Diagnostic(codes.UNVERIFIABLE_BRANCH, message, Span(path, given["cluster"].lineno)))
    smem: int | None = None
    if "smem" not in given and any(f"{name}(" in text for name in _DYNAMIC):
        smem = 0
    elif "smem" in given and not (isinstance(given["smem"], ast.Name) and given["smem"].id in ("smem_bytes", "smem")):
        asked = value("smem", None)
        smem = None if asked is None else int(asked)
    return LaunchAttributes(
        bool(value("cooperative", False)), dims, bool(value("use_pdl", False)), smem, launch.lineno
    )  # fmt: skip


def _three(values: Any) -> tuple[int, int, int] | None:
    found = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not 1 <= len(found) <= 3 or not all(isinstance(v, int) for v in found):
        return None
    padded = (*found, 1, 1, 1)
    return (int(padded[0]), int(padded[1]), int(padded[2]))


def _launch_call(tree: ast.Module, values: Mapping[str, Value]) -> ast.Call | None:
    """The call of `.launch` that this instance reaches: of alternatives that of the conditions which hold."""
    reading = Reading(tree)

    def in_body(body: list[ast.stmt]) -> ast.Call | None:
        for statement in body:
            found: ast.Call | None = None
            if isinstance(statement, ast.If):
                test = statement.test
                if isinstance(test, ast.Call) and ast.unparse(test.func).endswith("const_expr") and test.args:
                    test = test.args[0]
                try:
                    arms = [statement.body if reading.evaluate(test, values) else statement.orelse]
                except Unreadable:
                    arms = [statement.body, statement.orelse]
                calls = [c for c in map(in_body, arms) if c is not None]
                if len({ast.unparse(c) for c in calls}) > 1:
                    return calls[0] if _same_attributes(calls) else _unreadable(calls[0], statement.test)
                found = calls[0] if calls else None
            else:
                for node in ast.walk(statement):
                    method = node.func if isinstance(node, ast.Call) else None
                    if isinstance(method, ast.Attribute) and method.attr == "launch":
                        assert isinstance(node, ast.Call)
                        if isinstance(method.value, ast.Call):
                            return node
            if found is not None:
                return found
        return None

    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
            found = in_body(node.body)
            if found is not None:
                return found
    return None


def _same_attributes(calls: list[ast.Call]) -> bool:
    texts = {tuple(sorted((k.arg or "", ast.unparse(k.value)) for k in c.keywords)) for c in calls}
    return len(texts) == 1


def _unreadable(call: ast.Call, test: ast.expr) -> ast.Call:
    """The launch with an attribute that nobody can read, so that it is refused where it stands."""
    name = ast.Call(ast.Name("const_expr", ast.Load()), [test], [])
    keyword = ast.keyword("cooperative", ast.copy_location(name, test))
    changed = ast.Call(call.func, call.args, [*call.keywords, keyword])
    return ast.fix_missing_locations(ast.copy_location(changed, call))
