"""What a decision does to a port: accepting, rejecting, commenting, editing. All of it is on disk afterwards.

A rejected rewrite becomes a hole with its CUDA text; a rejected edit, an agent's or a person's, gives way to the lines
that porter emits there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace

from porter.config import PortConfig, load_config
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, Hole, LineMapEntry, PorterError
from porter.pipeline.outputs import Translation, moved
from porter.plain_files import read_plain_text
from porter.provenance.hole_markers import MARK
from porter.provenance.record import PortRecord
from porter.provenance.store import update_record
from porter.review.port.decisions import drop_draft, reviewer, save
from porter.review.port.loaded import Loaded, load
from porter.review.port.regions import Region
from porter.source import NO_SPAN, Span, lines_of
from porter.syntax import module_tree

REJECTED = "PRT963"  # the code of holes that a person made


def accept(loaded: Loaded, region: Region, comment: str = "") -> Loaded:
    """Accept a region as it is. Raises PorterError PRT962 for a hole, or where one side cannot be seen."""
    _decidable(loaded, region)
    if region.hole:
        raise _refused(loaded, region, f"{region.name} is hole {region.hole}: nothing is translated there", "edit it")
    return _saved(loaded, region, "accepted", comment)


def remark(loaded: Loaded, region: Region, comment: str) -> Loaded:
    """Comment on a region; a decision about it stands. Raises PorterError when the record cannot be read."""
    _readable(loaded)
    was = loaded.decisions.get(region.name)
    state, sha256 = (was.state, was.sha256) if was else ("open", loaded.digest_of(region))
    save(loaded.path, region, sha256, state, comment, was)
    return load(loaded.path, loaded.config)


def withdraw(loaded: Loaded, region: Region) -> Loaded:
    """Take a decision back; its comment stays."""
    was = loaded.decisions.get(region.name)
    return _saved(loaded, region, "open", was.comment if was else "") if was else loaded


def reject(loaded: Loaded, region: Region, comment: str = "", config: PortConfig | None = None) -> Loaded:
    """Reject a region: an edit is undone, a rewrite becomes a hole, and what can be neither is noted as rejected.

    Raises PorterError: PRT962 where it cannot be decided, PRT964 when the port changed on disk, and what re-emitting
    the kernel raises when an edit is to be undone.
    """
    _decidable(loaded, region)
    if region.hole:
        return _saved(loaded, region, "rejected", comment)
    if any(a.startswith("agent:") or a == "person" for a in region.authors):
        found = earlier_lines(loaded, region, config)
        if found is not None:
            first, last, lines, holes = found
            return _rewritten(loaded, region, first, last, lines, holes, comment)
    if region.hole_lines is None:
        return _saved(loaded, region, "rejected", comment)
    hole, lines = _as_hole(loaded, region, comment)
    return _rewritten(loaded, region, *region.hole_lines, lines, (hole,), comment)


def edit(loaded: Loaded, region: Region, text: str) -> Loaded:
    """Write other lines in the place of a region. Raises PorterError PRT962 when the port would not be Python."""
    lines = loaded.port_lines
    fresh = [line.rstrip() for line in text.rstrip().splitlines()]
    if fresh == lines[region.first - 1 : region.last]:
        drop_draft(loaded.path)
        return loaded
    made = "\n".join([*lines[: region.first - 1], *fresh, *lines[region.last :]]) + "\n"
    try:
        module_tree(made)
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        why = f"line {line - region.first + 1}: {error.msg}" if line and isinstance(error, SyntaxError) else str(error)
        raise _refused(loaded, region, f"the edit is not Python: {why}", "fix it; what you typed is kept") from None
    _write(loaded, made, lambda record: record)
    drop_draft(loaded.path)
    return load(loaded.path, loaded.config)


# ---------------------------------------------------------------- what stood there before


Earlier = tuple[int, int, list[str], tuple[Hole, ...]]


def earlier_lines(loaded: Loaded, region: Region, config: PortConfig | None = None) -> Earlier | None:
    """First and last line of what was edited in a region, and the lines that porter emits there, with their holes.

    None when porter emits just what is there. Raises PorterError: the kernel cannot be translated, PRT962 when its
    source has changed and the text that was ported is not known, so that porter would now emit another port.
    """
    if loaded.source_changed and loaded.ported_cuda is None:
        raise _refused(loaded, region, "the source has changed: what porter emitted is not known", "port it again")
    made = translated(loaded, config)
    emitted, present = lines_of(made.module.text), loaded.port_lines
    first, last = region.first, region.last
    blocks = [
        op for op in difflib.SequenceMatcher(None, emitted, present, autojunk=False).get_opcodes()
        if op[0] != "equal" and op[3] < last and max(op[4], op[3] + 1) >= first
    ]  # fmt: skip
    if not blocks:
        return None
    start, end = blocks[0], blocks[-1]
    lines = emitted[start[1] : end[2]]
    return start[3] + 1, end[4], lines, made.module.holes


def translated(loaded: Loaded, config: PortConfig | None = None) -> Translation:
    """The kernel of a port as porter translates it now: the source as it was ported, the options in its record."""
    from porter.pipeline.stages import Run, translate
    from porter.pipeline.style import in_style
    from porter.regression.one_port import open_port

    run = Run(loaded.name)
    port = open_port(loaded.path, config or load_config(), run, loaded.ported_cuda)
    standalone = bool(port.record.options.get("standalone", False))
    made = translate(port.unit, port.info, port.case, replace(port.config, standalone=standalone), run)
    return in_style(made, port.record.options.get("style", "pointer"))


# ---------------------------------------------------------------- writing


def _as_hole(loaded: Loaded, region: Region, comment: str) -> tuple[Hole, list[str]]:
    assert loaded.record is not None and region.hole_lines is not None
    first, last = region.hole_lines
    entries = [e for e in loaded.line_map if min(region.first, first) <= e.line <= last]
    entries = _of_one_file(loaded, region, entries)
    narrow = min((e.span for e in entries), key=lambda s: (s.end_line - s.line, s.line), default=NO_SPAN)
    own = _own(region, entries)
    cuda = sorted({n for e in entries for n in _lines_of(e.span) if n in own})
    source = lines_of(loaded.ported_cuda or loaded.cuda or "")
    if entries and not loaded.is_source(entries[0].span):
        source = list(loaded.headers[entries[0].span.file])
    cuda = [n for n in cuda if n <= len(source)]
    rows = [source[n - 1] for n in cuda]
    span = (
        replace(narrow, line=cuda[0], col=1, end_line=cuda[-1], end_col=len(source[cuda[-1] - 1]) + 1)
        if cuda
        else narrow
    )
    reason = " ".join(f"rejected by {reviewer(loaded.path.parent)}{': ' + comment if comment else ''}".split())
    number = len(loaded.record.holes) + 1
    code = next(line for line in loaded.port_lines[first - 1 :] if line.strip() and not line.lstrip().startswith("#"))
    indent = code[: len(code) - len(code.lstrip())]
    text = [f"{indent}# CUDA: {row.strip()}" for row in rows[:12]]
    text.append(f'{indent}runtime.hole({number}, "{REJECTED}")  # {reason}')
    return Hole(REJECTED, span, "\n".join(rows), reason), text


def _lines_of(span: Span) -> range:
    return range(span.line, max(span.end_line, span.line) + 1)


def _of_one_file(loaded: Loaded, region: Region, entries: Sequence[LineMapEntry]) -> list[LineMapEntry]:
    """Those entries whose spans lie in the source; in the first file that it includes, where none does."""
    if region.cuda or not region.elsewhere:
        return [e for e in entries if loaded.is_source(e.span)]
    return [e for e in entries if e.span.file == region.elsewhere[0][0]]


def _own(region: Region, entries: Sequence[LineMapEntry]) -> set[int]:
    """The CUDA lines of a region; of a head or a signature, whose hole takes a body along, those of the body too."""
    lines = {*region.cuda} if region.cuda else {n for _, found in region.elsewhere[:1] for n in found}
    if region.kind not in ("head", "signature"):
        return lines
    spans = [e.span for e in entries if e.span.line in lines]
    return {n for s in spans for n in _lines_of(s)}


def _rewritten(
    loaded: Loaded, region: Region, first: int, last: int, fresh: list[str], holes: tuple[Hole, ...], comment: str
) -> Loaded:
    """Write `fresh` in the place of first..last, with a decision about what then stands there.

    `holes` are those that `fresh` names: the only one under its final number, or all of the kernel by theirs.
    """
    assert loaded.record is not None
    folder = loaded.path.parent
    known = list(loaded.record.holes)
    lines = []
    for line in fresh:
        mark = MARK.search(line)
        if mark:
            hole = holes[0] if len(holes) == 1 and holes[0].code == REJECTED else holes[int(mark[1]) - 1]
            hole = hole if hole.code == REJECTED else replace(hole, span=moved(hole.span, folder))
            if hole not in known:
                known.append(hole)
            line = f"{line[: mark.start(1)]}{known.index(hole) + 1}{line[mark.end(1) :]}"
        lines.append(line)
    text = "\n".join([*loaded.port_lines[: first - 1], *lines, *loaded.port_lines[last:]]) + "\n"
    was = loaded.decisions.get(region.name)
    noted = comment or (was.comment if was else "")

    def change(record: PortRecord) -> PortRecord:
        return replace(record, holes=tuple(known))

    _write(loaded, text, change)
    fresh_port = load(loaded.path, loaded.config)
    there = fresh_port.region_at(first) or region
    save(loaded.path, there, fresh_port.digest_of(there), "rejected", noted, was)
    return load(loaded.path, loaded.config)


def _write(loaded: Loaded, text: str, change: Callable[[PortRecord], PortRecord]) -> None:
    """Write the port, and its record before it, unless another program has written the port since it was read."""

    def checked(record: PortRecord) -> PortRecord:
        _unchanged(loaded)
        return change(record)

    update_record(loaded.path, checked)
    try:
        write_atomic(loaded.path, text)
    except OSError as error:
        raise writing_failed(loaded.path, error, "make the file writable, then decide again") from error


def _saved(loaded: Loaded, region: Region, state: str, comment: str) -> Loaded:
    was = loaded.decisions.get(region.name)
    save(loaded.path, region, loaded.digest_of(region), state, comment or (was.comment if was else ""), was)
    return load(loaded.path, loaded.config)


def _readable(loaded: Loaded) -> None:
    if not loaded.readable:
        raise PorterError(*loaded.faults)


def _decidable(loaded: Loaded, region: Region) -> None:
    _readable(loaded)
    if loaded.cuda is None:
        raise _refused(loaded, region, f"the source {loaded.cuda_path} cannot be read", "restore it")
    gone = [file for file, _ in region.elsewhere if not loaded.headers.get(file)]
    if gone:
        raise _refused(loaded, region, f"{gone[0]} behind it cannot be read", "restore it")
    _unchanged(loaded)


def _unchanged(loaded: Loaded) -> None:
    """Raise PorterError PRT964 when another program has written the port since it was read."""
    try:
        present: str | None = read_plain_text(loaded.path)
    except (OSError, UnicodeDecodeError):
        present = None
    if present != loaded.text:
        message = f"{loaded.path} was changed by another program; it has been reloaded"
        raise PorterError(Diagnostic("PRT964", message, Span(str(loaded.path), 0), help="look again, and decide then"))


def _refused(loaded: Loaded, region: Region, message: str, help_: str) -> PorterError:
    return PorterError(Diagnostic("PRT962", message, Span(str(loaded.path), region.first), help=help_))
