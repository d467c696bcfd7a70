"""Why a region is as it is: CUDA span, IR, who wrote it and with what, port lines, PTX, SASS."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from porter import ir
from porter.config import PortConfig
from porter.instances import instance_values
from porter.model import PorterError
from porter.outputs import Translation
from porter.review.changes import translated
from porter.review.loaded import Loaded
from porter.review.regions import Region
from porter.review.words import assumption_words, author_words, library_words

MOST = 60  # lines of PTX or SASS that are shown


def why(loaded: Loaded, region: Region, config: PortConfig) -> Iterator[str]:
    """The parts in order, as soon as each is known; translating and compiling take seconds. Raises nothing."""
    yield "CUDA\n" + numbered(loaded.cuda_lines, loaded.cuda_now(region))
    made: Translation | None = None
    try:
        made = translated(loaded, config)
        yield "IR (first instance)\n" + ("\n".join(ir_lines(made.kernels[0], set(region.cuda))) or "none: no statement")
    except PorterError as error:
        yield f"IR\nnot known: {error}"
    yield "rewrite\n" + "\n".join(
        [
            author_words(loaded, region),
            *assumption_words(loaded, region),
            *library_words(loaded.port_text(region)),
        ]
    )
    yield "CuTeDSL\n" + numbered(loaded.port_lines, range(region.first, region.last + 1))
    if made is not None:
        yield from _compiled(loaded, region, made)


def numbered(lines: list[str], numbers: Collection[int]) -> str:
    return "\n".join(f"{n:5} {lines[n - 1]}" for n in numbers) or "none"


def ir_lines(kernel: ir.Kernel, cuda: set[int]) -> list[str]:
    """The statements that start at these CUDA lines, without those inside of others."""
    from porter.ir_text import format_stmts

    out: list[str] = []
    inside: set[int] = set()
    for body in (kernel.body, *(f.body for f in kernel.functions.values())):
        for node in ir.walk(body):
            if isinstance(node, ir.Stmt) and node.span.line in cuda and id(node) not in inside:
                inside |= {id(n) for n in ir.walk((node,))}
                out += format_stmts((node,), 0)
    return out


def _compiled(loaded: Loaded, region: Region, made: Translation) -> Iterator[str]:
    from porter.verify.compile_worker import CompileRequest, compile_port

    if loaded.holes:
        yield "PTX\nnone: a port with holes does not compile"
        return
    arch = loaded.record.arches[0] if loaded.record and loaded.record.arches else "sm_90a"
    values = instance_values(made.info, made.instances[0]) if made.instances else {}
    (result,) = compile_port(loaded.path, [CompileRequest(values, arch)])
    if not result.ok:
        yield f"PTX\nthe port does not compile: {result.error}"
        return
    lines = range(region.first, region.last + 1)
    yield f"PTX ({arch}, first instance)\n" + _cut(ptx_lines(result.ptx, loaded.path.name, lines))
    yield "SASS\n" + sass(result.cubin, loaded.path.name, lines)


def ptx_lines(ptx: str, file: str, lines: Collection[int]) -> list[str]:
    """The instructions whose `.loc` is one of the port's lines. Files are compared by name: code may be cached."""
    files = re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE)
    numbers = {n for n, path in files if Path(path).name == file}
    found: list[str] = []
    at = 0
    for row in ptx.splitlines():
        place = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", row)
        if place:
            at = int(place[2]) if place[1] in numbers else 0
        elif at in lines and row.startswith("\t") and not row.strip().startswith((".", "//")):
            found.append(f"{at:5} {row.strip()}")
    return found


def sass(cubin: bytes, file: str, lines: Collection[int]) -> str:
    """The machine instructions of the port's lines, by nvdisasm where it is installed."""
    tool = shutil.which("nvdisasm")
    if tool is None:
        return "not shown: nvdisasm is not installed"
    with tempfile.TemporaryDirectory(prefix="porter-") as folder:
        path = Path(folder) / "port.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-g", "-c", str(path)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return f"nvdisasm failed: {done.stderr.strip()[:200]}"
    found: list[str] = []
    at = 0
    for row in done.stdout.splitlines():
        place = re.search(r'//## File "([^"]*)", line (\d+)', row)
        if place:
            at = int(place[2]) if Path(place[1]).name == file else 0
        elif at in lines and "/*" in row:
            found.append(f"{at:5} {row.strip()}")
    return _cut(found)


def _cut(rows: list[str]) -> str:
    more = [f"... and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return "\n".join([*rows[:MOST], *more]) or "none: the compiler merged these lines with others, or removed them"
