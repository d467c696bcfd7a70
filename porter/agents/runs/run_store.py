"""Folders of runs: `.porter/runs/<id>/` with what a run needs to go on after a crash. A batch lists runs."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from porter import codes
from porter.agents.record import ELSEWHERE
from porter.agents.runs.edited_port import EditedStart
from porter.agents.settings import AgentSettings
from porter.config import PortConfig
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, PorterError
from porter.provenance.json import line_map_from_json, line_map_to_json
from porter.source import Span

SCHEMA = 1


@dataclass(frozen=True)
class RunFolder:
    """One run: which kernel of which file, how it is to be worked on, the port that it starts from.

    Paths are as they were given, seen from the folder in which porter was run.
    """

    path: Path
    source: Path
    source_sha256: str
    case_sha256: str
    kernel: str
    target: Path
    base: str
    optimise: bool
    config: PortConfig
    settings: AgentSettings
    start: EditedStart | None = None  # `base` was edited since the translator made it

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"


def new_id(name: str) -> str:
    """`20261129-180912-rms_norm-3f2a`: sorts by time, says what it is."""
    safe = re.sub(r"\W+", "_", name)[:40]
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{safe}-{secrets.token_hex(2)}"


def write_run(run: RunFolder) -> None:
    """Put a run on disk; the manifest is last, so a folder with one is whole. Raises PorterError PRT953."""
    manifest = {
        "schema": SCHEMA,
        "source": str(run.source),
        "source_sha256": run.source_sha256,
        "case_sha256": run.case_sha256,
        "kernel": run.kernel,
        "target": str(run.target),
        "optimise": run.optimise,
        "config": _plain(run.config),
        "settings": _plain(replace(run.settings, api_key_command="")),  # a resumed run finds the key anew
    }
    if run.start is not None:
        manifest["line_map"] = line_map_to_json(run.start.line_map)
    try:
        run.path.mkdir(parents=True, exist_ok=True)
        write_atomic(run.path / "base.py", run.base)
        if run.start is not None:
            write_atomic(run.path / "translated.py", run.start.translated)
        write_atomic(run.path / "run.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise writing_failed(run.path, error, ELSEWHERE) from error


def write_batch(folder: Path, runs: Sequence[RunFolder]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(
            folder / "batch.json", json.dumps({"schema": SCHEMA, "runs": [r.id for r in runs]}, indent=1) + "\n"
        )
    except OSError as error:
        raise writing_failed(folder, error, ELSEWHERE) from error


def write_result(run: RunFolder, result: Mapping[str, Any], candidate: str) -> None:
    """The end of a run, for people: what came of it, and the best text, also where it was not kept.

    Raises PorterError PRT953.
    """
    try:
        write_atomic(run.path / "candidate.py", candidate)
        write_atomic(run.path / "result.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise writing_failed(run.path, error, ELSEWHERE) from error


def find_runs(name: str, root: Path) -> list[Path]:
    """The folder of the run, or those of the runs of the batch, of that id or path. Raises PorterError PRT925 when
    there is none, PRT926 for a batch that cannot be read."""
    path = next((p for p in (root / name, Path(name)) if p.is_dir()), None)
    if path is None:
        known = sorted((p.name for p in root.iterdir() if p.is_dir()), reverse=True)[:5] if root.is_dir() else []
        help_ = f"the latest are {', '.join(known)}" if known else f"there is none in {root}"
        raise PorterError(Diagnostic(codes.NO_SUCH_RUN, f"there is no run {name}", help=help_))
    if (path / "batch.json").is_file():
        return [path.parent / str(id) for id in _read(path / "batch.json").get("runs", ())]
    return [path]


def read_run(path: Path) -> RunFolder:
    """Raises PorterError PRT926 for a folder that is not a whole run."""
    value = _read(path / "run.json")
    try:
        config = _from_plain(PortConfig(), value["config"])
        settings = _from_plain(AgentSettings(), value["settings"])
        base = (path / "base.py").read_text(encoding="utf-8")
        start = None
        if "line_map" in value:
            translated = (path / "translated.py").read_text(encoding="utf-8")
            start = EditedStart(translated, line_map_from_json(value["line_map"]))
        return RunFolder(
            path,
            Path(value["source"]),
            value["source_sha256"],
            value["case_sha256"],
            value["kernel"],
            Path(value["target"]),
            base,
            bool(value["optimise"]),
            config,
            settings,
            start,
        )
    except (KeyError, TypeError, OSError, UnicodeDecodeError) as error:
        raise _damaged(path / "run.json", f"{type(error).__name__}: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise _damaged(path, "it was made by another version of porter")
    return value


def _damaged(path: Path, why: str) -> PorterError:
    message = f"the run cannot be read: {why}"
    return PorterError(Diagnostic(codes.RUN_CANNOT_RESUME, message, Span(str(path), 0), help="start a new run"))


def _plain(value: Any) -> dict[str, Any]:
    """A settings dataclass as JSON. Holds no key: neither class has one."""

    def one(v: Any) -> Any:
        if isinstance(v, Path):
            return {"path": str(v)}
        if isinstance(v, Decimal):
            return {"decimal": str(v)}
        return list(v) if isinstance(v, tuple) else v

    return {f.name: one(getattr(value, f.name)) for f in fields(value)}


def _from_plain(base: Any, given: Mapping[str, Any]) -> Any:
    known = {f.name for f in dataclasses.fields(base)}

    def one(v: Any) -> Any:
        if isinstance(v, dict) and set(v) == {"path"}:
            return Path(v["path"])
        if isinstance(v, dict) and set(v) == {"decimal"}:
            return Decimal(v["decimal"])
        return tuple(v) if isinstance(v, list) else v

    return replace(base, **{k: one(v) for k, v in given.items() if k in known})
