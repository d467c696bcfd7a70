"""The launch of a port, as the agent may change it: grid, block and shared memory as expressions over sizes.

Three lines of a port are written anew: the return of `launch_config`, its parameters, and the names that the entry
hands to it. The expressions are those of case files, without equality: a launch that singles out sizes is none. Whether
the launch is right the verifier says, over every way that it can take (porter/verify/launches/ways.py).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from porter.agents.regions import Draft, EditRefused
from porter.case import expressions
from porter.case.expressions import ExprError
from porter.source import lines_of
from porter.syntax import expression_tree, module_tree

FUNCTION = "launch_config"
REGION = "launch"
MOST_THREADS = 1024  # of a block, on every architecture
MOST_NUMBER = 1 << 24
MOST_CHARACTERS = 400  # of an expression
_FUNCTIONS = ("min", "max", "ceil_div", "round_up", "sm_count")
_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub, ast.And, ast.Or, ast.Not, ast.Lt, ast.LtE, ast.Gt,
    ast.GtE, ast.Load,
)  # fmt: skip
_NODES = (ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, *_OPERATORS)


@dataclass(frozen=True)
class Launch:
    """Where the launch of a port stands: lines from 1. `names` are what the expressions may use."""

    head: int
    body: int  # of the return
    call: int  # of launch_config, in the entry
    parameters: tuple[str, ...]
    passed: tuple[str, ...]  # keywords of the call
    names: tuple[str, ...]
    text: str  # what is returned


def launch_of(text: str, sizes: Sequence[str], template: Sequence[str] = ()) -> Launch:
    """The launch of a port. `sizes` are names of the case, `template` the whole-number template parameters.

    Raises EditRefused when it is not written as porter writes it.
    """
    odd = EditRefused("the launch of this port is not in the form that porter writes, so it cannot be changed")
    tree = module_tree(text)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    config = next((f for f in functions if f.name == FUNCTION), None)
    entry, call = next(((f, c) for f in functions for c in ast.walk(f) if _is_call(c)), (None, None))
    last = config.body[-1] if config else None
    if config is None or entry is None or not isinstance(call, ast.Assign) or not isinstance(last, ast.Return):
        raise odd
    value, arguments = call.value, config.args
    assert isinstance(value, ast.Call)
    plain = not (arguments.args or arguments.posonlyargs or arguments.vararg or arguments.defaults or value.args)
    if not plain or arguments.kwarg is None or not isinstance(last.value, ast.Tuple) or len(last.value.elts) != 3:
        raise odd
    first = config.body[0].lineno
    if last.lineno != last.end_lineno or call.lineno != call.end_lineno or config.lineno + 1 != first:
        raise odd
    parameters = tuple(a.arg for a in arguments.kwonlyargs)
    local = {t.id for s in config.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    bound = {n.id for n in ast.walk(entry) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
             and n.lineno < call.lineno} | {a.arg for a in (*entry.args.args, *entry.args.kwonlyargs)}  # fmt: skip
    spread = any(k.arg is None for k in value.keywords)  # **constexprs
    names = [*parameters, *sorted(local), *(n for n in sizes if n in bound), *(template if spread else ())]
    passed = tuple(k.arg for k in value.keywords if k.arg)
    known = tuple(dict.fromkeys(names))
    return Launch(config.lineno, last.lineno, call.lineno, parameters, passed, known, ast.unparse(last.value))


def _is_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == FUNCTION
    )


def with_launch(
    draft: Draft, grid: str, block: str, shared_bytes: str, sizes: Sequence[str], template: Sequence[str] = ()
) -> Draft:
    """The draft with another launch. Raises EditRefused: not such an expression, unknown names, no such block."""
    launch = launch_of(draft.text, sizes, template)
    parts = [_parts("grid", grid), _parts("block", block), [shared_bytes.strip()]]
    used: set[str] = set()
    for what, texts in zip(("grid", "block", "shared_bytes"), parts, strict=True):
        for text in texts:
            used |= _checked(what, text, launch)
    threads = 1
    for text in parts[1]:
        threads *= int(text) if text.isdecimal() else 1
    if threads > MOST_THREADS or "0" in parts[1]:
        raise EditRefused(f"a block has 1 to {MOST_THREADS} threads, not {threads if threads > 1 else 0}")
    if "sm_count" in used and "sm_count" not in launch.parameters:
        raise EditRefused("the entry of this port does not hand the number of multiprocessors to its launch")
    lines = lines_of(draft.text)
    local = set(launch.names) - {*launch.parameters, *sizes, *template}
    fresh = [n for n in launch.names if n in used and n not in launch.parameters and n not in local]
    keywords = [*launch.parameters, *fresh]
    lines[launch.head - 1] = f"def {FUNCTION}({', '.join([*('*' for _ in keywords[:1]), *keywords, '**_'])}):"
    shown = [f"({', '.join(_python(t) for t in texts)})" for texts in parts[:2]]
    lines[launch.body - 1] = f"    return {', '.join([*shown, _python(parts[2][0])])}"
    given = [n for n in fresh if n in sizes and n not in launch.passed]
    lines[launch.call - 1] = _with_keywords(lines[launch.call - 1], given)
    text = "\n".join(lines) + "\n"
    try:
        module_tree(text)
    except SyntaxError as error:
        raise EditRefused(f"the launch cannot be written like this: {error.msg}") from None
    return Draft(text, draft.regions)  # no line was added


def _parts(what: str, text: str) -> list[str]:
    """`rows, 1, 1` or `(rows, 1, 1)` as x, y and z."""
    try:
        tree = expression_tree(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise EditRefused(f"the {what} `{text[:MOST_CHARACTERS]}` is not an expression") from None
    parts = [ast.unparse(e) for e in tree.elts] if isinstance(tree, ast.Tuple) else [text.strip()]
    if not 1 <= len(parts) <= 3:
        raise EditRefused(f"a {what} has one to three parts, not {len(parts)}")
    return [*parts, "1", "1"][: max(3, len(parts))]


def _checked(what: str, text: str, launch: Launch) -> frozenset[str]:
    """The names that an expression uses. Raises EditRefused."""
    if len(text) > MOST_CHARACTERS:
        raise EditRefused(f"the {what} has an expression of {len(text)} characters (at most {MOST_CHARACTERS})")
    try:
        tree = expressions.parse(text)
    except ExprError as error:
        raise EditRefused(f"{what}: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value > MOST_NUMBER:
                raise EditRefused(f"{what}: {node.value!r} is not a whole number up to {MOST_NUMBER}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _FUNCTIONS:
            text = f"{node.func.id}() is not allowed in a launch; functions are {', '.join(_FUNCTIONS)}"
            raise EditRefused(f"{what}: {text}")
        elif not isinstance(node, _NODES):
            kind = "equality singles out sizes; compare with < or >=" if isinstance(node, ast.Eq | ast.NotEq) else (
                f"{type(node).__name__} is not arithmetic of a launch")  # fmt: skip
            raise EditRefused(f"{what}: {kind}")
    names = expressions.names_in(text)
    unknown = sorted(n for n in names if n not in launch.names)
    if unknown:
        raise EditRefused(f"{what}: {unknown[0]} is not known there; known are {', '.join(launch.names) or 'no names'}")
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return names | (calls & {"sm_count"})


def _python(text: str) -> str:
    return expressions.to_python(text, None, {"sm_count": lambda a: "sm_count"})


def _with_keywords(line: str, names: Sequence[str]) -> str:
    """A line that calls launch_config, with more keywords before `**constexprs`."""
    if not names:
        return line
    given = ", ".join(f"{n}={n}" for n in names)
    before, _, rest = line.partition(f"{FUNCTION}(")
    inside = rest.rstrip().removesuffix(")")
    plain, spread, last = inside.partition("**")
    plain = plain.strip().rstrip(",")
    return f"{before}{FUNCTION}({', '.join(filter(None, [plain, given, spread + last]))})"
