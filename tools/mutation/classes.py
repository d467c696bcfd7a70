"""The classes of mistakes: for each a generator of edits, and the checks that are meant to find it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.mutation.port_text import Edit, PortText, binary, comparison, is_call, names_in, parameters, pointers, show

Generator = Callable[[PortText], Iterator[Edit]]


@dataclass(frozen=True)
class MutantClass:
    """`checks`: the verdicts of which at least one must be FAIL. `most` of a port in the sweep."""

    name: str
    what: str
    checks: tuple[str, ...]
    edits: Generator
    most: int = 1


CLASSES: dict[str, MutantClass] = {}


def mutation(name: str, what: str, *checks: str, most: int = 1) -> Callable[[Generator], Generator]:
    def register(edits: Generator) -> Generator:
        CLASSES[name] = MutantClass(name, what, checks, edits, most)
        return edits

    return register


NUMERICS, SANITIZER = "numerics", "sanitizer"


# ---------------------------------------------------------------- mathematics


@mutation("dropped-max", "exp of the value itself, the row's maximum not subtracted", NUMERICS)
def dropped_max(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "cute.math.exp"):
            argument = node.args[0]  # type: ignore[attr-defined]
            if parts := binary(argument, ast.Sub):
                yield Edit(argument, show(parts[0]))


@mutation("eps-outside-mean", "epsilon added to the sum, not to the mean", NUMERICS)
def eps_outside_mean(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.rsqrt") and (parts := binary(node.args[0], ast.Add)):  # type: ignore[attr-defined]
            mean, eps = parts
            if quotient := binary(mean, ast.Div):
                yield Edit(node.args[0], f"({show(quotient[0])} + {show(eps)}) / {show(quotient[1])}")  # type: ignore


@mutation("eps-outside-root", "epsilon added after the root", NUMERICS)
def eps_outside_root(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.rsqrt") and (parts := binary(node.args[0], ast.Add)):  # type: ignore[attr-defined]
            yield Edit(node, f"(lib.rsqrt({show(parts[0])}) + {show(parts[1])})")  # type: ignore[arg-type]


@mutation("bf16-accumulator", "a sum kept in bfloat16", NUMERICS)
def bf16_accumulator(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Assign):
        target, value = node.targets[0], node.value  # type: ignore[attr-defined]
        parts = binary(value, ast.Add)
        if parts and show(parts[0]) == show(target) and _is_float_sum(function, target):
            yield Edit(value, f"Float32(cutlass.BFloat16({show(value)}))")


def _is_float_sum(function: ast.FunctionDef, target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        target = target.value
    name = show(target)
    for a in function.args.args:
        if a.arg == name:
            return a.annotation is not None and show(a.annotation) == "Float32"
    made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and show(n.targets[0]) == name]
    return any(show(n.value) in ("Float32(0.0)", "lib.local(Float32, VEC)") for n in made)


@mutation("truncation", "a value cut off where it is rounded to nearest", NUMERICS, most=2)
def truncation(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.rint"):
            yield Edit(node, show(node.args[0]))  # type: ignore
    for _, node in port.nodes(ast.Constant):
        if node.value == "rni":  # type: ignore[attr-defined]
            yield Edit(node, '"rzi"')  # type: ignore[arg-type]
    for _, node in port.nodes(ast.Assign):
        value = node.value  # type: ignore[attr-defined]
        if not isinstance(node.targets[0], ast.Subscript):  # type: ignore[attr-defined]
            continue
        if is_call(value, "scalar_t", "Float8E4M3FN") and not isinstance(value.args[0], ast.Constant):
            kept = "0xfff00000" if show(value.func) == "Float8E4M3FN" else "0xffff0000"
            cut = f"lib.bits({show(value.args[0])}, cutlass.Uint32) & cutlass.Uint32({kept})"
            yield Edit(value.args[0], f"lib.bits({cut}, cutlass.Float32)")


@mutation("wrong-scale-floor", "another least scale, or none", NUMERICS, most=2)
def wrong_scale_floor(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.fmax"):
            for argument in node.args:  # type: ignore[attr-defined]
                inner = argument.args[0] if is_call(argument, "Float32") else argument
                if isinstance(inner, ast.Constant) and isinstance(inner.value, float) and 0 < inner.value < 1e-3:
                    yield Edit(inner, repr(inner.value * 16))
    for function, node in port.nodes(ast.Assign):
        if show(node.value) == "eps" and "eps" in parameters(function):  # type: ignore[attr-defined]
            yield Edit(node.value, "eps * 1024.0")  # type: ignore[attr-defined]
    for _, node in port.nodes(ast.IfExp):
        if comparison(node.test, ast.Eq) and show(node.body) == "Float32(0.0)":  # type: ignore[attr-defined]
            yield Edit(node, show(node.orelse))  # type: ignore


@mutation("nan-rule", "a maximum or minimum that lets NaN through where fmaxf drops it", NUMERICS)
def nan_rule(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.fmax", "lib.fmin"):
            names = "".join(show(a) for a in node.args)  # type: ignore[attr-defined]
            if "[" in names and "shfl" not in names and "lib.fm" not in names:
                yield Edit(node.func, f"{show(node.func)}_nan")  # type: ignore


@mutation("wrong-constant", "a factor off by 1/64", NUMERICS)
def wrong_constant(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult | ast.Div):  # type: ignore[attr-defined]
            for side in (node.left, node.right):  # type: ignore[attr-defined]
                if isinstance(side, ast.Constant) and isinstance(side.value, float) and side.value not in (0.0, 1.0):
                    yield Edit(side, repr(side.value * 1.015625))


@mutation("wrong-clamp", "another limit of the quantised type", NUMERICS)
def wrong_clamp(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "Float32", "Int32") and show(node) in ("Float32(448.0)", "Float32(127.0)", "Int32(127)"):
            yield Edit(node, {"448.0": "Float32(240.0)", "127.0": "Float32(126.0)"}.get(
                show(node.args[0]), "Int32(126)"))  # type: ignore  # fmt: skip


@mutation("dropped-abs", "a maximum of values, not of magnitudes", NUMERICS)
def dropped_abs(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "cute.math.abs"):
            yield Edit(node, show(node.args[0]))  # type: ignore


@mutation("wrong-sign", "a sum for a difference", NUMERICS, SANITIZER)
def wrong_sign(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if parts := binary(node, ast.Sub):
            yield Edit(node, f"({show(parts[0])} + {show(parts[1])})")  # type: ignore[arg-type]


@mutation("extra-rounding", "a product rounded to 16 bits before it is used on", NUMERICS)
def extra_rounding(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "scalar_t") and (parts := binary(node.args[0], ast.Mult)):  # type: ignore[attr-defined]
            if binary(parts[0], ast.Mult):
                yield Edit(parts[0], f"Float32(scalar_t({show(parts[0])}))")


@mutation("wrong-start", "a maximum that starts at zero, not at minus infinity", NUMERICS)
def wrong_start(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Assign):
        if show(node.value) == "Float32(-float('inf'))":  # type: ignore[attr-defined]
            yield Edit(node.value, "Float32(0.0)")  # type: ignore[attr-defined]


# ---------------------------------------------------------------- loops, bounds and guards


def _counted(node: ast.AST) -> ast.Call | None:
    """The range of a loop that runs over start, stop, step at run time."""
    if isinstance(node, ast.For) and is_call(node.iter, "range", "cutlass.range"):
        call = node.iter
        assert isinstance(call, ast.Call)
        return call if len(call.args) == 3 else None
    return None


def _stores(node: ast.AST, function: ast.FunctionDef) -> bool:
    """Does a statement write to memory that is not the thread's own?"""
    local = {show(n.targets[0]) for n in ast.walk(function)
             if isinstance(n, ast.Assign) and is_call(n.value, "lib.local")}  # fmt: skip
    for n in ast.walk(node):
        if is_call(n, "lib.copy") and not names_in(n.args[0]) & local:  # type: ignore[attr-defined]
            return True
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript):
            if show(n.targets[0].value) not in local:
                return True
        if is_call(n, "rotate_pairs"):
            return True
    return False


@mutation("missing-tail", "what does not fill the block's last step, or the last vector, left out", NUMERICS, SANITIZER)
def missing_tail(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and _stores(node, function):
            stop, step = show(call.args[1]), show(call.args[2])
            yield Edit(call.args[1], f"({stop}) - ({stop}) % ({step})")
    for _, node in port.nodes(ast.While):
        last = node.body[-1]  # type: ignore[attr-defined]
        test = node.test  # type: ignore[attr-defined]
        if isinstance(last, ast.Assign) and (parts := binary(last.value, ast.Add)) and comparison(test, ast.Lt):
            yield Edit(test.left, f"{show(test.left)} + {show(parts[1])} - 1")


@mutation("odd-vector", "an odd last vector left out", NUMERICS, SANITIZER)
def odd_vector(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.c_div") and show(node.args[1]) == "VEC":  # type: ignore[attr-defined]
            yield Edit(node, f"lib.c_div({show(node.args[0])}, VEC * 2) * 2")  # type: ignore


@mutation("unwritten-last", "the last element or vector never written", NUMERICS)
def unwritten_last(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and _stores(node, function):
            yield Edit(call.args[1], f"({show(call.args[1])}) - 1")
    for function, node in port.nodes(ast.While, ast.If):
        test = node.test  # type: ignore[attr-defined]
        if (parts := comparison(test, ast.Lt)) and _stores(node, function):
            if isinstance(parts[1], ast.Name) and isinstance(parts[0], ast.Name):
                yield Edit(parts[1], f"{show(parts[1])} - 1")


@mutation("unwritten-first", "the first element of each thread skipped", NUMERICS)
def unwritten_first(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.For):
        if (call := _counted(node)) and _stores(node, function):
            yield Edit(call.args[0], f"({show(call.args[0])}) + ({show(call.args[2])})")


@mutation("off-by-one-guard", "a guard that lets one more through", SANITIZER, NUMERICS)
def off_by_one_guard(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.While, ast.If, ast.IfExp):
        test = node.test  # type: ignore[attr-defined]
        if (parts := comparison(test, ast.Lt)) and not is_call(parts[0], "Int32"):
            yield Edit(test, f"{show(parts[0])} <= {show(parts[1])}")


@mutation("unguarded-id", "one half of a range check of an id dropped", SANITIZER, NUMERICS, most=2)
def unguarded_id(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        for op in (ast.BitAnd, ast.BitOr):
            if parts := binary(node, op):
                ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
                if all(isinstance(p, ast.Compare) and isinstance(p.ops[0], ordered) for p in parts):
                    yield Edit(node, show(parts[0]))  # type: ignore[arg-type]
                    yield Edit(node, show(parts[1]))  # type: ignore[arg-type]


@mutation("short-grid", "one block too few", NUMERICS)
def short_grid(port: PortText) -> Iterator[Edit]:
    if "grid_dim" in port.text:
        return  # blocks share the work there: any number of them is right
    for node in ast.walk(port.config):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            grid = node.value.elts[0]
            if isinstance(grid, ast.Tuple) and show(grid.elts[0]) != "1":
                yield Edit(grid.elts[0], f"max(({show(grid.elts[0])}) - 1, 1)")


# ---------------------------------------------------------------- threads


@mutation("missing-barrier", "a barrier left out", SANITIZER, most=4)
def missing_barrier(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr):
        if is_call(node.value, "cute.arch.sync_threads", "lib.grid_sync"):  # type: ignore[attr-defined]
            yield Edit(node, "pass")  # type: ignore[arg-type]


@mutation("missing-lane", "one step of a shuffle reduction left out", NUMERICS)
def missing_lane(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.For):
        found = node.iter  # type: ignore[attr-defined]
        if isinstance(found, ast.Tuple) and all(isinstance(e, ast.Constant) for e in found.elts):
            kept = [show(e) for e in found.elts[:-1]]
            yield Edit(found, f"({', '.join(kept)},)")
        elif is_call(found, "lib.halving"):
            yield Edit(found, f"{show(found)}[:-1]")


@mutation("mask-lane", "a shuffle mask that names a lane too few", SANITIZER)
def mask_lane(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if show(node.func).startswith("lib.shfl"):  # type: ignore[attr-defined]
            mask = node.args[2]  # type: ignore[attr-defined]
            if isinstance(mask, ast.Constant):
                yield Edit(mask, "0x7fffffff")


@mutation("lost-atomic", "an atomic done as a load, an addition and a store", SANITIZER, NUMERICS)
def lost_atomic(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr, ast.Assign):
        call = node.value  # type: ignore[attr-defined]
        if is_call(call, "lib.atomic_add") and (parts := binary(call.args[0], ast.Add)):
            place = f"{show(parts[0])}[{show(parts[1])}]"
            if isinstance(node, ast.Assign):
                name = show(node.targets[0])
                yield Edit(node, f"{name} = {place}; {place} = {name} + {show(call.args[1])}")
            else:
                yield Edit(node, f"{place} = {place} + {show(call.args[1])}")  # type: ignore[arg-type]
        if is_call(call, "lib.atomic_max") and isinstance(node, ast.Expr):
            yield Edit(node, f"{show(call.args[0])}[0] = {show(call.args[1])}")


@mutation("missing-fence", "a fence left out", SANITIZER, most=2)
def missing_fence(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Expr):
        if is_call(node.value, "lib.fence"):  # type: ignore[attr-defined]
            yield Edit(node, "pass")  # type: ignore[arg-type]


@mutation("wrong-tie-break", "of equal values the later one taken", NUMERICS)
def wrong_tie_break(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if (parts := binary(node, ast.BitOr)) and comparison(parts[0], ast.Gt):
            if (both := binary(parts[1], ast.BitAnd)) and comparison(both[0], ast.Eq):
                if less := comparison(both[1], ast.Lt):
                    yield Edit(both[1], f"({show(less[0])} > {show(less[1])})")
    for _, node in port.nodes(ast.If):
        parts = comparison(node.test, ast.Gt)  # type: ignore[attr-defined]
        if parts and show(parts[1]) == "best":
            yield Edit(node.test, f"{show(parts[0])} >= {show(parts[1])}")  # type: ignore[attr-defined]


# ---------------------------------------------------------------- memory


@mutation("swapped-parameters", "two parameters of one type swapped (gamma and beta)", NUMERICS, most=2)
def swapped_parameters(port: PortText) -> Iterator[Edit]:
    for function in port.device:
        known = pointers(function)
        plain = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and (p := binary(n.value, ast.Add))
                 and show(p[0]) in known and isinstance(p[1], ast.Name)]  # fmt: skip
        for a in plain:
            for b in plain:
                if a.lineno < b.lineno and show(a.value.right) == show(b.value.right):  # type: ignore[attr-defined]
                    one, two = show(a.value.left), show(b.value.left)  # type: ignore[attr-defined]
                    if one != two:
                        yield _exchanged(function, one, two)
    for _, node in port.nodes(ast.IfExp):
        if isinstance(node.body, ast.Name) and isinstance(node.orelse, ast.Name):  # type: ignore[attr-defined]
            if show(node.body).split("_")[-1] == show(node.orelse).split("_")[-1]:  # type: ignore[attr-defined]
                yield Edit(node, f"{show(node.orelse)} if {show(node.test)} else {show(node.body)}")  # type: ignore
    own = {f.name for f in port.device}
    for _, node in port.nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in own:  # type: ignore[attr-defined]
            args = node.args  # type: ignore[attr-defined]
            for i in range(len(args) - 1):
                a, b = show(args[i]), show(args[i + 1])
                if isinstance(args[i], ast.Name) and isinstance(args[i + 1], ast.Name) and a.endswith("_row"):
                    swapped = [*map(show, args[:i]), b, a, *map(show, args[i + 2 :])]
                    yield Edit(node, f"{show(node.func)}({', '.join(swapped)})")  # type: ignore


def _exchanged(function: ast.FunctionDef, one: str, two: str) -> Edit:
    """The names of two parameters exchanged in the function's head: its callers pass them by position."""
    swapped = {one: two, two: one}
    given = function.args.args
    head = ast.Expr(ast.Constant(""))  # the text from the first parameter to the last
    head.lineno, head.col_offset = given[0].lineno, given[0].col_offset
    head.end_lineno, head.end_col_offset = given[-1].end_lineno, given[-1].end_col_offset
    texts = [f"{swapped.get(a.arg, a.arg)}: {show(a.annotation)}" for a in given if a.annotation is not None]
    return Edit(head, ", ".join(texts))


@mutation("off-by-one-stride", "a row stride one too large", NUMERICS, SANITIZER)
def off_by_one_stride(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult):  # type: ignore[attr-defined]
            for side in (node.left, node.right):  # type: ignore[attr-defined]
                if show(side).endswith("_stride") or show(side) in ("Int64(hidden_size)", "Int64(d)", "Uint64(cols)"):
                    yield Edit(side, f"({show(side)} + 1)")


@mutation("contiguous-rows", "rows taken to lie side by side, their stride ignored", NUMERICS, SANITIZER)
def contiguous_rows(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.BinOp):
        length = next((n for n in ("hidden_size", "cols") if n in parameters(function)), "")
        if isinstance(node.op, ast.Mult) and length:  # type: ignore[attr-defined]
            for side in (node.left, node.right):  # type: ignore[attr-defined]
                if show(side).endswith("_stride"):
                    yield Edit(side, f"Int64({length})")


@mutation("narrow-index", "a row's offset computed in 32 bits", NUMERICS, SANITIZER)
def narrow_index(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if (parts := binary(node, ast.Mult)) and show(parts[1]).endswith("_stride"):
            yield Edit(node, f"Int64(Int32({show(parts[0])}) * Int32({show(parts[1])}))")  # type: ignore[arg-type]


@mutation("vector-stride", "a vector's index used as an element's", NUMERICS, SANITIZER)
def vector_stride(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if (parts := binary(node, ast.Mult)) and show(parts[1]) == "VEC" and is_call(parts[0], "Int64"):
            yield Edit(node, show(parts[0]))  # type: ignore[arg-type]


@mutation("transposed-scales", "rows and columns of a small output exchanged", NUMERICS, SANITIZER)
def transposed_scales(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Assign):
        target, value = node.targets[0], node.value  # type: ignore[attr-defined]
        given = parameters(function)
        if isinstance(target, ast.Subscript) and {"groups_per_token", "num_groups"} <= given:
            if show(target.value) == "output_s":
                groups = "Int64(groups_per_token)"
                index = f"({show(target.slice)} % {groups}) * (num_groups // {groups}) + {show(target.slice)} // {groups}"
                yield Edit(target.slice, index)
        rows = "num_tokens" if "num_tokens" in given else "gdimx"
        if show(target) == "slot" and (parts := binary(value, ast.Add)) and (product := binary(parts[0], ast.Mult)):
            yield Edit(value, f"{show(parts[1])} * Int64({rows}) + {show(product[0])}")


@mutation("dropped-store", "a store left out", NUMERICS, SANITIZER, most=2)
def dropped_store(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Expr, ast.Assign):
        if isinstance(node, ast.Expr) and not is_call(node.value, "lib.copy", "lib.store"):
            continue
        if _stores(node, function):
            yield Edit(node, "pass")  # type: ignore[arg-type]


# ---------------------------------------------------------------- integers


@mutation("unsigned-as-signed", "an unsigned element read as signed", NUMERICS, SANITIZER)
def unsigned_as_signed(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "Uint8", "Uint16") and isinstance(node.args[0], ast.Subscript | ast.Call):  # type: ignore
            yield Edit(node.func, f"cutlass.{show(node.func).replace('Uint', 'Int')}")  # type: ignore


@mutation("unsigned-compare", "an unsigned comparison done as a signed one", NUMERICS, SANITIZER)
def unsigned_compare(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Compare):
        made = {show(n.targets[0]) for n in ast.walk(function)
                if isinstance(n, ast.Assign) and is_call(n.value, "Uint32")}  # fmt: skip
        parts = comparison(node, ast.Gt) or comparison(node, ast.Lt)
        if parts and show(parts[0]) in made:
            sign = ">" if comparison(node, ast.Gt) else "<"
            yield Edit(node, f"Int32({show(parts[0])}) {sign} Int32({show(parts[1])})")  # type: ignore[arg-type]


@mutation("floor-division", "Python's floor division where C truncates", NUMERICS, SANITIZER)
def floor_division(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Call):
        if is_call(node, "lib.c_div") and _may_be_negative(function, node.args[0]):  # type: ignore[attr-defined]
            yield Edit(node, f"({show(node.args[0])}) // ({show(node.args[1])})")  # type: ignore


def _may_be_negative(function: ast.FunctionDef, node: ast.expr) -> bool:
    """A difference, or a name that holds one. Sizes and indices are never negative: floor division is right there."""
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) for n in ast.walk(node)):
        return not any(isinstance(n, ast.Constant) for n in ast.walk(node))
    made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and show(n.targets[0]) == show(node)]
    return any(isinstance(n.value, ast.BinOp) and isinstance(n.value.op, ast.Sub) for n in made)
