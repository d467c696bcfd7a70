"""The launches that a port itself asks for: its `launch_config`, evaluated in a child process, remembered on disk."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from porter import codes
from porter.case.expressions import Value
from porter.case.reader import Case, LaunchShape, Point
from porter.corpus.runtime import ArtifactCache, digest
from porter.corpus.runtime.sources import source_closure
from porter.emit.spelling import parameter
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.syntax import module_tree
from porter.verify.compile.worker import launch_shapes
from porter.verify.launches.attributes import LaunchAttributes, attributes_of

FUNCTION = "launch_config"
_BATCH = 4000  # calls a request


def port_launches(
    port_path: Path, case: Case, wanted: Sequence[tuple[Mapping[str, Value], Point]], sm_count: int
) -> list[LaunchShape]:
    """The port's launch for each (template values, point), with the attributes of its own `.launch(...)`.

    Raises PorterError PRT807 when the port has no launch_config or it fails, with its line; PRT844 for attributes that
    cannot be read.
    """
    found: list[LaunchShape] = []
    for answer, (_, point) in zip(answered(port_path, case, wanted, sm_count), wanted, strict=True):
        if isinstance(answer, Failed):
            message = f"{FUNCTION} fails at {point}: {answer.error}"
            raise PorterError(Diagnostic(codes.PORT_LAUNCH, message, Span(str(port_path), answer.line)))
        found.append(answer)
    return found


@dataclass(frozen=True)
class Failed:
    """What launch_config raised, and at which line of the port."""

    error: str
    line: int


def answered(
    port_path: Path, case: Case, wanted: Sequence[tuple[Mapping[str, Value], Point]], sm_count: int
) -> list[LaunchShape | Failed]:
    """As `port_launches`, with what launch_config raises in the place of a launch: sizes that a port does not take."""
    text = port_path.read_text(encoding="utf-8")
    parameters, takes_all = _signature(text, port_path)
    calls = []
    for values, point in wanted:
        names = {**point.names(values), "sm_count": sm_count}
        names = {**{parameter(k): v for k, v in names.items()}, **names}
        calls.append({k: v for k, v in names.items() if takes_all or k in parameters})
    sources = [f"{file.name} {sha}" for file, sha in source_closure(port_path)]
    cache = ArtifactCache("port-launches")
    key = digest(["2", *sources, json.dumps([calls, sm_count])])
    folder = cache.get(key)
    if folder is None:
        answers = []
        for start in range(0, len(calls), _BATCH):
            answers += launch_shapes(port_path, calls[start : start + _BATCH], sm_count)
        rows = [[a.error, a.line] if a.error else [list(a.grid), list(a.block), a.smem_bytes] for a in answers]
        folder = cache.put(key, {"launches.json": json.dumps(rows).encode()})
    attributes: dict[int, LaunchAttributes] = {}
    found: list[LaunchShape | Failed] = []
    for row, (values, _) in zip(json.loads((folder / "launches.json").read_text()), wanted, strict=True):
        if len(row) == 2:
            found.append(Failed(*row))
            continue
        own = attributes.get(id(values))
        if own is None:
            own = attributes[id(values)] = attributes_of(text, values, str(port_path))
        grid, block, smem = row
        smem = smem if own.smem is None else own.smem
        found.append(LaunchShape(_three(grid), _three(block), smem, own.cooperative, own.cluster, own.use_pdl))
    return found


def _three(values: Sequence[int]) -> tuple[int, int, int]:
    padded = [*values, 1, 1, 1]
    return (padded[0], padded[1], padded[2])


def _signature(text: str, port_path: Path) -> tuple[set[str], bool]:
    """Parameter names of launch_config, and whether it takes any keyword."""
    tree = module_tree(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == FUNCTION:
            arguments = node.args
            names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
            return names, arguments.kwarg is not None
    message = f"the port has no {FUNCTION}: nothing says how it is launched"
    raise PorterError(Diagnostic(codes.PORT_LAUNCH, message, Span(str(port_path), 1)))
