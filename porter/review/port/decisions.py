"""What people decided about the regions of a port: the key `review` of `.port.json`, written at once and atomically.

A decision holds the hash of what was decided on. It is stale when the region's text, or the CUDA text behind it, is
another one now; it is never dropped by porter.
"""

from __future__ import annotations

import getpass
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from porter import codes
from porter.files.atomic import write_atomic, writing_failed
from porter.files.git import git
from porter.model import Diagnostic, PorterError
from porter.pipeline.outputs import now
from porter.plain_files import read_plain_text
from porter.provenance.record import PortRecord, record_path
from porter.provenance.store import update_record
from porter.review.port.regions import Region
from porter.source import Span

SCHEMA = 1
STATES = ("accepted", "rejected", "open")  # open: only a comment


@dataclass(frozen=True)
class Decision:
    """One answer about one region. `sha256` is `digest` of what was decided on."""

    region: str
    state: str
    by: str
    at: str  # ISO 8601, UTC
    sha256: str
    comment: str = ""


def digest(port_text: str, cuda_text: str) -> str:
    """SHA-256 of the two texts that a person sees side by side; space at line ends and indentation do not count."""
    rows = ["\n".join(line.strip() for line in text.splitlines()) for text in (cuda_text, port_text)]
    return hashlib.sha256("\0".join(rows).encode()).hexdigest()


def decisions_of(record: PortRecord, port: Path) -> tuple[Decision, ...]:
    """The decisions in a record. Raises PorterError PRT960 when the key `review` is not as docs/port-json.md says."""
    value = record.extra.get("review")
    if value is None:
        return ()
    try:
        if value["schema"] != SCHEMA:
            raise ValueError(f"its schema is {value['schema']!r}, this porter reads {SCHEMA}")
        return tuple(_from_json(row) for row in value["decisions"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        message = f"the decisions in {record_path(port).name} cannot be read: {why}"
        help_ = "restore the key `review` from version control, or remove it to start over"
        raise PorterError(
            Diagnostic(codes.UNREADABLE_DECISIONS, message, Span(str(record_path(port)), 0), help=help_)
        ) from error


def _from_json(row: dict[str, Any]) -> Decision:
    fields = ("region", "state", "by", "at", "sha256")
    region, state, by, at, sha256 = (row[f] for f in fields)
    made = Decision(region, state, by, at, sha256, row.get("comment", ""))
    for name, value in asdict(made).items():
        if not isinstance(value, str):
            raise ValueError(f"`{name}` is {value!r}, not a string")
    if made.state not in STATES:
        raise ValueError(f"`state` is {made.state!r}, not one of {', '.join(STATES)}")
    return made


def assign(regions: Sequence[Region], digests: Sequence[str], decisions: Sequence[Decision]) -> dict[str, Decision]:
    """The decision about each region, by its name: one about this very text, else one made under the region's name."""
    found: dict[str, Decision] = {}
    left = list(decisions)
    names = {r.name: d for r, d in zip(regions, digests, strict=True)}
    for decision in decisions:  # first those that have not moved: equal texts may stand in several places
        if names.get(decision.region) == decision.sha256:
            found[decision.region] = decision
            left.remove(decision)
    for region, value in zip(regions, digests, strict=True):
        same = next((d for d in left if d.sha256 == value), None)
        if region.name not in found and same is not None:
            found[region.name] = same
            left.remove(same)
    for decision in left:
        if decision.region in names:
            found.setdefault(decision.region, decision)
    return found


def save(port: Path, region: Region, sha256: str, state: str, comment: str, was: Decision | None) -> Decision:
    """Write one decision, in the place of `was`. Raises PorterError."""
    made = Decision(region.name, state, reviewer(port.parent), now(), sha256, comment)
    update_record(port, lambda record: with_decision(record, port, made, was))
    return made


def with_decision(record: PortRecord, port: Path, made: Decision, was: Decision | None) -> PortRecord:
    """The record with a decision added, in the place of an earlier one about the region."""
    kept = [d for d in decisions_of(record, port) if d != was and (d.region, d.sha256) != (made.region, made.sha256)]
    return replace(record, extra={**record.extra, "review": to_json([*kept, made])})


def to_json(decisions: Sequence[Decision]) -> dict[str, Any]:
    return {"schema": SCHEMA, "decisions": [asdict(d) for d in sorted(decisions, key=lambda d: (d.region, d.at))]}


def reviewer(folder: Path) -> str:
    """Who decides: git's user.name, else the login."""
    if name := git(folder, "config", "user.name", seconds=10).line:
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


# ---------------------------------------------------------------- unfinished edits


def draft_path(port: Path) -> Path:
    """Where an edit in place is kept while it is typed; a closed terminal loses nothing."""
    return port.parent / ".porter" / f"{port.stem}.draft.txt"


def save_draft(port: Path, region: str, text: str) -> None:
    """Raises PorterError PRT953."""
    path = draft_path(port)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{region}\n{text}")
    except OSError as error:
        raise writing_failed(path, error, "make the folder writable, then save again") from error


def read_draft(port: Path, region: str) -> str | None:
    """The unfinished edit of a region, None without one."""
    try:
        name, _, text = read_plain_text(draft_path(port)).partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if name == region else None


def drop_draft(port: Path) -> None:
    draft_path(port).unlink(missing_ok=True)
