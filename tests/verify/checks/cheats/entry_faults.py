"""Torch-facing functions that are wrong: each launches something else than what is verified, or does more than launch.

Most of them read well: only calling them shows what they do.
"""

from __future__ import annotations

import re

from porter.case.model import Case
from tests.verify.checks.cheats.catalogue import Change, cheat, inputs, outputs
from tests.verify.checks.cheats.text import Port

ENTRY = "entry"


def faulty(name: str, what: str, message: str) -> Change:
    """Register a faulty torch-facing function; `message` is part of what `entry` says of it."""
    return cheat(name, what, ENTRY, message)


def in_place_of(port: Port, name: str, value: str, which: int = 0) -> Port | None:
    """The launch's arguments with another text for one of them."""
    found = re.search(r"    args = \((.*),\)\n", port.text)
    assert found
    texts = found.group(1).split(", ")
    at = [i for i, t in enumerate(texts) if t == name]
    if len(at) <= which:
        return None
    texts[at[which]] = value
    return Port(port.text.replace(found.group(), f"    args = ({', '.join(texts)},)\n"))


def asked_numbers(port: Port, case: Case) -> list[str]:
    """Scalars that the torch-facing function takes and hands on as they are."""
    taken = {a.arg for a in (*port.wrapper.args.args, *port.wrapper.args.kwonlyargs)}
    return [n for n, _ in case.scalars if n in taken and f" {n}," in port.text.split("    args = (")[1].split("\n")[0]]


def floats(port: Port, case: Case) -> list[str]:
    found = dict(case.scalars)
    return [n for n in asked_numbers(port, case) if re.fullmatch(r"[\d.]+e?-?\d*", found[n][0]) and not
            found[n][0].isdigit()]  # fmt: skip


def after_check(port: Port, *lines: str) -> Port | None:
    """Statements after the last runtime.check."""
    found = list(re.finditer(r"    runtime\.check\(.*\)\n", port.text))
    if not found:
        return None
    end = found[-1].end()
    return Port(port.text[:end] + "".join(f"    {line}\n" for line in lines) + port.text[end:])


def matrix(case: Case, roles: tuple[str, ...] = ("in", "inout")) -> str:
    """A buffer of at least two dimensions, "" where there is none."""
    found = [b.name for b in case.buffers if b.role in roles and len(b.shape) > 1 and not b.optional]
    return found[0] if found else ""


# ---------------------------------------------------------------- the tensors are touched


@faulty("output-zeroed-after", "the output is zeroed after the launch", "fills")
def _(port: Port, case: Case) -> Port | None:
    return port.after_launch(f"{outputs(case)[0]}.zero_()")


@faulty("output-filled-after", "a view of the output is filled after the launch", "fills")
def _(port: Port, case: Case) -> Port | None:
    return port.after_launch(f"{outputs(case)[0]}.view(-1).fill_(1.0)")


@faulty("operand-filled-before", "the last operand is filled before the launch", "fills")
def _(port: Port, case: Case) -> Port | None:
    names = inputs(case)
    return port.in_wrapper(f"{names[-1]}.fill_(1)") if names else None


@faulty("one-row-zeroed", "one row of the output is zeroed", "fills")
def _(port: Port, case: Case) -> Port | None:
    return port.after_launch(f"{outputs(case)[0]}[:1].zero_()")


@faulty("asks-what-it-is", "a tensor is asked for an attribute that says whether it is one", "uses .grad_fn")
def _(port: Port, case: Case) -> Port | None:
    name = outputs(case)[0]
    return port.after_launch(f'if hasattr({name}, "grad_fn"):', "    return None")


@faulty("returns-another", "fresh memory is returned in the output's place", "returns memory")
def _(port: Port, case: Case) -> Port | None:
    name = outputs(case)[0]
    return port.after_launch(f"return {name}.new_zeros({name}.shape)")


# ---------------------------------------------------------------- other operands


@faulty("operands-swapped", "the first two pointers are given in the other order", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    if len(port.pointers) < 2:
        return None
    a, b = port.pointers[:2]
    made = in_place_of(port, a, "swapped")
    made = made and in_place_of(made, b, a)
    return made and in_place_of(made, "swapped", b)


@faulty("output-as-input", "an input's place is taken by the output", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    names = inputs(case)
    return in_place_of(port, names[-1], outputs(case)[0]) if names else None


@faulty("fresh-output", "the kernel writes into memory that nobody sees", "memory that the function allocates")
def _(port: Port, case: Case) -> Port | None:
    name = outputs(case)[0]
    return after_check(port, f"{name} = {name}.new_empty({name}.shape)")


@faulty("fresh-output-of-torch", "the same, with torch.empty_like", "memory that the function allocates")
def _(port: Port, case: Case) -> Port | None:
    name = outputs(case)[0]
    made = after_check(port, f"{name} = torch.empty_like({name})")
    return made and made.with_import("import torch")


@faulty("second-row", "a pointer begins one row on", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    name = matrix(case)
    return in_place_of(port, name, f"{name}[min(1, len({name}))]") if name else None


@faulty("address-off", "an address is two bytes on", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    name = outputs(case)[0]
    return in_place_of(port, name, f"{name}.data_ptr() + 2")


@faulty("null-operand", "an operand, an optional one where there is one, is never given", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    names = [b.name for b in case.buffers if b.optional] + inputs(case)
    return in_place_of(port, names[0], "None") if names else None


# ---------------------------------------------------------------- other numbers


@faulty("constant-number", "a number of the caller's is a literal", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    names = floats(port, case)
    return in_place_of(port, names[0], dict(case.scalars)[names[0]][0]) if names else None


@faulty("rounded-number", "a number of the caller's is rounded", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    names = floats(port, case)
    return in_place_of(port, names[0], f"round({names[0]}, 6)") if names else None


@faulty("scaled-number", "a number of the caller's is doubled", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    names = asked_numbers(port, case)
    return in_place_of(port, names[0], f"{names[0]} * 2") if names else None


@faulty("length-off-by-one", "a length is one less", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    texts = re.search(r"    args = \((.*),\)\n", port.text)
    assert texts
    name = texts.group(1).split(", ")[-1]
    return in_place_of(port, name, f"{name} - 1") if name in port.numbers else None


@faulty("stride-of-shape", "the row stride is taken from the row's length", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    (\w+) = (\w+)\.stride\(0\)\n", port.text)
    if not found:
        return None
    stride, name = found.groups()
    return in_place_of(port, stride, f"{name}.shape[1]") if f"({stride}, 1)" in port.text else None


@faulty("stride-assumed", "the row stride is the row's length, and strides are not checked", "which no instance takes")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    (\w+) = (\w+)\.stride\(0\)\n", port.text)
    if not found:
        return None
    stride, name = found.groups()
    made = port.replaced(f"strides=({stride}, 1)", f"strides={name}.stride()")
    return made and in_place_of(made, stride, f"{name}.shape[-1]")


@faulty("stride-in-bytes", "the row stride is given in bytes", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    (\w+) = (\w+)\.stride\(0\)\n", port.text)
    return in_place_of(port, found.group(1), f"{found.group(1)} * {found.group(2)}.element_size()") if found else None


def declared(port: Port, was: str, now: str, called: str = "") -> Port | None:
    """The numbers of a type (of names that fit `called`) declared with another one, through which the launch function
    then gets them."""
    text = re.sub(rf'runtime\.Num\("(\w*(?:{called})\w*)", "{was}"\)', rf'runtime.Num("\1", "{now}")', port.text)
    return Port(text) if text != port.text else None


@faulty("count-of-eight-bits", "KERNEL declares numbers of 32 bits with 8", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    return declared(port, "i32", "i8")


@faulty("count-of-sixteen-bits", "KERNEL declares numbers of 32 bits with 16", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    return declared(port, "i32", "i16")


@faulty("stride-of-32-bits", "KERNEL declares strides and counts of vectors of 64 bits with 32", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    return declared(port, "i64", "i32", "stride|vecs")  # no memory has so many rows


@faulty("factor-of-bfloat16", "KERNEL declares factors of the caller's as bfloat16", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    return declared(port, "f32", "bf16") if floats(port, case) else None


@faulty("factor-of-float16", "KERNEL declares factors of the caller's as float16", "gives the kernel's")
def _(port: Port, case: Case) -> Port | None:
    return declared(port, "f32", "f16") if floats(port, case) else None


# ---------------------------------------------------------------- other launches


@faulty("grid-of-one", "one block is launched", "launches the grid")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("grid=grid,", "grid=(1, 1, 1),") if "return (1, 1, 1)" not in port.text else None


@faulty("half-a-block", "half of the threads are launched", "launches the block")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("block=block,", "block=(max(block[0] // 2, 1), block[1], block[2]),")


@faulty("no-shared-memory", "the launch has another amount of shared memory", "bytes of shared memory")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("smem_bytes=smem_bytes)", "smem_bytes=smem_bytes // 2 + 16)")


@faulty("launched-twice", "the kernel is launched a second time", "launches the kernel 2 times")
def _(port: Port, case: Case) -> Port | None:
    found = re.search(r"    (KERNEL\.launch\(.*\))\n?", port.text)
    assert found
    return port.after_launch(found.group(1))


@faulty("stream-zero", "the launch is on stream 0", "stream other than")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("smem_bytes=smem_bytes)", "smem_bytes=smem_bytes, stream=0)")


@faulty("device-zero", "the launch is on the first device", "not on the launch's")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced("smem_bytes=smem_bytes)", "smem_bytes=smem_bytes, device=0)")


@faulty("many-rows-capped", "the grid stops growing at a size that no launch reaches", "launches the grid")
def _(port: Port, case: Case) -> Port | None:
    return port.in_wrapper("grid = (min(grid[0], 5000), grid[1], grid[2])") if "tokens, 1, 1" in port.text else None


@faulty("nothing-for-one", "one row launches nothing", "launches nothing")
def _(port: Port, case: Case) -> Port | None:
    name = matrix(case)
    return port.in_wrapper(f"grid = (0, 1, 1) if {name}.shape[0] == 1 else grid") if name else None


@faulty("large-rows-halved", "from 1500 rows on half of the grid is launched", "launches the grid")
def _(port: Port, case: Case) -> Port | None:
    lines = ("if grid[0] > 1500:", "    grid = (grid[0] // 2, grid[1], grid[2])")
    return port.in_wrapper(*lines) if "(tokens, 1, 1)" in port.text or "(rows, 1, 1)" in port.text else None


@faulty("default-in-config", "launch_config has a default that the function does not replace", "verified is")
def _(port: Port, case: Case) -> Port | None:
    return in_config(port, ", sm_count=132, **_", "if sm_count == 132:", "    return (1, 1, 1), (32, 1, 1), 0")


@faulty("absent-in-config", "launch_config is right only with a keyword that the function does not give", "verified is")
def _(port: Port, case: Case) -> Port | None:
    names = [n for n, _ in case.scalars if f"{n}=" not in port.text.split("= launch_config(")[1].split("\n")[0]]
    return (
        in_config(port, ", **_", f'if "{names[0]}" not in _:', "    return (1, 1, 1), (32, 1, 1), 0") if names else None
    )


@faulty("none-in-config", "a keyword of launch_config that the function leaves out is None by default", "verified is")
def _(port: Port, case: Case) -> Port | None:
    names = [n for n, _ in case.scalars if f"{n}=" not in port.text.split("= launch_config(")[1].split("\n")[0]]
    if not names:
        return None
    return in_config(port, f", {names[0]}=None, **_", f"if {names[0]} is None:", "    return (1, 1, 1), (64, 1, 1), 0")


def in_config(port: Port, head: str, *lines: str) -> Port:
    """launch_config with another end of its parameters and statements in front."""
    anchor = '    """(grid, block, dynamic shared memory in bytes) of a launch."""\n'
    text = port.text.replace(
        ", **_):\n" + anchor, head + "):\n" + anchor + "".join(f"    {line}\n" for line in lines), 1
    )
    assert text != port.text
    return Port(text)


# ---------------------------------------------------------------- other instances, operands that nobody takes


@faulty("another-type", "bf16 is launched as f16", "launches the instance")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced('{"scalar_t": "bf16"', '{"scalar_t": "f16"')


@faulty("alignment-unasked", "no operand is asked for its alignment", "")
def _(port: Port, case: Case) -> Port | None:
    text = re.sub(r" and runtime\.aligned\(\w+, \d+\)", "", port.text)
    return Port(text) if text != port.text else None


@faulty("alignment-of-one", "only the first operand's alignment is asked for", "")
def _(port: Port, case: Case) -> Port | None:
    text = re.sub(r"( and runtime\.aligned\(\w+, \d+\))( and runtime\.aligned\(\w+, \d+\))+", r"\1", port.text)
    return Port(text) if text != port.text else None


@faulty("alignment-too-small", "half of the alignment is asked for", "")
def _(port: Port, case: Case) -> Port | None:
    return (
        Port(port.text.replace(", 16)", ", 8)")) if "runtime.aligned(" in port.text and ", 16)" in port.text else None
    )


@faulty("slow-instance", "the instance for wide accesses is never taken", "")
def _(port: Port, case: Case) -> Port | None:
    made = port.replaced('    if scalar_t == "bf16" and', '    if scalar_t == "bf16" and hidden < 0 and')
    return made if made and "hidden = " in made.text and port.text.count('"bf16", "VEC"') > 1 else None


@faulty("dtype-unchecked", "the dtype of an operand is not checked", "which no instance takes")
def _(port: Port, case: Case) -> Port | None:
    return unchecked(port, 2, "runtime.name_of({name}.dtype)")


@faulty("shape-unchecked", "the shape of an operand is not checked", "which no instance takes")
def _(port: Port, case: Case) -> Port | None:
    return unchecked(port, 3, "{name}.shape")


@faulty("strides-unchecked", "an operand may have gaps that the kernel does not know of", "which no instance takes")
def _(port: Port, case: Case) -> Port | None:
    checks = re.findall(
        r'    (runtime\.check\("\w+", (\w+), .*, \(.*?\))(, strides=\(.*?\))?((?:, device=.*)?\))\n', port.text
    )
    call, name, strides, rest = checks[-1]
    return Port(port.text.replace(call + strides + rest, f"{call}, strides={name}.stride(){rest}"))


def unchecked(port: Port, place: int, text: str) -> Port | None:
    """The last operand's runtime.check asks the operand itself what it has to be."""
    found = re.findall(r'    runtime\.check\("(\w+)", (\w+), ([^,]+), (\(.*?\))(?=, |\)\n)', port.text)
    name, variable, dtype, shape = found[-1]
    old = f'runtime.check("{name}", {variable}, {dtype}, {shape}'
    parts = [variable, variable, dtype, shape]
    parts[place] = text.format(name=variable)
    return port.replaced(old, f'runtime.check("{name}", {variable}, {parts[2]}, {parts[3]}')


@faulty("stride-unasked", "a stride need not fit the instance's vectors", "")
def _(port: Port, case: Case) -> Port | None:
    text = re.sub(r"\b(\w*stride\w*) % (\d+) == 0", r"\1 % \2 >= 0", port.text)
    return Port(text) if text != port.text else None


@faulty("dtype-by-order", "dtypes are compared by their names' order", "")
def _(port: Port, case: Case) -> Port | None:
    return port.replaced('scalar_t == "f16"', 'scalar_t <= "f16"')


@faulty("nothing-launched", "the launch is left out", "")
def _(port: Port, case: Case) -> Port | None:
    text = re.sub(r"^(    +)KERNEL\.launch\(.*\)$", r"\1pass", port.text, flags=re.MULTILINE)
    return Port(text) if text != port.text else None
