"""The JSON forms of the model's data: one spelling for `.port.json` and for `--output-format json`."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Any

from porter.model import Assumption, Diagnostic, Hole, Instance, LineMapEntry, Severity, Status, Verdict
from porter.model.facts import facts_from_json
from porter.provenance.schema import DamagedRecord
from porter.source import NO_SPAN, Span

_PORT_NOTE = re.compile(r"port: .*:(\d{1,9})(?: \(hole (\d{1,9})\))?")
MOST_TEXT = 1 << 26  # bytes of a source: no record makes its reader run out of memory


def span_to_json(span: Span) -> dict[str, Any] | None:
    if span == NO_SPAN or not span.file:
        return None
    return {
        "file": span.file,
        "line": span.line,
        "col": span.col,
        "end_line": span.end_line,
        "end_col": span.end_col,
    }


def span_from_json(value: dict[str, Any] | None) -> Span:
    if not value:
        return NO_SPAN
    return Span(value["file"], value["line"], value.get("col", 1), value.get("end_line", 0), value.get("end_col", 0))


def diagnostic_to_json(d: Diagnostic) -> dict[str, Any]:
    """`port_line`, `hole` and `key` are there only where the message is about one."""
    about = {"port_line": d.port_line, "hole": d.hole, "key": d.key}
    return {
        "code": d.code,
        "severity": d.severity.value,
        "message": d.message,
        "span": span_to_json(d.span),
        "help": d.help,
        "notes": list(d.notes),
        **{name: value for name, value in about.items() if value},
    }


def diagnostic_from_json(value: dict[str, Any]) -> Diagnostic:
    notes = tuple(value.get("notes", ()))
    line, hole = value.get("port_line", 0), value.get("hole", 0)
    if not line:
        line, hole = _port_place(notes)
    return Diagnostic(
        value["code"],
        value["message"],
        span_from_json(value.get("span")),
        Severity(value.get("severity", "error")),
        value.get("help", ""),
        notes,
        line,
        hole,
        value.get("key", ""),
    )


def _port_place(notes: tuple[str, ...]) -> tuple[int, int]:
    """(port line, hole) as records of releases without these keys have them, in a note such as
    `port: ported/k.py:44 (hole 2)`; zeros for what no note says."""
    for note in notes:
        if found := _PORT_NOTE.fullmatch(note):
            return int(found[1]), int(found[2] or 0)
    return 0, 0


def hole_to_json(hole: Hole) -> dict[str, Any]:
    return {"code": hole.code, "span": span_to_json(hole.span), "cuda": hole.cuda, "reason": hole.reason}


def hole_from_json(value: dict[str, Any]) -> Hole:
    return Hole(value["code"], span_from_json(value.get("span")), value["cuda"], value["reason"])


def assumption_to_json(a: Assumption) -> dict[str, Any]:
    return {"pattern": a.pattern, "text": a.text, "basis": a.basis, "how": a.how, "check": a.check}


def assumption_from_json(value: dict[str, Any]) -> Assumption:
    return Assumption(
        value["text"], value["basis"], value.get("how", ""), value.get("check", ""), value.get("pattern", "")
    )


def verdict_to_json(v: Verdict) -> dict[str, Any]:
    return {
        "check": v.check,
        "status": v.status.value,
        "detail": v.detail,
        "diagnostics": [diagnostic_to_json(d) for d in v.diagnostics],
        "data": verdict_data(v),
    }


def verdict_data(v: Verdict) -> dict[str, Any]:
    """What the check measured and how long that took, as JSON has it."""
    data: dict[str, Any] = plain(v.facts.to_json())
    return data if v.seconds is None else data | {"seconds": v.seconds}


def verdict_from_json(value: dict[str, Any]) -> Verdict:
    data = dict(value.get("data", {}))
    seconds = data.pop("seconds") if isinstance(data.get("seconds"), int | float) else None
    return Verdict(
        value["check"],
        Status(value["status"]),
        value.get("detail", ""),
        tuple(diagnostic_from_json(d) for d in value.get("diagnostics", ())),
        facts_from_json(value["check"], data),
        seconds,
    )


def instances_to_json(instances: tuple[Instance, ...]) -> list[list[str]]:
    return [list(i.args) for i in instances]


def line_map_to_json(entries: tuple[LineMapEntry, ...]) -> dict[str, Any]:
    """Rows `[port line, file, line, col, end line, end col, author]`; file and author index the two lists."""
    files: dict[str, int] = {}
    authors: dict[str, int] = {}
    rows = [
        [
            e.line,
            files.setdefault(e.span.file, len(files)),
            e.span.line,
            e.span.col,
            e.span.end_line,
            e.span.end_col,
            authors.setdefault(e.author, len(authors)),
        ]
        for e in entries
    ]
    return {"files": list(files), "authors": list(authors), "rows": rows}


def line_map_from_json(value: dict[str, Any]) -> tuple[LineMapEntry, ...]:
    files, authors = value.get("files", []), value.get("authors", [])
    return tuple(
        LineMapEntry(line, Span(files[f], row, col, end_row, end_col), authors[a])
        for line, f, row, col, end_row, end_col, a in value.get("rows", ())
    )


def plain(value: Any) -> Any:
    """`value` as json can write it: NumPy scalars, tuples, sets and paths converted; NaN and infinities become text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())
    return str(value)


def packed(text: str) -> str:
    """A text on one short line: deflated, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def unpacked(value: str) -> str:
    """What `packed` made of a text. Raises DamagedRecord when it is something else, or longer than MOST_TEXT."""
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(value, validate=True), MOST_TEXT) if value else b""
        if value and not unpacking.eof:
            raise DamagedRecord("source_text", "is cut off or too long")
        return data.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        raise DamagedRecord("source_text", f"is not a deflated text in base64: {error}") from error
