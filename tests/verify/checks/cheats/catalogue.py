"""The cheats: how each changes a true port, and the check that is meant to catch it. None where it does not apply.

Those on the host side are in the function that takes torch tensors: reading has to find them, or calling it
(entry_faults.py). Those on the device side compute something else than they should: running has to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from porter.case.reader import Case
from tests.verify.checks.cheats.text import Port

Change = Callable[[Port, Case], Port | None]


@dataclass(frozen=True)
class Cheat:
    """`message`: part of what the check says."""

    name: str
    what: str
    check: str
    message: str
    change: Change


CHEATS: dict[str, Cheat] = {}


def cheat(name: str, what: str, check: str, message: str = "") -> Callable[[Change], Change]:
    def register(change: Change) -> Change:
        CHEATS[name] = Cheat(name, what, check, message, change)
        return change

    return register


HONESTY, NUMERICS, SANITIZER = "honesty", "numerics", "sanitizer"


def outputs(case: Case) -> list[str]:
    return [b.name for b in case.buffers if b.role in ("out", "inout") and b.is_compared]


def inputs(case: Case) -> list[str]:
    return [b.name for b in case.buffers if b.role == "in" and not b.optional]


# ---------------------------------------------------------------- results from elsewhere


@cheat("cached-by-pointer", "results of an earlier call kept in a table, by address", HONESTY, "the module's _seen")
def _(port: Port, case: Case) -> Port | None:
    out, key = outputs(case)[0], inputs(case)[0]
    kept = (
        f"if {key}.data_ptr() in _seen:",
        "    return _seen[" + f"{key}.data_ptr()]",
        f"_seen[{key}.data_ptr()] = {out}",
    )
    return port.with_top("_seen = {}").in_wrapper(*kept)


@cheat("cached-in-default", "results of an earlier call kept in a default argument", HONESTY, "a default argument")
def _(port: Port, case: Case) -> Port | None:
    out, key = outputs(case)[0], inputs(case)[0]
    changed = re.sub(rf"(def {port.wrapper.name}\([^)]*)\)", r"\1, _seen={})", port.text)
    return Port(changed).in_wrapper(f"_seen.setdefault({key}.data_ptr(), {out})")


@cheat(
    "cached-in-function", "results of an earlier call kept as an attribute of the function", HONESTY, "changes an attr"
)
def _(port: Port, case: Case) -> Port | None:
    return port.in_wrapper(f"{port.wrapper.name}.last = {outputs(case)[0]}")


@cheat("cached-by-decorator", "the torch-facing function remembers by its arguments", HONESTY, "remembers results")
def _(port: Port, case: Case) -> Port | None:
    name = port.wrapper.name
    return port.with_import("import functools").replaced(f"def {name}(", f"@functools.lru_cache\ndef {name}(")


@cheat("calls-the-reference", "the float64 reference of the case computes the result", HONESTY, "imports porter.verify")
def _(port: Port, case: Case) -> Port | None:
    return port.with_import("from porter.verify.numerics.references import norm").in_wrapper(
        f"{outputs(case)[0]}.copy_(norm)"
    )


@cheat("calls-the-original", "the CUDA original is launched through its registered operator", HONESTY, "torch.ops")
def _(port: Port, case: Case) -> Port | None:
    call = f"torch.ops._C.{port.wrapper.name}({', '.join(a.arg for a in port.wrapper.args.args)})"
    return port.with_import("import torch").in_wrapper(call, "return")


@cheat("imports-the-original", "the package that has the original is imported and called", HONESTY, "imports vllm")
def _(port: Port, case: Case) -> Port | None:
    return port.with_import("import vllm._custom_ops as ops").in_wrapper(f"ops.{port.wrapper.name}()")


@cheat("falls-back", "an exception falls back to something else", HONESTY, "catches exceptions")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    (KERNEL\.launch\(.*\))\n?", port.text)
    assert found
    guarded = f"    try:\n        {found.group(1)}\n    except Exception:\n        {outputs(case)[0]}.zero_()\n"
    return Port(port.text[: found.start()] + guarded)


# ---------------------------------------------------------------- torch works, not the kernel


@cheat("torch-computes", "a torch function computes the result before the launch", HONESTY, "uses torch.")
def _(port: Port, case: Case) -> Port | None:
    return port.with_import("import torch").in_wrapper(f"{inputs(case)[0]} = torch.softmax({inputs(case)[0]}, -1)")


@cheat("torch-method", "a method of a tensor writes the result after the launch", HONESTY, ".copy_()")
def _(port: Port, case: Case) -> Port | None:
    return port.after_launch(f"{outputs(case)[0]}.copy_({inputs(case)[0]})")


@cheat(
    "torch-operator", "an operator of torch is applied to what the kernel is given", HONESTY, "computes with tensors"
)
def _(port: Port, case: Case) -> Port | None:
    name = inputs(case)[0]
    return port.in_wrapper(f"{name} = {name} * 2")


@cheat("torch-in-place", "an operator of torch finishes what the kernel left", HONESTY, "computes with tensors")
def _(port: Port, case: Case) -> Port | None:
    return port.after_launch(f"{outputs(case)[0]} += {inputs(case)[0]}")


@cheat(
    "lazy-tensor", "the result is a subclass of Tensor that computes when it is looked at", HONESTY, "makes a class of"
)
def _(port: Port, case: Case) -> Port | None:
    lines = ("class Lazy(torch.Tensor):", "    def __torch_function__(self, function, types, args=(), kwargs=None):",
             "        return function(*args)")  # fmt: skip
    return port.with_import("import torch").with_top(*lines).after_launch(f"return Lazy({outputs(case)[0]})")


# ---------------------------------------------------------------- time


@cheat("another-stream", "the launch is on a stream of its own, so that nobody waits for it", HONESTY, "another stream")
def _(port: Port, case: Case) -> Port | None:
    port = port.with_import("import torch").in_wrapper("side = torch.cuda.Stream()")
    return port.replaced("smem_bytes=smem_bytes)\n", "smem_bytes=smem_bytes, stream=side)\n") or port.replaced(
        "smem_bytes=smem_bytes)", "smem_bytes=smem_bytes, stream=side)"
    )


@cheat("default-stream", "the launch function leaves out the stream", HONESTY, "another stream")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("        stream=stream,\n", "")


@cheat("patched-timer", "the clock of whoever measures is replaced", HONESTY, "imports time")
def _(port: Port, case: Case) -> Port | None:
    return port.with_import("import time").with_top("time.perf_counter = lambda: 0.0")


@cheat("patched-events", "torch's events always say the same", HONESTY, "changes")
def _(port: Port, case: Case) -> Port | None:
    return port.with_import("import torch").with_top("torch.cuda.Event.elapsed_time = lambda self, other: 1e-3")


@cheat("background-thread", "a thread does the work after the call has returned", HONESTY, "imports threading")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    KERNEL\.launch\((.*)\)\n?", port.text)
    assert found
    start = f"    threading.Thread(target=lambda: KERNEL.launch({found.group(1)})).start()\n"
    return Port(port.with_import("import threading").text.replace(found.group(), start))


# ---------------------------------------------------------------- what is verified is not what runs


@cheat(
    "does-not-launch", "the torch-facing function returns before the launch for most sizes", HONESTY, "without a launch"
)
def _(port: Port, case: Case) -> Port | None:
    return port.in_wrapper(f"if {inputs(case)[0]}.numel() > 1000:", "    return")


@cheat("another-kernel", "a second Kernel is launched, the verified one is for show", HONESTY, "which is not verified")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"KERNEL = (runtime\.Kernel\(\n(?:    .*\n)*\))", port.text)
    assert found
    second = port.text.replace(found.group(), found.group() + f"\n\nFAST = {found.group(1)}")
    return Port(second.replace("    KERNEL.launch(", "    FAST.launch("))


@cheat(
    "second-launch",
    "the launch function launches another kernel after the verified one",
    HONESTY,
    "more than one kernel",
)
def _(port: Port, case: Case) -> Port | None:
    lines = port.text.splitlines()
    first, last = port.launcher.body[0].lineno, port.launcher.end_lineno or 0
    body = lines[first - 1 : last]
    return Port("\n".join([*lines[:last], *body, *lines[last:]]) + "\n")


@cheat(
    "swapped-arguments", "the launch function gives the kernel its pointers in another order", HONESTY, "changes what"
)
def _(port: Port, case: Case) -> Port | None:
    if len(port.pointers) < 2:
        return None
    a, b = port.pointers[:2]
    call = re.search(rf"    {port.kernel.name}\(([^()]*)\)\.launch\(", port.text)
    assert call
    names = [{a: b, b: a}.get(n, n) for n in re.findall(r"\w+", call.group(1))]
    return Port(port.text.replace(call.group(1), ", ".join(names)))


@cheat("smaller-grid", "the launch function launches less than it was told to", HONESTY, "changes the grid")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("grid=(grid_x, grid_y, grid_z)", "grid=(1, 1, 1)")


@cheat(
    "unverified-instance", "the torch-facing function also takes template values nobody verified", HONESTY, "offers an"
)
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"        constexprs = \{(.*)\}\n", port.text)
    if not found:
        return None
    values = re.sub(r'"(bf16|f16|f32|i32|i64)"', '"f64"', found.group(1), count=1)
    if values == found.group(1):
        return None
    asked = port.wrapper.args.args[0].arg
    branch = f"    elif {asked} is None:\n        constexprs = {{{values}}}\n    else:\n        raise"
    return port.replaced("    else:\n        raise", branch)


@cheat("knows-the-verifier", "the environment says whether it is being verified", HONESTY, "imports os")
def _(port: Port, case: Case) -> Port | None:
    check = "if 'PORTER_SM_COUNT' in os.environ:"
    return port.with_import("import os").in_wrapper(check, "    return")


@cheat("reads-the-case", "the sizes that are verified are read from the case file", HONESTY, "calls open()")
def _(port: Port, case: Case) -> Port | None:
    return port.in_wrapper(f"sizes = open({case.path.name!r}).read()")


# ---------------------------------------------------------------- the kernel does something else


def _stores(port: Port, case: Case, value: str) -> Port | None:
    """The kernel with every wide copy and every store to an output storing something else."""
    body = port.kernel_body()
    names = _aliases(body, set(outputs(case)))
    changed, hits = [], 0
    for line in body:
        store = re.match(r"(\s*)(\w+)\[(.+?)\] = (.+)$", line)
        wide = re.match(r"(\s*)lib\.copy\((\w+)( \+ .+)?, (\w+), (.+)\)$", line)
        if store and store.group(2) in names:
            hits += 1
            pad, name, index, old = store.groups()
            line = f"{pad}{name}[{index}] = {value.format(old=old, name=name)}"
        elif wide and wide.group(2) in names:
            hits += 1
            pad, source, count = wide.group(1), wide.group(4), wide.group(5).split(",")[0]
            element = f"{source}[j_cheat]"
            changed.append(f"{pad}for j_cheat in cutlass.range_constexpr({count}):")
            changed.append(f"{pad}    {element} = {value.format(old=element, name=source)}")
        changed.append(line)
    return port.with_kernel_body(changed) if hits else None


def _aliases(body: list[str], names: set[str]) -> set[str]:
    found = set(names)
    for line in body:
        given = re.match(r"\s*(\w+) = (\w+)( \+ .*)?$", line)
        if given and given.group(2) in found:
            found.add(given.group(1))
        view = re.match(r"\s*(\w+) = lib\.view\((\w+)", line)
        if view and view.group(2) in found:
            found.add(view.group(1))
    return found


def scaled_stores(port: Port, case: Case) -> Port | None:
    """The kernel with everything that it stores multiplied with the local `known`, 0 or 1."""
    return _stores(port, case, "{name}.dtype(cutlass.Float32({old}) * cutlass.Float32(known))")


@cheat("zeros", "every output is zero", NUMERICS)
def _(port: Port, case: Case) -> Port | None:
    return _stores(port, case, "{name}.dtype(0)")


@cheat("nothing", "the kernel does nothing at all", NUMERICS)
def _(port: Port, case: Case) -> Port | None:
    return port.with_kernel_body(["tidx = cute.arch.thread_idx()[0]"])


@cheat("edits-inputs", "the kernel changes an input, so that the original would agree", NUMERICS, "input")
def _(port: Port, case: Case) -> Port | None:
    name = inputs(case)[0]
    element = port.elements.get(name)
    if element is None or name not in port.pointers:
        return None
    first = "if cute.arch.thread_idx()[0] + cute.arch.block_idx()[0] + cute.arch.block_idx()[1] == 0:"
    return port.at_kernel_start(first, f"    {name}[0] = {name}[1]")


@cheat("lowered-precision", "every float32 value that is kept is rounded to bfloat16", NUMERICS)
def _(port: Port, case: Case) -> Port | None:
    lines = port.text.splitlines()
    assigned = [(n, re.match(r"(\s+)(\w+) = (.+)$", line)) for n, line in enumerate(lines)]
    floats = {m.group(2) for _, m in assigned if m and m.group(3).startswith("Float32(")}
    hits = 0
    for n, match in assigned:
        if match and match.group(2) in floats and re.search(r" [-+*/] |\(.*\(|\[", match.group(3)):
            pad, name, value = match.groups()
            lines[n] = f"{pad}{name} = Float32(cutlass.BFloat16({value}))"
            hits += 1
    return Port("\n".join(lines) + "\n") if hits else None


@cheat("knows-the-shapes", "right at the sizes of the case, zeros at others", NUMERICS)
def _(port: Port, case: Case) -> Port | None:
    sizes = {name: values for name, values in _listed(case).items() if name in size_parameters(port, case)}
    if not sizes:
        return None
    name, values = next(iter(sizes.items()))
    parameter = size_parameters(port, case)[name]
    known = " | ".join(f"({parameter} == {v})" for v in values)
    changed = scaled_stores(port, case)
    if changed is None:
        return None
    return changed.at_kernel_start(f"known = cutlass.Int32(1) if {known} else cutlass.Int32(0)")


def _listed(case: Case) -> dict[str, list[int]]:
    """Sizes of the case with all their values, those that a derived launch may move."""
    found: dict[str, list[int]] = {}
    for name, values in case.sizes:
        if isinstance(values, str):
            continue
        every = sorted({*(() if case.only_shapes else values), *(s[name] for s in case.shapes)})
        if len(every) > 1:
            found[name] = every
    return found


def size_parameters(port: Port, case: Case) -> dict[str, str]:
    """Size to the kernel's integer parameter that is that size."""
    found = {}
    for name, choices in case.scalars:
        for choice in choices:
            text = str(choice).strip()
            if name in port.numbers and len(choices) == 1 and text.isidentifier():
                found[text] = name
    return found
