"""The content of `<name>.port.json`: where a port came from, what wrote each line, what the verifier said.

One schema (docs/port-json.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import zlib
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from porter import __version__
from porter.case.model import Case
from porter.corpus.library import VERSION as LIBRARY_VERSION
from porter.model import Assumption, Hole, Instance, LineMapEntry, Verdict
from porter.plain_files import is_plain, read_plain
from porter.provenance.json import (
    assumption_from_json,
    assumption_to_json,
    hole_from_json,
    hole_to_json,
    instances_to_json,
    line_map_from_json,
    line_map_to_json,
    packed,
    plain,
    unpacked,
    verdict_from_json,
    verdict_to_json,
)
from porter.source import lines_of

SCHEMA = 1


@dataclass(frozen=True)
class PortRecord:
    """The content of one `.port.json`. Paths are as written there: relative to its folder, with forward slashes."""

    kernel: str
    source: str = ""
    source_sha256: str = ""
    source_text: str = ""  # as it was ported; "" in records of earlier versions
    headers: dict[str, str] = field(default_factory=dict)  # SHA-256 of what the source includes, by path
    case: str = ""
    case_sha256: str = ""
    reference_sha256: str | None = None  # of the file that the case's reference is in, "" without; None: not known
    emitted_sha256: str = ""  # of the text porter wrote last
    previous_sha256: str = ""  # of the text before: a crash between the two files must not look like an edit
    line_hashes: tuple[str, ...] = ()  # crc32 of each emitted line, to re-anchor the map after an edit
    line_map: tuple[LineMapEntry, ...] = ()
    instances: tuple[Instance, ...] = ()
    arches: tuple[str, ...] = ()
    holes: tuple[Hole, ...] = ()
    patterns: tuple[str, ...] = ()
    symbols: dict[str, str] = field(default_factory=dict)  # parameter of the port -> the variable that it stands for
    assumptions: tuple[Assumption, ...] = ()  # what those patterns take for granted
    verdicts: tuple[Verdict, ...] = ()
    verified_sha256: str = ""  # of the port text that the verdicts are about
    baseline: dict[str, Any] = field(default_factory=dict)  # what the port once achieved: porter.provenance.baseline
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)  # keys of other tools and later versions, kept as they are


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def reference_sha256(case: Case) -> str:
    """Of the file that a case's reference is in; "" where it is one of porter's own, or there is no such file."""
    path = case.reference_path
    return hashlib.sha256(read_plain(path)).hexdigest() if path is not None and is_plain(path) else ""


def line_hashes(text: str) -> tuple[str, ...]:
    return tuple(f"{zlib.crc32(line.strip().encode()):08x}" for line in lines_of(text))


def record_path(port: Path) -> Path:
    """ported/rms_norm.py -> ported/rms_norm.port.json"""
    return port.with_name(port.stem + ".port.json")


def relative(path: str | Path, folder: Path) -> str:
    """`path` as `.port.json` spells it, seen from `folder`."""
    return Path(os.path.relpath(path, folder)).as_posix() if str(path) else ""


def tool_versions() -> dict[str, str]:
    """Versions of everything a port depends on (`library`: see corpus/library.py); a tool that is not installed is left
    out. Imports none of them."""
    found = {"python": platform.python_version(), "porter": __version__, "library": str(LIBRARY_VERSION)}
    for name, packages in {
        "dsl": ("nvidia-cutlass-dsl",),
        "torch": ("torch",),
        "clang": ("libclang-ng", "libclang"),
    }.items():
        for package in packages:
            with contextlib.suppress(metadata.PackageNotFoundError):
                found[name] = metadata.version(package)
                break
    return found


# ---------------------------------------------------------------- JSON


def to_text(record: PortRecord) -> str:
    """The file's text: known keys in a fixed order, then kept ones; the line map one row a line, for readable diffs."""
    parts = []
    for key, value in to_json(record).items():
        if key == "line_map":
            rows = ",\n".join("   " + json.dumps(row) for row in value["rows"])
            fields = [f'  "{name}": {json.dumps(value[name], ensure_ascii=False)}' for name in ("files", "authors")]
            fields.append('  "rows": [' + (f"\n{rows}\n  " if rows else "") + "]")
            text = "{\n" + ",\n".join(fields) + "\n }"
        else:
            text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).replace("\n", "\n ")
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def to_json(record: PortRecord) -> dict[str, Any]:
    known = {
        "schema": SCHEMA,
        "kernel": record.kernel,
        "source": {"path": record.source, "sha256": record.source_sha256, "headers": dict(record.headers)},
        "case": {"path": record.case, "sha256": record.case_sha256}
        | ({} if record.reference_sha256 is None else {"reference_sha256": record.reference_sha256}),
        "port": {
            "sha256": record.emitted_sha256,
            "previous_sha256": record.previous_sha256,
            "lines": " ".join(record.line_hashes),
        },
        "instances": instances_to_json(record.instances),
        "arches": list(record.arches),
        "patterns": list(record.patterns),
        "assumptions": [assumption_to_json(a) for a in record.assumptions],
        "holes": [hole_to_json(h) for h in record.holes],
        "verified_sha256": record.verified_sha256,
        "verdicts": [verdict_to_json(v) for v in record.verdicts],
        "baseline": plain(record.baseline),
        "options": plain(record.options),
        "versions": dict(record.versions),
        "line_map": line_map_to_json(record.line_map),
    }
    if record.symbols:
        known["symbols"] = dict(record.symbols)
    if record.source_text:
        known["source_text"] = packed(record.source_text)
    return known | {k: v for k, v in record.extra.items() if k not in known}


def from_json(value: dict[str, Any]) -> PortRecord:
    """The inverse of to_json. Raises DamagedRecord, KeyError, TypeError, AttributeError or IndexError."""
    source, case, port = value.get("source", {}), value.get("case", {}), value.get("port", {})
    record = PortRecord(
        kernel=value["kernel"],
        source=source.get("path", ""),
        source_sha256=source.get("sha256", ""),
        source_text=unpacked(value.get("source_text", "")),
        headers=dict(source.get("headers", {})),
        case=case.get("path", ""),
        case_sha256=case.get("sha256", ""),
        reference_sha256=case.get("reference_sha256"),
        emitted_sha256=port.get("sha256", ""),
        previous_sha256=port.get("previous_sha256", ""),
        line_hashes=tuple(port.get("lines", "").split()),
        line_map=line_map_from_json(value.get("line_map", {})),
        instances=tuple(Instance(tuple(args)) for args in value.get("instances", ())),
        arches=tuple(value.get("arches", ())),
        holes=tuple(hole_from_json(h) for h in value.get("holes", ())),
        patterns=tuple(value.get("patterns", ())),
        symbols={str(k): str(v) for k, v in value.get("symbols", {}).items()},
        assumptions=tuple(assumption_from_json(a) for a in value.get("assumptions", ())),
        verdicts=tuple(verdict_from_json(v) for v in value.get("verdicts", ())),
        verified_sha256=value.get("verified_sha256", ""),
        baseline=dict(value.get("baseline", {})),
        options=dict(value.get("options", {})),
        versions=dict(value.get("versions", {})),
    )
    return replace(record, extra={k: v for k, v in value.items() if k not in to_json(record)})
