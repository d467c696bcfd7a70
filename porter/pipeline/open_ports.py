"""Ports that exist: found by name or folder, with their records and what they were made from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes
from porter.config import PortConfig
from porter.files.folders import files_below
from porter.model import (
    Diagnostic,
    LineMapEntry,
    PorterError,
    Severity,
)
from porter.provenance.record import PortRecord, record_path, relative
from porter.provenance.store import read_record
from porter.source import Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


def find_ports(paths: Sequence[Path]) -> list[Path]:
    """The ports named, by themselves or by their `.port.json`, and those in the folders named (.py files with one).

    Raises PorterError PRT010 for a path that is not there, PRT955 when there is no port.
    """
    found: dict[Path, None] = {}
    for named in paths:
        path = named.with_name(named.name.removesuffix(".port.json") + ".py") if named.suffix == ".json" else named
        if path.is_dir():
            found |= dict.fromkeys(p for p in files_below(path, ".py") if record_path(p).is_file())
        elif path.is_file():
            found[path] = None
        else:
            raise PorterError(
                Diagnostic(codes.UNREADABLE_SOURCE, f"there is no file or folder {path}", Span(str(path), 0))
            )
    if not found:
        names = " ".join(map(str, paths))
        help_ = "a port has its `.port.json` beside it; `porter port` makes both"
        raise PorterError(
            Diagnostic(codes.UNREADABLE_RECORD, f"no port in {names}", Span(str(paths[0]), 0), help=help_)
        )
    return list(found)


def is_port(path: Path) -> bool:
    """Whether a file is a port or its record (of which the other may be missing), or a folder."""
    named = path.with_name(path.name.removesuffix(".port.json") + ".py") if path.suffix == ".json" else path
    return path.is_dir() or path.name.endswith(".port.json") or (named.suffix == ".py" and record_path(named).is_file())


def recorded(port: Path) -> PortRecord:
    """The record of a port. Raises PorterError PRT955 when there is none."""
    record = read_record(port)
    if record is None:
        help_ = "porter verifies what `porter port` made; its record is kept beside it"
        raise PorterError(
            Diagnostic(
                codes.UNREADABLE_RECORD, f"{port} has no {record_path(port).name}", Span(str(port), 0), help=help_
            )
        )
    return record


def recorded_config(record: PortRecord, folder: Path, config: PortConfig) -> PortConfig:
    """`config` with what the port was made with: how the source is read, its case, its architectures."""
    options = record.options
    return replace(
        config,
        std=options.get("std", config.std),
        define=tuple(options.get("define", ())),
        include=tuple(os.path.normpath(folder / i) for i in options.get("include", ())),
        math=tuple(options.get("math", ())),
        pre_include=tuple(os.path.normpath(folder / i) for i in options.get("pre_include", ())),
        case=config.case or (Path(os.path.normpath(folder / record.case)) if record.case else None),
        arch=record.arches or config.arch,
        instantiate=(),
    )


def changed_since(record: PortRecord, unit: ParsedUnit, port: Path) -> list[Diagnostic]:
    """A warning where the source, or a file that it includes, is no longer the one that was ported."""
    from porter.frontend.parse.project_headers import project_headers

    help_ = "the port is verified against the source as it is now; `porter port` regenerates it"
    found = [str(unit.source.path)] if record.source_sha256 != unit.source.sha256 else []
    if record.headers:
        now_ = {relative(name, port.parent): (name, sha256) for name, sha256 in project_headers(unit).items()}
        found += [name for key, (name, sha256) in now_.items() if record.headers.get(key) != sha256]
    return [
        Diagnostic(
            codes.SOURCE_CHANGED, f"{n} has changed since {port} was made from it", Span(n, 0), Severity.WARNING, help_
        )
        for n in found
    ]


def moved_map(entries: tuple[LineMapEntry, ...], folder: Path) -> tuple[LineMapEntry, ...]:
    """A record's line map with files as seen from the working folder instead of from `folder`."""
    return tuple(replace(e, span=replace(e.span, file=os.path.relpath(folder / e.span.file))) for e in entries)
