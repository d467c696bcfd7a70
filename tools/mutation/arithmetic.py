"""Mistakes in mathematics: constants, rounding, sums, NaN."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.mutation.port_text import Edit, PortText, binary, comparison, is_call, parameters, show
from tools.mutation.registry import NUMERICS, SANITIZER, mutation


@mutation("dropped-max", "exp of the value itself, the row's maximum not subtracted", NUMERICS)
def dropped_max(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "cute.math.exp"):
            argument = node.args[0]
            if parts := binary(argument, ast.Sub):
                yield Edit(argument, show(parts[0]))


@mutation("eps-outside-mean", "epsilon added to the sum, not to the mean", NUMERICS)
def eps_outside_mean(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.rsqrt") and (parts := binary(node.args[0], ast.Add)):
            mean, eps = parts
            if quotient := binary(mean, ast.Div):
                yield Edit(node.args[0], f"({show(quotient[0])} + {show(eps)}) / {show(quotient[1])}")


@mutation("eps-outside-root", "epsilon added after the root", NUMERICS)
def eps_outside_root(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.rsqrt") and (parts := binary(node.args[0], ast.Add)):
            yield Edit(node, f"(lib.rsqrt({show(parts[0])}) + {show(parts[1])})")


@mutation("bf16-accumulator", "a sum kept in bfloat16", NUMERICS)
def bf16_accumulator(port: PortText) -> Iterator[Edit]:
    for function, node in port.nodes(ast.Assign):
        target, value = node.targets[0], node.value
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
            yield Edit(node, show(node.args[0]))
    for _, node in port.nodes(ast.Constant):
        if node.value == "rni":
            yield Edit(node, '"rzi"')
    for _, node in port.nodes(ast.Assign):
        value = node.value
        if not isinstance(node.targets[0], ast.Subscript):
            continue
        if is_call(value, "scalar_t", "Float8E4M3FN") and not isinstance(value.args[0], ast.Constant):
            kept = "0xfff00000" if show(value.func) == "Float8E4M3FN" else "0xffff0000"
            cut = f"lib.bits({show(value.args[0])}, cutlass.Uint32) & cutlass.Uint32({kept})"
            yield Edit(value.args[0], f"lib.bits({cut}, cutlass.Float32)")


@mutation("wrong-scale-floor", "another least scale, or none", NUMERICS, most=2)
def wrong_scale_floor(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.fmax"):
            for argument in node.args:
                inner = argument.args[0] if is_call(argument, "Float32") else argument
                if isinstance(inner, ast.Constant) and isinstance(inner.value, float) and 0 < inner.value < 1e-3:
                    yield Edit(inner, repr(inner.value * 16))
    for function, node in port.nodes(ast.Assign):
        if show(node.value) == "eps" and "eps" in parameters(function):
            yield Edit(node.value, "eps * 1024.0")
    for _, node in port.nodes(ast.IfExp):
        if comparison(node.test, ast.Eq) and show(node.body) == "Float32(0.0)":
            yield Edit(node, show(node.orelse))


@mutation("nan-rule", "a maximum or minimum that lets NaN through where fmaxf drops it", NUMERICS)
def nan_rule(port: PortText) -> Iterator[Edit]:
    if "cute.math.exp" in port.text:
        return  # a NaN makes the whole row NaN (or zero) in a softmax, whatever its maximum
    for _, node in port.nodes(ast.Call):
        if is_call(node, "lib.fmax", "lib.fmin"):
            names = "".join(show(a) for a in node.args)
            if "[" in names and "shfl" not in names and "lib.fm" not in names:
                yield Edit(node.func, f"{show(node.func)}_nan")


@mutation("wrong-constant", "a factor off by 1/64", NUMERICS)
def wrong_constant(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult | ast.Div):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and isinstance(side.value, float) and side.value not in (0.0, 1.0):
                    yield Edit(side, repr(side.value * 1.015625))


@mutation("wrong-clamp", "another limit of the quantised type", NUMERICS)
def wrong_clamp(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "Float32", "Int32") and show(node) in ("Float32(448.0)", "Float32(127.0)", "Int32(127)"):
            yield Edit(node, {"448.0": "Float32(240.0)", "127.0": "Float32(126.0)"}.get(
                show(node.args[0]), "Int32(126)"))  # fmt: skip


@mutation("dropped-abs", "a maximum of values, not of magnitudes", NUMERICS)
def dropped_abs(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        if is_call(node, "cute.math.abs"):
            yield Edit(node, show(node.args[0]))


@mutation("wrong-sign", "a sum for a difference", NUMERICS, SANITIZER)
def wrong_sign(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.BinOp):
        if parts := binary(node, ast.Sub):
            yield Edit(node, f"({show(parts[0])} + {show(parts[1])})")


@mutation("extra-rounding", "a product rounded to 16 bits before it is used on", NUMERICS)
def extra_rounding(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Call):
        parts = binary(node.args[0], ast.Mult) if is_call(node, "scalar_t") else None
        if parts and binary(parts[0], ast.Mult):
            yield Edit(parts[0], f"Float32(scalar_t({show(parts[0])}))")


@mutation("wrong-start", "a maximum that starts at zero, not at minus infinity", NUMERICS)
def wrong_start(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Assign):
        if show(node.value) == "Float32(-float('inf'))":
            yield Edit(node.value, "Float32(0.0)")


@mutation("power-of-two-step", "a power of two as a scale steps one unit in the last place off", NUMERICS, most=2)
def power_of_two_step(port: PortText) -> Iterator[Edit]:
    for _, node in port.nodes(ast.Constant):
        if node.value == 0x7FFFFF:
            yield Edit(node, "0x7ffffe")
            yield Edit(node, "0x800000")
