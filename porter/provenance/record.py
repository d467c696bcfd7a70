"""`<name>.port.json` beside a port: where it came from, what wrote each line, what the verifier said.

One schema (docs/port-json.md), one writer. Writing takes a lock per output, replaces files atomically and keeps keys it
does not know. A port whose text is not what porter emitted belongs to its editor and is never overwritten unasked.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import platform
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from porter import __version__
from porter.case.model import Case
from porter.corpus.library import VERSION as LIBRARY_VERSION
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Assumption, Diagnostic, Hole, Instance, LineMapEntry, PorterError, Verdict
from porter.plain_files import is_plain, read_plain, read_plain_text
from porter.provenance.baseline import check_baseline
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
from porter.provenance.schema import fault
from porter.source import NO_SPAN, Span, lines_of

SCHEMA = 1
LOCK_SECONDS = 120.0
MOST_OF_A_RECORD = 64 << 20  # bytes; that of a reference kernel's port has 60 thousand


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


# ---------------------------------------------------------------- reading


def read_record(port: Path) -> PortRecord | None:
    """The record beside a port, or None when there is none. Raises PorterError PRT955 when it cannot be understood."""
    path = record_path(port)
    try:
        text = read_plain_text(path, MOST_OF_A_RECORD)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error
    return parse_record(text, path)


def parse_record(text: str, path: Path) -> PortRecord:
    """A record from its text; `path` is for messages. Raises PorterError PRT955 when it cannot be understood."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise _unreadable(path, error.msg, error.lineno, error.colno) from error
    except RecursionError:
        raise _unreadable(path, "it is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise _unreadable(path, str(error).split(";")[0]) from None
    if not isinstance(value, dict):
        raise _unreadable(path, "it is not a JSON object")
    if value.get("schema") != SCHEMA:
        raise _unreadable(path, f"its schema is {value.get('schema')!r}, this porter knows {SCHEMA}")
    wrong = fault(value)
    if wrong:
        raise _unreadable(path, wrong, _line_of(text, wrong))
    try:
        check_baseline(value.get("baseline", {}))
        return _from_json(value)
    except ValueError as error:
        raise _unreadable(path, str(error), _line_of(text, str(error))) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _unreadable(path: Path, why: str, line: int = 0, col: int = 0) -> PorterError:
    return PorterError(
        Diagnostic(
            "PRT955",
            f"cannot read the provenance of the port: {why}",
            Span(str(path), line, col),
            help="restore the file from version control, or write the port again with `porter port --force`",
        )
    )


def _line_of(text: str, fault: str) -> int:
    """The line of the top-level key that a fault names, 0 when it is not there."""
    found = re.search(r"`(\w+)", fault)
    at = re.search(rf'^ "{found[1]}":', text, re.MULTILINE) if found else None
    return text.count("\n", 0, at.start()) + 1 if at else 0


def is_edited(port: Path) -> bool:
    """True when the port on disk is not the text that porter emitted (or porter never wrote it)."""
    record = read_record(port)
    return record is None or sha256_text(read_plain_text(port)) not in _own_hashes(record)


def _own_hashes(record: PortRecord) -> set[str]:
    return {record.emitted_sha256, record.previous_sha256} - {""}


def reanchor(
    entries: tuple[LineMapEntry, ...], old: tuple[str, ...], new: tuple[str, ...], author: str = "person"
) -> tuple[LineMapEntry, ...]:
    """The line map after an edit, `old` and `new` being `line_hashes` of the emitted and of the present text.

    Unchanged lines move with the text and keep their author. A changed or inserted line is `author`'s; it points to the
    CUDA span of the line it replaced, else of the mapped line above it, so that a message about it finds the source.
    """
    by_line = {e.line: e for e in entries}
    moved: list[LineMapEntry] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            moved += [replace(by_line[a + 1], line=a - a0 + b0 + 1) for a in range(a0, a1) if a + 1 in by_line]
            continue
        replaced = [by_line[a + 1] for a in range(a0, a1) if a + 1 in by_line]
        above = moved[-1].span if moved else NO_SPAN
        for k, b in enumerate(range(b0, b1)):
            span = replaced[min(k, len(replaced) - 1)].span if replaced else above
            if span != NO_SPAN:
                moved.append(LineMapEntry(b + 1, span, author))
    return tuple(moved)


def current_line_map(port: Path, author: str = "person") -> tuple[LineMapEntry, ...]:
    """The line map of the port as it is on disk now, re-anchored when someone edited it. Empty without a record."""
    record = read_record(port)
    if record is None:
        return ()
    now = line_hashes(read_plain_text(port))
    return record.line_map if now == record.line_hashes else reanchor(record.line_map, record.line_hashes, now, author)


def cuda_span(entries: tuple[LineMapEntry, ...], line: int) -> Span:
    """The CUDA span behind a line of the port: its own, else of the nearest mapped line above it, else NO_SPAN."""
    best = max((e for e in entries if e.line <= line), key=lambda e: e.line, default=None)
    return best.span if best else NO_SPAN


# ---------------------------------------------------------------- writing


def same_original(port: Path, old: PortRecord, new: PortRecord) -> bool:
    """Whether two records of a port are about one original: the same kernel of the same file, which may have changed,
    or of a file with the same text and the same headers, which may have moved."""
    if old.kernel != new.kernel:
        return False
    if not old.source or not new.source or is_same_file(port.parent / old.source, port.parent / new.source):
        return True
    if not old.source_sha256 or old.source_sha256 != new.source_sha256:
        return False
    return not old.headers or sorted(old.headers.values()) == sorted(new.headers.values())


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links and whatever the file system takes for one name."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _refuse_another(port: Path, old: PortRecord | None, new: PortRecord) -> None:
    """Raise PorterError PRT957 where the port is another original's."""
    if old is None or same_original(port, old, new):
        return
    was, now = (_shortest(port.parent / r.source) if r.source else "" for r in (old, new))
    gone = " (which is not there any more)" if was and not os.path.exists(was) else ""
    if was == now:  # another kernel of one file
        was = now = ""
    said = [f"`{r.kernel}`" + (f" in {path}" if path else "") for r, path in ((old, was), (new, now))]
    message = f"{port} is the port of {said[0]}{gone}, not of {said[1]}"
    help_ = "port to another folder with -o, or overwrite it with --force"
    raise PorterError(Diagnostic("PRT957", message, Span(str(port), 0, 0), help=help_))


def _shortest(path: Path) -> str:
    return min(os.path.relpath(path), os.path.normpath(path), key=len)


def refuse_edited(port: Path, text: str, new: PortRecord) -> None:
    """Raise PorterError when writing `text` with the record `new` would lose what is there: PRT954, the diff in its
    notes, for somebody's edit; PRT957 for the port of another kernel, or of another source's."""
    record = read_record(port)
    _refuse_another(port, record, new)
    try:
        present = read_plain_text(port)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise PorterError(
            Diagnostic("PRT954", f"{port} exists and porter did not write it: {error}", Span(str(port), 0, 0))
        ) from error
    if present == text or (record is not None and sha256_text(present) in _own_hashes(record)):
        return
    diff = difflib.unified_diff(
        text.splitlines(), present.splitlines(), f"{port} (as porter would write it)", f"{port} (as it is)", lineterm=""
    )
    message = f"{port} was edited since porter wrote it" if record else f"{port} exists and was not written by porter"
    raise PorterError(
        Diagnostic(
            "PRT954",
            message,
            Span(str(port), 0, 0),
            help="keep your edit and port to another folder with -o, or overwrite it with --force",
            notes=("\n".join(["difference:", *diff]),),
        )
    )


def write_port(
    port: Path,
    text: str,
    record: PortRecord,
    *,
    force: bool = False,
    translated: str | None = None,
    over: str | None = None,
) -> bool:
    """Write a port and its record together, under the output's lock. Returns whether the port's text changed.

    `translated`: what the translator made of the kernel, where `text` is more than that. The port then counts as
    edited, so that translating again does not throw away what the agent did. `over`: the edited text that `text` was
    made from, which may be replaced by it.

    Raises PorterError: PRT953 when the folder cannot be written and, unless `force`, PRT954 when somebody edited the
    port, PRT957 when it is another kernel's or another source's, PRT955 when its record is unreadable. With `force`
    what another original's record holds beside (decisions, baseline) goes with it.
    """
    with locked(port):
        old: PortRecord | None = None
        try:
            old = read_record(port)
            if not force and (over is None or _read_or_none(port) != over):
                refuse_edited(port, text, record)
        except PorterError:
            if not force:
                raise
        present = _read_or_none(port)
        if old is not None and not same_original(port, old, record):
            old = None
        # Somebody's edit does not become porter's own text when a stop between the two writes leaves it there.
        own = present is not None and present != over
        whole = replace(
            record,
            emitted_sha256=sha256_text(text if translated is None else translated),
            previous_sha256=sha256_text(present) if present is not None and own else "",
            line_hashes=line_hashes(text),
            extra={**(old.extra if old else {}), **record.extra},
            baseline=old.baseline if old and old.baseline else record.baseline,
        )
        try:
            # The record first: it knows both texts, so a stop between the two writes is not taken for an edit.
            write_atomic(record_path(port), to_text(whole))
            if present != text:
                write_atomic(port, text)
        except OSError as error:
            raise writing_failed(port, error) from error
        return present != text


def update_record(port: Path, change: Callable[[PortRecord], PortRecord]) -> PortRecord:
    """Read, change and write the record of a port under its lock. Raises PorterError PRT955 when there is none."""
    with locked(port):
        record = read_record(port)
        if record is None:
            raise _unreadable(record_path(port), "there is none")
        changed = change(record)
        if changed == record:
            return record
        try:
            write_atomic(record_path(port), to_text(changed))
        except OSError as error:
            raise writing_failed(record_path(port), error) from error
        return changed


@contextlib.contextmanager
def locked(port: Path) -> Iterator[None]:
    """Hold the lock of one output; the lock file lives in `.porter/` of its folder, which is made when missing."""
    from filelock import FileLock, Timeout

    folder = port.parent / ".porter"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{port.stem}.lock", timeout=LOCK_SECONDS)
        lock.acquire()
    except Timeout as error:
        raise PorterError(
            Diagnostic("PRT953", f"another porter has held {port} for {LOCK_SECONDS:.0f} s", Span(str(port), 0, 0))
        ) from error
    except OSError as error:
        raise writing_failed(port.parent, error) from error
    try:
        yield
    finally:
        lock.release()


def _read_or_none(path: Path) -> str | None:
    try:
        return read_plain_text(path)
    except (OSError, UnicodeDecodeError):
        return None


# ---------------------------------------------------------------- the schema


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


def _from_json(value: dict[str, Any]) -> PortRecord:
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
