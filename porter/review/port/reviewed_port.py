"""A port as the review shows it: texts of both sides, regions with their decisions, holes, verdicts, messages."""

from __future__ import annotations

import difflib
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from porter import codes
from porter.config import PortConfig, load_config
from porter.files.git import git
from porter.model import Diagnostic, Hole, LineMapEntry, PorterError, Severity, Status, Verdict
from porter.pipeline.compile_commands import with_build_flags
from porter.pipeline.open_ports import find_ports, recorded
from porter.plain_files import read_plain_text
from porter.provenance.hole_markers import open_holes
from porter.provenance.line_map import reanchor
from porter.provenance.record import PortRecord, line_hashes, sha256_text
from porter.regression.contract import flag_doubts
from porter.review.port.decisions import Decision, assign, decisions_of, digest
from porter.review.port.regions import Region, regions_of
from porter.source import Span, lines_of

REVISIONS = 100  # of the source that are looked through for the text that was ported


@dataclass(frozen=True)
class ReviewedPort:
    """One port. With a fault (no record, a damaged one) the other fields hold what could be read all the same."""

    path: Path
    text: str = ""
    cuda_path: Path = Path()
    cuda: str | None = None  # the source as it is now; None: it cannot be read
    ported_cuda: str | None = None  # as it was ported: the same unless it changed; None: neither recorded nor in git
    record: PortRecord | None = None
    line_map: tuple[LineMapEntry, ...] = ()
    regions: tuple[Region, ...] = ()
    headers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # included files behind regions: their lines now
    digests: tuple[str, ...] = ()
    decisions: dict[str, Decision] = field(default_factory=dict)
    faults: tuple[Diagnostic, ...] = ()
    config: PortConfig | None = None  # what the review was given beside [tool.porter]

    @property
    def name(self) -> str:
        return self.record.kernel if self.record else self.path.stem

    @property
    def readable(self) -> bool:
        return self.record is not None and not any(
            d.code in (codes.UNREADABLE_RECORD, codes.UNREADABLE_DECISIONS) for d in self.faults
        )

    @property
    def source_changed(self) -> bool:
        return bool(self.record and self.cuda is not None and self.record.source_sha256 != sha256_text(self.cuda))

    @cached_property
    def verified(self) -> bool:
        """Whether the verdicts are about the text as it is."""
        return bool(self.record and self.record.verified_sha256 == sha256_text(self.text))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.record.verdicts if self.record else ()

    @property
    def holes(self) -> tuple[tuple[int, Hole], ...]:
        """The open ones, with their numbers."""
        found = self.record.holes if self.record else ()
        still = open_holes(self.text)
        return tuple((n, h) for n, h in enumerate(found, 1) if n in still)

    @cached_property
    def port_lines(self) -> list[str]:
        return lines_of(self.text)

    @property
    def shown_cuda(self) -> str:
        """The source as it is now; as it was ported when it cannot be read; "" when neither is known."""
        return (self.ported_cuda or "") if self.cuda is None else self.cuda

    @cached_property
    def cuda_lines(self) -> list[str]:
        return lines_of(self.shown_cuda)

    @cached_property
    def moved_lines(self) -> dict[int, int]:
        """Line of the source as ported -> its line now; lines that are gone are missing. Empty when nothing changed."""
        if not self.source_changed or self.ported_cuda is None:
            return {}
        matcher = difflib.SequenceMatcher(None, lines_of(self.ported_cuda), self.cuda_lines, autojunk=False)
        return {a + k + 1: b + k + 1 for a, b, n in matcher.get_matching_blocks() for k in range(n)}

    def cuda_now(self, region: Region) -> tuple[int, ...]:
        """The lines of the source, as it is now, behind a region."""
        if not self.source_changed or self.ported_cuda is None:
            return tuple(n for n in region.cuda if n <= len(self.cuda_lines))
        return tuple(self.moved_lines[n] for n in region.cuda if n in self.moved_lines)

    def lines_in(self, region: Region, file: str = "") -> tuple[int, ...]:
        """The lines of a file behind a region, as the file is now; "" is the source."""
        if not file:
            return self.cuda_now(region)
        lines = dict(region.elsewhere).get(file, ())
        return tuple(n for n in lines if n <= len(self.headers.get(file, ())))

    def text_of(self, file: str = "") -> str:
        """A file of the CUDA side, as it is now; "" is the source."""
        return "\n".join(self.headers.get(file, ())) if file else self.shown_cuda

    def cuda_rows(self, region: Region) -> list[tuple[str, int, str]]:
        """(name of an included file or "", line, text) of all lines behind a region, the source's first."""
        rows = [("", n, self.cuda_lines[n - 1]) for n in self.cuda_now(region)]
        for file, _ in region.elsewhere:
            rows += [(Path(file).name, n, self.headers[file][n - 1]) for n in self.lines_in(region, file)]
        return rows

    def cuda_text(self, region: Region) -> str:
        return "\n".join(text for _, _, text in self.cuda_rows(region))

    def port_text(self, region: Region) -> str:
        return "\n".join(self.port_lines[region.first - 1 : region.last])

    def region_at(self, line: int) -> Region | None:
        """The region of a port line, else the nearest above it."""
        return self.regions[max(bisect_right(self._firsts, line) - 1, 0)] if self.regions else None

    def region_of_cuda(self, line: int, file: str = "") -> Region | None:
        """The region that a CUDA line became: the one with the fewest lines among those that name it."""
        return self._regions_by_cuda.get((file, line))

    @cached_property
    def _regions_by_cuda(self) -> dict[tuple[str, int], Region]:
        found: dict[tuple[str, int], Region] = {}
        for region in sorted(reversed(self.regions), key=lambda r: -len(r.cuda)):  # the last one stays
            for file in ("", *(name for name, _ in region.elsewhere)):
                found |= dict.fromkeys(((file, n) for n in self.lines_in(region, file)), region)
        return found

    def digest_of(self, region: Region) -> str:
        return self._digest_by_name[region.name]

    @cached_property
    def _digest_by_name(self) -> dict[str, str]:
        return {r.name: d for r, d in zip(self.regions, self.digests, strict=False)}

    @cached_property
    def _firsts(self) -> list[int]:
        return [r.first for r in self.regions]

    @cached_property
    def _entries(self) -> dict[int, LineMapEntry]:
        return {e.line: e for e in self.line_map}

    def author(self, line: int) -> str:
        """Who wrote a line of the port; "" for one that is not in the map."""
        entry = self._entries.get(line)
        return entry.author if entry else ""

    def state(self, region: Region) -> str:
        """accepted, rejected, stale (decided about another text), hole, or open."""
        decision = self.decisions.get(region.name)
        if region.hole:
            return "hole"
        if decision is None or decision.state == "open":
            return "open"
        return decision.state if decision.sha256 == self.digest_of(region) else "stale"

    def is_source(self, span: Span) -> bool:
        """Whether a span of the line map lies in the source, not in a file that it includes."""
        return self.record is None or span.file == self.record.source

    def pairs(self, region: Region, file: str = "") -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """(lines of a CUDA file, port lines) of a region in the port's order, neighbours of the same lines together."""
        known = dict(region.elsewhere).get(file, ()) if file else region.cuda
        found: list[tuple[tuple[int, ...], list[int]]] = []
        for line in range(region.first, region.last + 1):
            entry = self._entries.get(line)
            here = entry is not None and (entry.span.file == file if file else self.is_source(entry.span))
            mine = (
                set(range(entry.span.line, max(entry.span.end_line, entry.span.line) + 1)) if entry and here else set()
            )
            ported = tuple(n for n in known if n in mine)
            if self.moved_lines and not file:
                ported = tuple(self.moved_lines[n] for n in ported if n in self.moved_lines)
            if found and (found[-1][0] == ported or not ported):
                found[-1][1].append(line)
            else:
                found.append((ported, [line]))
        return [(cuda, tuple(lines)) for cuda, lines in found]

    @cached_property
    def accepted(self) -> int:
        return sum(self.state(r) == "accepted" for r in self.regions)

    @property
    def complete(self) -> bool:
        """Whether every region is accepted as it is now."""
        seen = (
            self.readable
            and self.cuda is not None
            and not any(d.code == codes.ORIGINAL_FROM_RECORD_ONLY for d in self.faults)
        )
        return seen and bool(self.regions) and self.accepted == len(self.regions)

    def verdict(self, check: str) -> Verdict | None:
        return next((v for v in self.verdicts if v.check == check), None)

    def about(self, region: Region) -> list[tuple[Verdict, Diagnostic]]:
        """Messages of the verifier whose place lies in the region, by port line or by CUDA line."""
        lines = range(region.first, region.last + 1)
        found = []
        for verdict in self.verdicts if self.verified else ():
            for d in verdict.diagnostics:
                ours = d.port_line in lines
                theirs = d.span.file.endswith(self.cuda_path.name) and d.span.line in region.cuda
                theirs |= any(Path(f).name == Path(d.span.file).name and d.span.line in n for f, n in region.elsewhere)
                if ours or (theirs and not d.port_line):
                    found.append((verdict, d))
        return found


def load(port: Path, config: PortConfig | None = None) -> ReviewedPort:
    """Read a port. What is missing or damaged is in its faults, and flags that only the record has: the CUDA may then
    mean something else than one reads. `config`: flags of the command line; None: [tool.porter] alone."""
    faults: list[Diagnostic] = []
    record: PortRecord | None = None
    decided: tuple[Decision, ...] = ()
    text = ""
    try:
        text = read_plain_text(port)
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Diagnostic(codes.UNREADABLE_RECORD, f"cannot read the port {port}: {error}", Span(str(port), 0)))
    try:
        record = recorded(port)
        decided = decisions_of(record, port)
    except PorterError as error:
        faults += error.diagnostics
    if record is None:
        return ReviewedPort(port, text, regions=regions_of(text, ()), faults=tuple(faults), config=config)
    given = with_build_flags(config or load_config(), port.parent / record.source)
    faults += flag_doubts(record, port, replace(given, arch=record.arches), "review")
    now = line_hashes(text)
    line_map = record.line_map if now == record.line_hashes else reanchor(record.line_map, record.line_hashes, now)
    regions = regions_of(text, line_map, record.source)
    cuda_path = Path(os.path.normpath(port.parent / record.source))
    cuda = None
    try:
        cuda = read_plain_text(cuda_path)
    except (OSError, UnicodeDecodeError) as error:
        faults.append(_missing_source(cuda_path, error))
    ported = cuda
    if cuda is None or sha256_text(cuda) != record.source_sha256:
        ported = ported_text(record, cuda_path)
    if cuda is not None and ported != cuda:
        faults.append(_changed_source(cuda_path, port, ported is not None))
    headers: dict[str, tuple[str, ...]] = {}
    for file in dict.fromkeys(name for r in regions for name, _ in r.elsewhere):
        path = Path(os.path.normpath(port.parent / file))
        try:
            headers[file] = tuple(lines_of(read_plain_text(path)))
        except (OSError, UnicodeDecodeError) as error:
            headers[file] = ()
            faults.append(_missing_source(path, error))
    found = ReviewedPort(port, text, cuda_path, cuda, ported, record, line_map, regions, headers, config=config)
    found = replace(found, faults=tuple(faults))
    digests = tuple(digest(found.port_text(r), found.cuda_text(r)) for r in regions)
    return replace(found, digests=digests, decisions=assign(regions, digests, decided))


def _missing_source(path: Path, error: Exception) -> Diagnostic:
    why = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
    help_ = "restore it: without the CUDA beside it nothing of the port can be accepted"
    return Diagnostic(codes.REVIEWED_SOURCE_UNREADABLE, f"the source {path} {why}", Span(str(path), 0), help=help_)


def _changed_source(path: Path, port: Path, found: bool) -> Diagnostic:
    message = f"{path} has changed since {port} was made from it"
    help_ = "decisions about changed CUDA lines are stale; `porter port` regenerates the port"
    if not found:
        help_ = f"the ported text is neither in the record nor in the last {REVISIONS} revisions in git; {help_}"
    return Diagnostic(codes.SOURCE_CHANGED, message, Span(str(path), 0), Severity.WARNING, help_)


def ported_text(record: PortRecord, path: Path) -> str | None:
    """The source as it was ported: from the record, else (records of earlier versions) from git, else None."""
    if record.source_text and sha256_text(record.source_text) == record.source_sha256:
        return record.source_text
    return text_in_git(path, record.source_sha256)


def text_in_git(path: Path, sha256: str) -> str | None:
    """The text of a file with this hash among its revisions in git; None when there is none, or no git."""
    folder = path.parent
    for revision in git(folder, "log", f"-{REVISIONS}", "--format=%H", "--", path.name, seconds=30).text.split():
        old = git(folder, "show", f"{revision}:./{path.name}", seconds=30)
        if not old.ok:
            return None
        if sha256_text(old.text) == sha256:
            return old.text
    return None


def load_all(paths: Sequence[Path], config: PortConfig | None = None) -> list[ReviewedPort]:
    """The ports named and those in the folders named. Raises PorterError when there is none."""
    return [load(p, config) for p in find_ports(paths)]


def status_text(port: ReviewedPort, check: str) -> str:
    """What a table shows for a check: PASS, FAIL, SKIP, ERROR, "-" not run, with "?" when about an earlier text."""
    verdict = port.verdict(check)
    if verdict is None:
        return "-"
    return verdict.status.value + ("" if port.verified else "?")


def failing(port: ReviewedPort) -> bool:
    return any(v.status in (Status.FAIL, Status.ERROR) for v in port.verdicts)
