"""`<name>.port.json` beside a port, on disk: read, checked and written by one writer.

Writing takes a lock per output, replaces files atomically and keeps keys it does not know. A port whose text is not
what porter emitted belongs to its editor and is never overwritten unasked.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from porter import codes
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, EditedPort, LineMapEntry, PorterError
from porter.plain_files import read_plain_text, text_or_none
from porter.provenance.baseline import check_baseline
from porter.provenance.line_map import reanchor
from porter.provenance.record import SCHEMA, PortRecord, from_json, line_hashes, record_path, sha256_text, to_text
from porter.provenance.schema import DamagedRecord, check_record
from porter.source import Span

LOCK_SECONDS = 120.0
MOST_OF_A_RECORD = 64 << 20  # bytes; that of a reference kernel's port has 60 thousand


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
        raise _unreadable(path, f"its schema is {value.get('schema')!r}, this porter reads {SCHEMA}")
    try:
        check_record(value)
        check_baseline(value.get("baseline", {}))
        return from_json(value)
    except DamagedRecord as error:
        raise _unreadable(path, str(error), _line_of(text, error.key), key=error.key) from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _unreadable(path: Path, why: str, line: int = 0, col: int = 0, key: str = "") -> PorterError:
    return PorterError(
        Diagnostic(
            codes.UNREADABLE_RECORD,
            f"cannot read the provenance of the port: {why}",
            Span(str(path), line, col),
            help="restore the file from version control, or write the port again with `porter port --force`",
            key=key,
        )
    )


def _line_of(text: str, key: str) -> int:
    """The line of the top-level key that a path of keys begins with, 0 when it is not there."""
    first = re.match(r"\w+", key)
    at = re.search(rf'^ "{first[0]}":', text, re.MULTILINE) if first else None
    return text.count("\n", 0, at.start()) + 1 if at else 0


def is_edited(port: Path) -> bool:
    """True when the port on disk is not the text that porter emitted (or porter never wrote it)."""
    record = read_record(port)
    text = text_or_none(port)
    return record is None or text is None or sha256_text(text) not in _own_hashes(record)


def _own_hashes(record: PortRecord) -> set[str]:
    return {record.emitted_sha256, record.previous_sha256} - {""}


def current_line_map(port: Path, author: str = "person") -> tuple[LineMapEntry, ...]:
    """The line map of the port as it is on disk now, re-anchored when someone edited it. Empty without a record, and
    for a port that is no text."""
    record, text = read_record(port), text_or_none(port)
    if record is None or text is None:
        return ()
    now = line_hashes(text)
    return record.line_map if now == record.line_hashes else reanchor(record.line_map, record.line_hashes, now, author)


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
    gone = " (which no longer exists)" if was and not os.path.exists(was) else ""
    if was == now:  # another kernel of one file
        was = now = ""
    said = [f"`{r.kernel}`" + (f" in {path}" if path else "") for r, path in ((old, was), (new, now))]
    message = f"{port} is the port of {said[0]}{gone}, not of {said[1]}"
    help_ = "port to another folder with -o, or overwrite it with --force"
    raise PorterError(Diagnostic(codes.OUTPUT_OF_ANOTHER_ORIGINAL, message, Span(str(port), 0, 0), help=help_))


def _shortest(path: Path) -> str:
    return min(os.path.relpath(path), os.path.normpath(path), key=len)


def refuse_edited(port: Path, text: str, new: PortRecord) -> None:
    """Raise PorterError when writing `text` with the record `new` would lose what is there: EditedPort (PRT954), with
    the diff in its notes, for somebody's edit; PRT957 for the port of another kernel, or of another source's."""
    record = read_record(port)
    _refuse_another(port, record, new)
    try:
        present = read_plain_text(port)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        message = f"{port} exists and porter did not write it: {error}"
        raise EditedPort(port, Diagnostic(codes.PORT_EDITED, message, Span(str(port), 0, 0))) from error
    if present == text or (record is not None and sha256_text(present) in _own_hashes(record)):
        return
    diff = difflib.unified_diff(
        text.splitlines(), present.splitlines(), f"{port} (as porter would write it)", f"{port} (as it is)", lineterm=""
    )
    message = f"{port} was edited since porter wrote it" if record else f"{port} exists and was not written by porter"
    raise EditedPort(
        port,
        Diagnostic(
            codes.PORT_EDITED,
            message,
            Span(str(port), 0, 0),
            help="keep your edit and port to another folder with -o, or overwrite it with --force",
            notes=("\n".join(["difference:", *diff]),),
        ),
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
            if not force and (over is None or text_or_none(port) != over):
                refuse_edited(port, text, record)
        except PorterError:
            if not force:
                raise
        present = text_or_none(port)
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
        message = f"another porter has kept {port} locked for {LOCK_SECONDS:.0f} s"
        raise PorterError(Diagnostic(codes.CANNOT_WRITE, message, Span(str(port), 0, 0))) from error
    except OSError as error:
        raise writing_failed(port.parent, error) from error
    try:
        yield
    finally:
        lock.release()
