"""What has not changed is neither ported nor verified again.

When all kernels of a file have passed, the cache of this machine keeps what that depended on: the source, what it
includes, its cases, the settings, porter itself, the DSL, and the ports as they were written. While all of it is the
same byte for byte, the answer is the same, and nothing is read further or written. Entries are signed with a key of the
cache folder, so that only this machine's own verdicts count.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import porter
from porter.case.reader import load_case
from porter.config import PortConfig
from porter.corpus.runtime import cache_root, digest
from porter.corpus.runtime.cache import ArtifactCache
from porter.corpus.runtime.signing import signature
from porter.files.folders import files_below
from porter.model import KernelReport, Report
from porter.pipeline.compile_commands import with_build_flags
from porter.plain_files import read_plain
from porter.provenance.json import diagnostic_from_json, diagnostic_to_json
from porter.provenance.record import record_path, tool_versions
from porter.report.console import agrees, is_verified, kernel_from_json, kernel_to_json

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_KIND, _FILE = "unchanged", "answers.json"
_NOT_ASKED = ("jobs", "confirm_cases", "cpu_limit", "verify_cpu_limit", "memory_limit")


def known_reports(paths: Iterable[Path], config: PortConfig) -> dict[Path, Report]:
    """The reports of those files of which nothing has changed since an earlier run. Raises PorterError PRT969."""
    found = ((path, _known(path, with_build_flags(config, path))) for path in paths)
    return {path: report for path, report in found if report is not None}


def _known(path: Path, config: PortConfig) -> Report | None:
    if not _may_be_known(config):
        return None
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError, AttributeError):
        folder = ArtifactCache(_KIND).get(_key(path, config))
        if folder is None:
            return None
        row: dict[str, Any] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if not hmac.compare_digest(str(row.pop("signature", "")), signature(row)):
            return None
        if any(_hash(Path(name)) != sha for name, sha in row["files"].items()):
            return None
        kernels = tuple(replace(kernel_from_json(k), seconds={}, unchanged=True) for k in row["kernels"])
        if config.confirm_cases and any(k.derived for k in kernels):
            return None
        return Report(kernels, tuple(diagnostic_from_json(d) for d in row["diagnostics"]))
    return None


def remember(path: Path, config: PortConfig, unit: ParsedUnit, report: Report) -> None:
    """Keep the report of a file, where every kernel has passed. Never fails a run: an entry only saves time."""
    if not _may_be_known(config) or not report.kernels:
        return
    if not all(is_verified(k) or agrees(k) for k in report.kernels):
        return
    from porter.frontend.parse.project_headers import project_headers

    with contextlib.suppress(OSError):
        files = [Path(name) for name in project_headers(unit)]
        for kernel in report.kernels:
            files += _files_of(path, kernel, config)
        row: dict[str, Any] = {
            "files": {os.path.abspath(f): _hash(f) for f in files},
            "kernels": [kernel_to_json(k) for k in report.kernels],
            "diagnostics": [diagnostic_to_json(d) for d in report.diagnostics],
        }
        row["signature"] = signature(json.loads(json.dumps(row)))
        cache = ArtifactCache(_KIND)
        cache.put(_key(path, config), {_FILE: json.dumps(row, ensure_ascii=False).encode()})


def _may_be_known(config: PortConfig) -> bool:
    """A run that asks for a seed, for --force or for no verification is to be made."""
    return config.verify and not config.force and config.seed is None


def _files_of(path: Path, kernel: KernelReport, config: PortConfig) -> list[Path]:
    """The files that decide about one kernel: port, record, and where its case may be, there or not."""
    port = Path(kernel.port_path)
    cases = [
        folder / f"{stem}.case.toml"
        for folder in (path.parent, config.output)
        for stem in (f"{path.stem}.{kernel.kernel}", path.stem)
    ]
    cases += [config.case] if config.case else []
    found = [port, record_path(port), *cases]
    for case in cases:
        if case.is_file() and (reference := load_case(case).reference_path):
            found.append(reference)
    return found


def _key(path: Path, config: PortConfig) -> str:
    settings = {k: v for k, v in asdict(config).items() if k not in _NOT_ASKED}
    circumstances = json.dumps([settings, tool_versions(), str(path), os.getcwd()], sort_keys=True, default=str)
    return digest([circumstances, _own_code(), read_plain(path), str(cache_root())])


@lru_cache(maxsize=1)
def _own_code() -> str:
    """Which porter this is: names, sizes and times of its modules."""
    root = Path(porter.__file__).parent
    parts: Iterable[str] = (
        f"{p.relative_to(root)} {s.st_size} {s.st_mtime_ns}"
        for p in files_below(root, ".py", ".h", ".json", ".ll")
        for s in [p.stat()]
    )
    return digest(parts)


def _hash(path: Path) -> str:
    """Of the file's bytes; "" where there is none."""
    try:
        return hashlib.sha256(read_plain(path)).hexdigest()
    except FileNotFoundError:
        return ""
