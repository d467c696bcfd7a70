"""Which ports a `porter verify` has finished: kept beside them until the run is over, so that a killed run resumes.

A file of lines, one JSON object a port, only ever appended to: a line that a kill cut off costs its port, nothing else.
Each line is signed with a key in the cache folder: verdicts that came with a checkout are not taken for one's own.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from porter.case.reader import load_case
from porter.config import PortConfig
from porter.corpus.runtime import digest
from porter.corpus.runtime.signing import signature
from porter.corpus.runtime.sources import source_closure
from porter.model import KernelReport
from porter.plain_files import read_plain
from porter.provenance.record import tool_versions
from porter.provenance.store import read_record
from porter.regression.settings import Settings
from porter.report.console import kernel_from_json, kernel_to_json

KEEP_SECONDS = 24 * 3600.0  # a run that nobody resumed by then is over


class RunRecord:
    """The finished ports of one set of parameters. Reading and writing never fail a run: a record only saves time."""

    def __init__(self, config: PortConfig, settings: Settings):
        kept = {k: v for k, v in asdict(config).items() if k != "jobs"}
        asked = {k: v for k, v in asdict(settings).items() if k not in ("fresh", "timeout", "require")}
        self.key = digest([json.dumps([kept, asked, tool_versions()], sort_keys=True, default=str)])[:12]
        self._read: dict[Path, dict[str, dict[str, Any]]] = {}

    def file(self, port: Path) -> Path:
        """The record that a port's answer is in."""
        return port.parent / ".porter" / f"verify-{self.key}.jsonl"

    def finished(self, port: Path) -> KernelReport | None:
        """The report of a port that an interrupted run has finished, if what it depends on has not changed since."""
        path = self.file(port)
        if path not in self._read:
            self._read[path] = _lines(path)
        row = self._read[path].get(port.name)
        if row is None or row.get("fingerprint") != fingerprint(port):
            return None
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, OSError):
            return kernel_from_json(row["kernel"])
        return None

    def add(self, port: Path, report: KernelReport) -> None:
        """Note that a port is finished."""
        row: dict[str, Any] = {"port": port.name, "fingerprint": fingerprint(port), "kernel": kernel_to_json(report)}
        path = self.file(port)
        with contextlib.suppress(OSError):
            row["signature"] = signature(row)
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)

    def drop(self, ports: list[Path]) -> None:
        """Forget: the run is over, or starts anew."""
        for path in {self.file(p) for p in ports}:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def fingerprint(port: Path) -> str:
    """A hash of what a port's verdicts depend on: its text and its imports from the corpus, source with headers,
    case with reference, baseline."""
    parts: list[str | bytes] = []
    try:
        record = read_record(port)
        parts += [sha for _, sha in source_closure(port)]
        if record is not None:
            said = [record.kernel, record.baseline, record.options, record.arches, record.instances]
            parts += [json.dumps(said, default=str)]
            for name in (record.source, record.case):
                if name:
                    parts.append(read_plain(port.parent / name))
            for name in record.headers:
                parts += [name, read_plain(port.parent / name)]
            if record.case and (reference := load_case(port.parent / record.case).reference_path):
                parts.append(read_plain(reference))
    except Exception as error:  # whatever is wrong with the port is for the verification to say
        return f"unreadable: {error}"
    return digest(parts)


def _lines(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    try:
        if time.time() - path.stat().st_mtime > KEEP_SECONDS:
            path.unlink(missing_ok=True)
            return {}
        text = read_plain(path).decode("utf-8", errors="replace")
    except OSError:
        return {}
    for line in text.split("\n"):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
            row = json.loads(line)
            if hmac.compare_digest(row.pop("signature"), signature(row)):
                found[row["port"]] = row
    return found
