"""Why a region is as it is: CUDA span, IR, who wrote it and with what, port lines, PTX, SASS."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from porter import ir
from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.model import PorterError
from porter.pipeline.outputs import Translation
from porter.review.descriptions import describe_assumptions, describe_author, describe_library_calls
from porter.review.port.actions import translated
from porter.review.port.machine_code import PortListing, instructions, place_in, relabelled
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort
from porter.verify.compile.nvdisasm import disassemble
from porter.verify.compile.ptxas import cubin_of
from porter.wording import plural

if TYPE_CHECKING:
    from porter.verify.compile.worker import CompileResult

MOST = 60  # lines of PTX or SASS that are shown
FOUND = "; ~: found by the library call, or by what stands before"


def why(port: ReviewedPort, region: Region, config: PortConfig) -> Iterator[str]:
    """The parts in order, as soon as each is known; translating and compiling take seconds. Raises nothing."""
    rows = [f"{f'{file}:' if file else ''}{n:5} {text}" for file, n, text in port.cuda_rows(region)]
    yield "CUDA\n" + ("\n".join(rows) or "none")
    made: Translation | None = None
    try:
        made = translated(port, config)
        yield "IR (first instance)\n" + _ir(made.kernels[0], port, region)
    except PorterError as error:
        yield f"IR\nnot known: {error}"
    yield "rewrite\n" + "\n".join(
        [
            describe_author(port, region),
            *describe_assumptions(port, region),
            *describe_library_calls(port.port_text(region)),
        ]
    )
    if made is not None:
        before, after = _ir(made.kernels[0], port, region), _ir(made.plan.concrete[0], port, region)
        yield "IR after the rewrites\n" + (after if after != before else "the same")
    yield "CuTeDSL\n" + numbered(port.port_lines, range(region.first, region.last + 1))
    if made is not None:
        yield from _compiled(port, region, made)


def numbered(lines: list[str], numbers: Collection[int]) -> str:
    return "\n".join(f"{n:5} {lines[n - 1]}" for n in numbers) or "none"


def _ir(kernel: ir.Kernel, port: ReviewedPort, region: Region) -> str:
    places = {(port.cuda_path.name, n) for n in region.cuda}
    places |= {(Path(file).name, n) for file, lines in region.elsewhere for n in lines}
    return "\n".join(ir_lines(kernel, places)) or "none: no statement"


def ir_lines(kernel: ir.Kernel, places: set[tuple[str, int]]) -> list[str]:
    """The statements that start at these places (name of a file, line), without those inside of others."""
    from porter.ir.printer import format_stmts, function_names

    names = function_names(kernel)
    out: list[str] = []
    inside: set[int] = set()
    for body in (kernel.body, *(f.body for f in kernel.functions.values())):
        for node in ir.walk(body):
            if (
                isinstance(node, ir.Stmt)
                and (Path(node.span.file).name, node.span.line) in places
                and id(node) not in inside
            ):
                inside |= {id(n) for n in ir.walk((node,))}
                out += format_stmts((node,), 0, names)
    return out


def _compiled(port: ReviewedPort, region: Region, made: Translation) -> Iterator[str]:
    from porter.verify.compile.worker import CompileRequest, compile_port

    if port.holes:
        yield "PTX\nnone: a port with holes does not compile"
        return
    arch = port.record.arches[0] if port.record and port.record.arches else "sm_90a"
    values = instance_values(made.info, made.instances[0]) if made.instances else {}
    (result,) = compile_port(port.path, [CompileRequest(values, arch)])
    if not result.ok:
        yield f"PTX\nthe port does not compile: {result.error}"
        return
    listing = PortListing(port.path.name, port.port_lines, _device_lines(port))
    lines = range(region.first, region.last + 1)
    rows = [f"{at!s:>6} {text}" for at, text in instructions(result.ptx, listing) if at.line in lines]
    yield f"PTX ({arch}, first instance{FOUND if any('~' in r[:6] for r in rows) else ''})\n" + _cut(rows)
    yield "SASS" + _sass(result, listing, lines)


def _device_lines(port: ReviewedPort) -> set[int]:
    """The port's lines in kernel and device functions: what the line table says of others is not about the code."""
    inside = (r for r in port.regions if r.function and r.kind != "launch")
    return {n for r in inside for n in range(r.first, r.last + 1)}


def _sass(result: CompileResult, listing: PortListing, lines: Collection[int]) -> str:
    """The machine instructions of the port's lines, by nvdisasm where it is installed."""
    try:
        code = disassemble(result.cubin, result.entry)
        better = cubin_of(relabelled(result.ptx, listing), result.request.arch)
        again = disassemble(better, result.entry) if better else ()
    except (RuntimeError, OSError) as error:
        return f"\nnot shown: {error}"
    how = ""
    if [i.text for i in again] == [i.text for i in code]:
        code, how = again, FOUND  # the same code, with the lines of library calls too
    elif better:
        how = "; lines that the compiler names itself: ptxas and the DSL's assembler make different code of this PTX"
    else:
        how = "; lines that the compiler names itself: with ptxas installed, library calls have lines too"
    code = tuple(i for i in code if i.text != "NOP ;")  # padding behind the kernel
    located = [(at, i.text) for i in code if (at := place_in(i.file, i.line, listing)) is not None]
    return f" ({plural(len(code), 'instruction')} in all{how})\n" + _cut(
        [f"{at!s:>6} {text}" for at, text in located if at.line in lines]
    )


def _cut(rows: list[str]) -> str:
    more = [f"... and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return "\n".join([*rows[:MOST], *more]) or "none: the compiler merged these lines with others, or removed them"
