"""What the stages hand to each other: diagnostics, kernels found, ports made, verdicts. Plain frozen data, no
behaviour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from porter.model.facts import Facts
from porter.source import NO_SPAN, Source, Span


class Severity(Enum):
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnostic:
    """One message for a person: code PRTnnn, where, what, and the next step. What a program needs of it is in fields of
    its own: no text of a message is ever parsed."""

    code: str
    message: str
    span: Span = NO_SPAN
    severity: Severity = Severity.ERROR
    help: str = ""
    notes: tuple[str, ...] = ()
    port_line: int = 0  # line of the port that it is about, from 1; 0: it is about none
    hole: int = 0  # number of the hole that it is about, from 1; 0: it is about none
    key: str = ""  # key of a table or of a record that it is about


class PorterError(Exception):
    """porter could not do its work (exit code 2). Carries the diagnostics to print."""

    def __init__(self, *diagnostics: Diagnostic):
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


class EditedPort(PorterError):
    """A port that porter would overwrite is not the text that porter wrote (PRT954). `port` is its path."""

    def __init__(self, port: Path, diagnostic: Diagnostic):
        super().__init__(diagnostic)
        self.port = port


@dataclass(frozen=True)
class Hole:
    """A place that could not be translated."""

    code: str
    span: Span
    cuda: str
    reason: str


@dataclass(frozen=True)
class TemplateParam:
    name: str
    kind: str  # "type", "value" or "template"
    type: str = ""  # of a value parameter, C++ spelling
    default: str = ""


@dataclass(frozen=True)
class KernelParam:
    name: str
    type: str  # C++ spelling as written


@dataclass(frozen=True)
class KernelInfo:
    """A __global__ function definition found in a file."""

    name: str
    qualified_name: str
    params: tuple[KernelParam, ...]
    template_params: tuple[TemplateParam, ...] = ()
    span: Span = NO_SPAN
    launch_bounds: str = ""
    errors: tuple[Diagnostic, ...] = ()  # parse errors inside its extent

    @property
    def is_template(self) -> bool:
        return bool(self.template_params)


@dataclass(frozen=True)
class Instance:
    """One specialisation: template arguments as C++ text, in order (`("__nv_bfloat16", "8")`); empty for a plain
    kernel."""

    args: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"<{', '.join(self.args)}>" if self.args else ""


@dataclass(frozen=True)
class Launch:
    """A launch site of the file's host code, expressions as C++ text."""

    kernel: str
    args: tuple[str, ...]
    grid: str
    block: str
    smem: str = "0"
    stream: str = ""
    cooperative: bool = False
    cluster: tuple[str, ...] = ()
    pdl: bool = False
    template_args: tuple[str, ...] = ()
    host_function: str = ""
    span: Span = NO_SPAN


@dataclass(frozen=True)
class LineMapEntry:
    """Line `line` of the port came from `span`, written by `author` (translator, pattern:<code>, agent:<attempt>,
    person). A line that several patterns rewrote has their codes with commas between, in the order of the rewrites."""

    line: int
    span: Span
    author: str = "translator"


def author_of(patterns: tuple[str, ...]) -> str:
    """The author of a line that these patterns rewrote, as the line map spells it."""
    return f"pattern:{','.join(patterns)}" if patterns else "translator"


def patterns_of(author: str) -> tuple[str, ...]:
    """The codes of the patterns in an author of the line map; () for the translator, an agent, a person."""
    kind, _, codes = author.partition(":")
    return tuple(codes.split(",")) if kind == "pattern" else ()


def patterns_named(line_map: Iterable[LineMapEntry]) -> tuple[str, ...]:
    """The codes of all patterns that a line map names, sorted."""
    return tuple(sorted({name for e in line_map for name in patterns_of(e.author)}))


#: ground of an assumption -> what a person reads
BASES = {
    "proved": "proved",  # porter has shown it from the source, or does not rewrite
    "source": "promised",  # a qualifier, or the rules of the language or of a library
    "case": "from the case",  # the case file, or the launcher in the source, says so
    "checked": "checked",  # something refuses to run where it does not hold
    "assumed": "not proved",  # nothing but the launches that are tried
}


@dataclass(frozen=True)
class Assumption:
    """Something that must hold for a rewrite to be right. `how` says what backs it, in a few words.

    `check` is the check of `porter verify` that fails where it does not hold, on the launches that are tried; "" for
    none. `pattern` is the code of the rewrite.
    """

    text: str  # "that ..."
    basis: str  # a key of BASES
    how: str
    check: str = ""
    pattern: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.text} ({BASES.get(self.basis, self.basis)}: {self.how})"


@dataclass(frozen=True)
class PortedModule:
    """The emitted .py text with its map and what was left open."""

    kernel: str
    text: str
    line_map: tuple[LineMapEntry, ...]
    holes: tuple[Hole, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    patterns: tuple[str, ...] = ()  # names of the pattern rewrites used


class Status(Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    SKIP = "SKIP"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Verdict:
    """One check's answer. `detail` is one line for a person; `facts` and `seconds` are `data` in JSON."""

    check: str  # honesty names compile resources numerics sanitizer determinism performance
    status: Status
    detail: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    facts: Facts = field(default_factory=Facts)
    seconds: float | None = None  # that the check took; None where it was not run


F = TypeVar("F", bound=Facts)


def facts_of(verdicts: Iterable[Verdict], kind: type[F]) -> F | None:
    """What a check measured, by the class of its facts; None where it was not run, or measured nothing."""
    return next((v.facts for v in verdicts if isinstance(v.facts, kind)), None)


@dataclass(frozen=True)
class KernelReport:
    """All that is known of one kernel after a run."""

    kernel: str
    source: Source
    instances: tuple[Instance, ...] = ()
    port_path: str = ""
    holes: tuple[Hole, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    derived: str = ""  # what its case was derived from, while nobody has confirmed that
    unchanged: bool = False  # an earlier run's answer: nothing has changed since
    unverified: str = ""  # why it could not be verified, where that was asked for
    guessed: bool = False  # nobody named its instances, and no launch does
    edited_port: str = ""  # the port that was left as it is, since somebody edited it (PRT954)

    @property
    def passed(self) -> bool:
        """No hole, and no check that failed or could not be run."""
        return not self.holes and all(v.status in (Status.PASS, Status.SKIP) for v in self.verdicts)

    @property
    def ok(self) -> bool:
        """Nothing is left to be done: a port that was not verified, or only agrees, waits for a person."""
        return self.passed and not (self.derived and self.verdicts) and not self.unverified


@dataclass(frozen=True)
class Report:
    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all good; 1 a port has holes or failed a check; 2 porter could not do its work."""
        if any(d.severity is Severity.ERROR for d in self.diagnostics):
            return 2
        if any(d.severity is Severity.ERROR for k in self.kernels for d in k.diagnostics):
            return 2
        return 0 if all(k.ok for k in self.kernels) else 1
