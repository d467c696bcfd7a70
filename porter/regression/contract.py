"""What a port is compared with, and who says so.

The record beside a port is written by whoever may write the port. So what it says about the original counts only where
somebody else says it too: the command line, [tool.porter], the source, the case, the port's own first line. What only
the record says is named (PRT966), and nothing is run: an answer about another original would be read as one about this.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter import codes
from porter.case.reader import Case, case_path_for, load_case
from porter.config import PortConfig
from porter.model import Diagnostic, Instance, KernelInfo, Status, Verdict
from porter.model.facts import ContractFacts
from porter.pipeline.inputs import choose_instances
from porter.plain_files import text_or_none
from porter.provenance.record import PortRecord, reference_sha256, sha256_text
from porter.provenance.store import is_same_file
from porter.source import Span
from porter.syntax import module_tree
from porter.wording import plural

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

FIRST_LINE = re.compile(r"(\w+), ported from (.+) by porter \S+\.$")
SHOWN = 12  # digits of a hash


# ---------------------------------------------------------------- flags, which need nothing to be read


@dataclass(frozen=True)
class Flags:
    """What reaches the original's front end and compiler. Folders are real paths; the order of definitions is free."""

    std: str
    define: tuple[tuple[str, str], ...]
    include: tuple[str, ...]
    arch: tuple[str, ...]
    math: tuple[str, ...] = ()
    pre_include: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        std: str,
        define: Sequence[str],
        include: Sequence[str | Path],
        arch: Sequence[str],
        math: Sequence[str] = (),
        pre_include: Sequence[str | Path] = (),
    ) -> Flags:
        macros = dict((name, value if sep else "1") for name, sep, value in (d.partition("=") for d in define))
        folders, files = (tuple(os.path.realpath(p) for p in paths) for paths in (include, pre_include))
        return cls(std, tuple(sorted(macros.items())), folders, tuple(arch), tuple(sorted(math)), files)

    def text(self) -> str:
        """As a person types them, the default of -std and --arch left away."""
        return shlex.join(w for name in LETTERS for w in _words(name, getattr(self, name)))


def flags_of(config: PortConfig) -> Flags:
    return Flags.of(config.std, config.define, config.include, config.arch, config.math, config.pre_include)


def recorded_flags(record: PortRecord, folder: Path) -> Flags:
    options = record.options
    include = [folder / i for i in options.get("include", ())]
    first = [folder / i for i in options.get("pre_include", ())]
    std, define, math = options.get("std", PortConfig.std), options.get("define", ()), options.get("math", ())
    return Flags.of(std, define, include, record.arches, math, first)


def flag_doubts(record: PortRecord, port: Path, config: PortConfig, command: str = "verify") -> tuple[Diagnostic, ...]:
    """A message where the flags in a record are not those that the run was given; nothing is read for it."""
    said, given = recorded_flags(record, port.parent), flags_of(config)
    if not record.arches:  # records of earlier versions
        said = replace(said, arch=given.arch)
    only: list[str] = []
    for name in LETTERS:
        one, other = getattr(said, name), getattr(given, name)
        if one != other:
            only.append(f"{_spelled(name, one) or f'no {LETTERS[name]}'} (given: {_spelled(name, other) or 'none'})")
    if not only:
        return ()
    flags = said.text()
    message = f"only {port.stem}.port.json says how the original is compiled: {'; '.join(only)}"
    say = f"say it: `porter {command} {port} {flags}`, or in [tool.porter] of pyproject.toml"
    say = say if flags else "remove the flags here and in [tool.porter] of pyproject.toml"
    help_ = f"if that is right, {say}; otherwise regenerate the port with `porter port`"
    return (Diagnostic(codes.ORIGINAL_FROM_RECORD_ONLY, message, Span(str(port), 0), help=help_),)


LETTERS = {
    "define": "-D", "include": "-I", "std": "-std", "arch": "--arch", "math": "--math", "pre_include": "-include",
}  # fmt: skip


def _words(name: str, value: Any) -> list[str]:
    if name == "std":
        return [] if value == PortConfig.std else ["-std", value]
    if name == "arch":
        return [] if value == PortConfig.arch else ["--arch", ",".join(value)]
    if name == "math":
        return ["--math", ",".join(value)] if value else []
    if name in ("include", "pre_include"):
        return [w for path in value for w in (LETTERS[name], os.path.relpath(path))]
    return [w for macro, text in value for w in ("-D", macro if text == "1" else f"{macro}={text}")]


def _spelled(name: str, value: Any) -> str:
    if name in ("std", "arch"):
        return f"{LETTERS[name]} {value if name == 'std' else ','.join(value)}"
    return shlex.join(_words(name, value))


# ---------------------------------------------------------------- what the source, the case and the port say


def original_doubts(
    record: PortRecord, port: Path, text: str, unit: ParsedUnit, info: KernelInfo, case: Case, config: PortConfig
) -> tuple[Diagnostic, ...]:
    """Messages where the record names another kernel, source, case or set of instances than everything else does.

    `case` is the case without the record's instances, `config` that of the run: its case and instances are a person's.
    """
    found = [*_port_says(port, text, unit, info), *_case_says(record, port, unit, info, case, config)]
    found += _instances_say(record, port, unit, info, case, config)
    return tuple(
        Diagnostic(codes.ORIGINAL_FROM_RECORD_ONLY, message, Span(str(port), 0), help=help_) for message, help_ in found
    )


def _port_says(port: Path, text: str, unit: ParsedUnit, info: KernelInfo) -> Iterator[tuple[str, str]]:
    try:
        doc = ast.get_docstring(module_tree(text)) or ""
    except (SyntaxError, ValueError):
        return  # which honesty says
    line = FIRST_LINE.match(doc.split("\n")[0])
    file = Path(info.span.file or unit.source.path).name
    if line and (line[1], line[2]) != (info.name, file):
        message = f"{port.stem}.port.json says that this is the port of `{info.name}` in {unit.source.path}"
        message += f", the port says that it is of `{line[1]}` in {line[2]}"
        yield message, "restore the record, or regenerate the port with `porter port`"


def _case_says(
    record: PortRecord, port: Path, unit: ParsedUnit, info: KernelInfo, case: Case, config: PortConfig
) -> Iterator[tuple[str, str]]:
    if record.case and config.case is None:
        named = recorded_case(record, port)
        own = default_case(unit, info, port)
        if own is None or not is_same_file(named, own):
            other = f"; the case of `{info.name}` is {own}" if own else ""
            yield (
                f"only {port.stem}.port.json names the case {named}{other}",
                f"if that is right, confirm it: `porter verify {port} --case {named}`",
            )
            return
    source = case.source_path
    if case.path.is_file() and source.is_file() and not is_same_file(source, unit.source.path):
        message = f"{port.stem}.port.json names the source {unit.source.path}, the case {case.path} is for {source}"
        yield message, "restore the record, or give the case its `source`"


def default_case(unit: ParsedUnit, info: KernelInfo, port: Path) -> Path | None:
    """The case of a kernel where nobody names one: beside its source, else where porter drafts it, beside the port."""
    beside = case_path_for(unit.source.path, info.name)
    if beside is not None and load_case(beside).kernel in (info.name, info.qualified_name):
        return beside
    drafted = port.parent / f"{unit.source.path.stem}.{info.name}.case.toml"
    return drafted if drafted.is_file() else None


def _instances_say(
    record: PortRecord, port: Path, unit: ParsedUnit, info: KernelInfo, case: Case, config: PortConfig
) -> Iterator[tuple[str, str]]:
    if not record.instances:
        return
    wanted, said = dict.fromkeys(choose_instances(unit, info, case, config)), dict.fromkeys(record.instances)
    missing, extra = _names([i for i in wanted if i not in said]), _names([i for i in said if i not in wanted])
    if not missing and not extra:
        return
    parts = [f"leaves out {missing}"] if missing else []
    parts += [f"adds {extra}"] if extra else []
    flags = " ".join(f"--instantiate '{info.name}{i}'" for i in said)
    yield (
        f"only {port.stem}.port.json says which instances of `{info.name}` are verified: it {' and '.join(parts)}",
        f"if that is right, confirm it: `porter verify {port} {flags}`, or in the case; otherwise port it again",
    )


def _names(instances: Sequence[Instance]) -> str:
    return ", ".join(str(i) or "the plain kernel" for i in instances)


# ---------------------------------------------------------------- the verdict


def doubtful(doubts: Sequence[Diagnostic]) -> Verdict:
    """The verdict about a port of which only the record says what its original is."""
    return Verdict("contract", Status.FAIL, doubts[0].message, tuple(doubts))


def contract_verdict(
    record: PortRecord, port: Path, named: bool, unit: ParsedUnit, info: KernelInfo, case: Case, config: PortConfig
) -> Verdict:
    """PASS with what the port is compared with; FAIL (PRT959) when the recorded case, or the reference that it names,
    has another text than the recorded hash says, or is gone.

    `named`: a person gave the case for this run, so a change of it is meant.
    """
    from porter.frontend.parse.project_headers import project_headers

    headers = project_headers(unit)
    facts = ContractFacts(
        kernel=info.qualified_name or info.name,
        source=str(unit.source.path),
        source_sha256=unit.source.sha256,
        headers=headers,
        std=config.std,
        define=tuple(config.define),
        include=tuple(config.include),
        arch=tuple(config.arch),
        case=str(case.path) if case.path.is_file() else "",
        case_sha256=sha256_text(case.text),
        reference_sha256=reference_sha256(case),
    )
    words = [f"{facts.kernel} of {unit.source.path} ({unit.source.sha256[:SHOWN]})"]
    if headers:
        words.append(plural(len(headers), "header"))
    given = flags_of(config)
    words.append(shlex.join(w for n in ("define", "include") for w in _words(n, getattr(given, n))))
    words.append(f"-std {config.std}")
    where = facts.case or "from the launcher"
    words.append(f"case {where} ({facts.case_sha256[:SHOWN]})")
    detail = ", ".join(w for w in words if w)
    changed = "" if named else _changed(record, port, case)
    if not changed:
        return Verdict("contract", Status.PASS, detail, (), facts)
    help_ = f"if the change is intended, confirm it: `porter verify {port} --case {recorded_case(record, port)}`"
    message = f"{changed} is not the one that {port} was verified against"
    span = Span(str(recorded_case(record, port)), 0)
    return Verdict(
        "contract", Status.FAIL, message, (Diagnostic(codes.CASE_CHANGED, message, span, help=help_),), facts
    )


def _changed(record: PortRecord, port: Path, case: Case) -> str:
    """What of the recorded contract has another text now, "" when nothing has."""
    if not record.case or not record.case_sha256:
        return ""
    path = recorded_case(record, port)
    text = text_or_none(path)
    if text is None or sha256_text(text) != record.case_sha256:
        return f"the case {path}"
    if record.reference_sha256 is not None and reference_sha256(case) != record.reference_sha256:
        return f"the reference {case.reference}"
    return ""


def recorded_case(record: PortRecord, port: Path) -> Path:
    """The case file that a port's record names."""
    return Path(os.path.normpath(port.parent / record.case))


def is_recorded_case(record: PortRecord, port: Path, case: Case) -> bool:
    """Whether a case is read from the file that the record names."""
    return bool(record.case) and recorded_case(record, port).resolve() == Path(case.path).resolve()
