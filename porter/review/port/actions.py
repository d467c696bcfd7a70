"""What a decision does to a port: accepting, rejecting, commenting, editing. All of it is on disk afterwards.

A rejected rewrite becomes a hole with its CUDA text; a rejected edit, an agent's or a person's, gives way to the lines
that porter emits there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace

from porter import codes
from porter.config import PortConfig, load_config
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, Hole, LineMapEntry, PorterError
from porter.pipeline.outputs import Translation, moved
from porter.plain_files import read_plain_text
from porter.provenance.hole_markers import MARK
from porter.provenance.record import PortRecord
from porter.provenance.store import update_record
from porter.review.port.decisions import drop_draft, reviewer, save
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort, load
from porter.source import NO_SPAN, Span, lines_of
from porter.syntax import module_tree


def accept(port: ReviewedPort, region: Region, comment: str = "") -> ReviewedPort:
    """Accept a region as it is. Raises PorterError PRT962 for a hole, or where one side cannot be seen."""
    _decidable(port, region)
    if region.hole:
        raise _refused(port, region, f"{region.name} is hole {region.hole}: nothing is translated there", "edit it")
    return _saved(port, region, "accepted", comment)


def add_comment(port: ReviewedPort, region: Region, comment: str) -> ReviewedPort:
    """Comment on a region; a decision about it stands. Raises PorterError when the record cannot be read."""
    _readable(port)
    previous = port.decisions.get(region.name)
    state, sha256 = (previous.state, previous.sha256) if previous else ("open", port.digest_of(region))
    save(port.path, region, sha256, state, comment, previous)
    return load(port.path, port.config)


def withdraw(port: ReviewedPort, region: Region) -> ReviewedPort:
    """Take a decision back; its comment stays."""
    previous = port.decisions.get(region.name)
    return _saved(port, region, "open", previous.comment if previous else "") if previous else port


def reject(port: ReviewedPort, region: Region, comment: str = "", config: PortConfig | None = None) -> ReviewedPort:
    """Reject a region: an edit is undone, a rewrite becomes a hole, and what can be neither is noted as rejected.

    Raises PorterError: PRT962 where it cannot be decided, PRT964 when the port changed on disk, and what re-emitting
    the kernel raises when an edit is to be undone.
    """
    _decidable(port, region)
    if region.hole:
        return _saved(port, region, "rejected", comment)
    if any(a.startswith("agent:") or a == "person" for a in region.authors):
        found = earlier_lines(port, region, config)
        if found is not None:
            first, last, lines, holes = found
            return _rewritten(port, region, first, last, lines, holes, comment)
    if region.hole_lines is None:
        return _saved(port, region, "rejected", comment)
    hole, lines = _as_hole(port, region, comment)
    return _rewritten(port, region, *region.hole_lines, lines, (hole,), comment)


def edit(port: ReviewedPort, region: Region, text: str) -> ReviewedPort:
    """Write other lines in the place of a region. Raises PorterError PRT962 when the port would not be Python."""
    lines = port.port_lines
    fresh = [line.rstrip() for line in text.rstrip().splitlines()]
    if fresh == lines[region.first - 1 : region.last]:
        drop_draft(port.path)
        return port
    new_text = "\n".join([*lines[: region.first - 1], *fresh, *lines[region.last :]]) + "\n"
    try:
        module_tree(new_text)
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        why = f"line {line - region.first + 1}: {error.msg}" if line and isinstance(error, SyntaxError) else str(error)
        raise _refused(port, region, f"the edit is not Python: {why}", "fix it; what you typed is kept") from None
    _write(port, new_text, lambda record: record)
    drop_draft(port.path)
    return load(port.path, port.config)


# ---------------------------------------------------------------- what stood there before


Earlier = tuple[int, int, list[str], tuple[Hole, ...]]


def earlier_lines(port: ReviewedPort, region: Region, config: PortConfig | None = None) -> Earlier | None:
    """First and last line of what was edited in a region, and the lines that porter emits there, with their holes.

    None when porter emits just what is there. Raises PorterError: the kernel cannot be translated, PRT962 when its
    source has changed and the text that was ported is not known, so that porter would now emit another port.
    """
    if port.source_changed and port.ported_cuda is None:
        raise _refused(port, region, "the source has changed: what porter emitted is not known", "port it again")
    translation = translated(port, config)
    emitted, present = lines_of(translation.module.text), port.port_lines
    first, last = region.first, region.last
    blocks = [
        op for op in difflib.SequenceMatcher(None, emitted, present, autojunk=False).get_opcodes()
        if op[0] != "equal" and op[3] < last and max(op[4], op[3] + 1) >= first
    ]  # fmt: skip
    if not blocks:
        return None
    start, end = blocks[0], blocks[-1]
    lines = emitted[start[1] : end[2]]
    return start[3] + 1, end[4], lines, translation.module.holes


def translated(port: ReviewedPort, config: PortConfig | None = None) -> Translation:
    """The kernel of a port as porter translates it now: the source as it was ported, the options in its record."""
    from porter.pipeline.stages import Run, translate
    from porter.pipeline.style import in_style
    from porter.regression.open_port import open_port

    run = Run(port.name)
    opened = open_port(port.path, config or load_config(), run, port.ported_cuda)
    standalone = bool(opened.record.options.get("standalone", False))
    made = translate(opened.unit, opened.info, opened.case, replace(opened.config, standalone=standalone), run)
    return in_style(made, opened.record.options.get("style", "pointer"))


# ---------------------------------------------------------------- writing


def _as_hole(port: ReviewedPort, region: Region, comment: str) -> tuple[Hole, list[str]]:
    assert port.record is not None and region.hole_lines is not None
    first, last = region.hole_lines
    entries = [e for e in port.line_map if min(region.first, first) <= e.line <= last]
    entries = _of_one_file(port, region, entries)
    narrow = min((e.span for e in entries), key=lambda s: (s.end_line - s.line, s.line), default=NO_SPAN)
    own = _own(region, entries)
    cuda = sorted({n for e in entries for n in _lines_of(e.span) if n in own})
    source = lines_of(port.ported_cuda or port.cuda or "")
    if entries and not port.is_source(entries[0].span):
        source = list(port.headers[entries[0].span.file])
    cuda = [n for n in cuda if n <= len(source)]
    rows = [source[n - 1] for n in cuda]
    span = (
        replace(narrow, line=cuda[0], col=1, end_line=cuda[-1], end_col=len(source[cuda[-1] - 1]) + 1)
        if cuda
        else narrow
    )
    reason = " ".join(f"rejected by {reviewer(port.path.parent)}{': ' + comment if comment else ''}".split())
    number = len(port.record.holes) + 1
    code = next(line for line in port.port_lines[first - 1 :] if line.strip() and not line.lstrip().startswith("#"))
    indent = code[: len(code) - len(code.lstrip())]
    text = [f"{indent}# CUDA: {row.strip()}" for row in rows[:12]]
    text.append(f'{indent}runtime.hole({number}, "{codes.REJECTED_BY_A_PERSON}")  # {reason}')
    return Hole(codes.REJECTED_BY_A_PERSON, span, "\n".join(rows), reason), text


def _lines_of(span: Span) -> range:
    return range(span.line, max(span.end_line, span.line) + 1)


def _of_one_file(port: ReviewedPort, region: Region, entries: Sequence[LineMapEntry]) -> list[LineMapEntry]:
    """Those entries whose spans lie in the source; in the first file that it includes, where none does."""
    if region.cuda or not region.elsewhere:
        return [e for e in entries if port.is_source(e.span)]
    return [e for e in entries if e.span.file == region.elsewhere[0][0]]


def _own(region: Region, entries: Sequence[LineMapEntry]) -> set[int]:
    """The CUDA lines of a region; of a head or a signature, whose hole takes a body along, those of the body too."""
    lines = {*region.cuda} if region.cuda else {n for _, found in region.elsewhere[:1] for n in found}
    if region.kind not in ("head", "signature"):
        return lines
    spans = [e.span for e in entries if e.span.line in lines]
    return {n for s in spans for n in _lines_of(s)}


def _rewritten(
    port: ReviewedPort, region: Region, first: int, last: int, fresh: list[str], holes: tuple[Hole, ...], comment: str
) -> ReviewedPort:
    """Write `fresh` in the place of first..last, with a decision about what then stands there.

    `holes` are those that `fresh` names: the only one under its final number, or all of the kernel by theirs.
    """
    assert port.record is not None
    folder = port.path.parent
    known = list(port.record.holes)
    lines = []
    for line in fresh:
        mark = MARK.search(line)
        if mark:
            hole = (
                holes[0] if len(holes) == 1 and holes[0].code == codes.REJECTED_BY_A_PERSON else holes[int(mark[1]) - 1]
            )
            hole = hole if hole.code == codes.REJECTED_BY_A_PERSON else replace(hole, span=moved(hole.span, folder))
            if hole not in known:
                known.append(hole)
            line = f"{line[: mark.start(1)]}{known.index(hole) + 1}{line[mark.end(1) :]}"
        lines.append(line)
    text = "\n".join([*port.port_lines[: first - 1], *lines, *port.port_lines[last:]]) + "\n"
    previous = port.decisions.get(region.name)
    noted = comment or (previous.comment if previous else "")

    def change(record: PortRecord) -> PortRecord:
        return replace(record, holes=tuple(known))

    _write(port, text, change)
    reloaded = load(port.path, port.config)
    rewritten = reloaded.region_at(first) or region
    save(port.path, rewritten, reloaded.digest_of(rewritten), "rejected", noted, previous)
    return load(port.path, port.config)


def _write(port: ReviewedPort, text: str, change: Callable[[PortRecord], PortRecord]) -> None:
    """Write the port, and its record before it, unless another program has written the port since it was read."""

    def checked(record: PortRecord) -> PortRecord:
        _unchanged(port)
        return change(record)

    update_record(port.path, checked)
    try:
        write_atomic(port.path, text)
    except OSError as error:
        raise writing_failed(port.path, error, "make the file writable, then decide again") from error


def _saved(port: ReviewedPort, region: Region, state: str, comment: str) -> ReviewedPort:
    previous = port.decisions.get(region.name)
    save(port.path, region, port.digest_of(region), state, comment or (previous.comment if previous else ""), previous)
    return load(port.path, port.config)


def _readable(port: ReviewedPort) -> None:
    if not port.readable:
        raise PorterError(*port.faults)


def _decidable(port: ReviewedPort, region: Region) -> None:
    _readable(port)
    if port.cuda is None:
        raise _refused(port, region, f"the source {port.cuda_path} cannot be read", "restore it")
    gone = [file for file, _ in region.elsewhere if not port.headers.get(file)]
    if gone:
        raise _refused(port, region, f"{gone[0]} behind it cannot be read", "restore it")
    _unchanged(port)


def _unchanged(port: ReviewedPort) -> None:
    """Raise PorterError PRT964 when another program has written the port since it was read."""
    try:
        present: str | None = read_plain_text(port.path)
    except (OSError, UnicodeDecodeError):
        present = None
    if present != port.text:
        message = f"{port.path} was changed by another program; it has been reloaded"
        raise PorterError(
            Diagnostic(
                codes.PORT_CHANGED_DURING_REVIEW, message, Span(str(port.path), 0), help="look again, and decide then"
            )
        )


def _refused(port: ReviewedPort, region: Region, message: str, help_: str) -> PorterError:
    return PorterError(Diagnostic(codes.DECISION_NOT_POSSIBLE, message, Span(str(port.path), region.first), help=help_))
