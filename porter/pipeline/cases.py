"""The case of a kernel that is ported: given, beside the source, in the output folder, or derived and written there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes
from porter.case.model import Case
from porter.case.reader import load_case
from porter.config import PortConfig
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, KernelInfo, Severity
from porter.pipeline.derived_cases import CaseText, derive_case, is_measurable
from porter.pipeline.inputs import case_if_any, instances_asked, other_kernels_case, with_instances
from porter.pipeline.outputs import drafted_case_path
from porter.source import Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


@dataclass(frozen=True)
class FoundCase:
    """A case, or None and the message that says what is missing; `message` of a derived case says what it assumes."""

    case: Case | None
    message: Diagnostic | None = None


def case_to_port(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> FoundCase:
    """The case of a kernel; one that is derived, or that a person has to complete, is written to the output folder.

    Raises PorterError for a case that is broken or of another kernel, and where the folder cannot be written.
    """
    case = case_if_any(unit, info, config)
    if case is not None:
        if not case.derived:
            return FoundCase(case)
        if config.confirm_cases:
            return FoundCase(_confirmed(case, unit, info, config))
        return FoundCase(case, _unconfirmed(case, info))
    if config.case:
        raise other_kernels_case(info, config.case)
    path = drafted_case_path(unit, info, config)
    if path.exists():
        return FoundCase(None, _to_complete(info, path, "a draft is in"))
    if not config.verify and is_measurable(unit, info, path):
        return FoundCase(None, _not_derived(info))
    made = derive_case(unit, info, path)
    _write(path, made.text)
    if made.open:
        return FoundCase(None, _to_complete(info, path, "a draft was written to", made))
    case = with_instances(load_case(path), instances_asked(info, config), unit, info)
    if config.confirm_cases:
        return FoundCase(_confirmed(case, unit, info, config))
    return FoundCase(case, _unconfirmed(case, info, made))


def _confirmed(case: Case, unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case:
    """The case without its mark, on disk as well."""
    text = re.sub(r"^(?:# Derived by porter from .*|derived = .*)\n", "", case.text, flags=re.M)
    _write(case.path, text)
    return with_instances(load_case(case.path), instances_asked(info, config), unit, info)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    except OSError as error:
        raise writing_failed(path, error) from error


def _unconfirmed(case: Case, info: KernelInfo, made: CaseText | None = None) -> Diagnostic:
    message = f"the case of `{info.name}` was derived from {case.derived}, and nobody has confirmed it"
    help_ = f"read {case.path}; when it is right, port again with --confirm-cases"
    notes = tuple(f"assumed: {a}" for a in made.assumptions) if made else ()
    return Diagnostic(codes.DERIVED_CASE, message, Span(str(case.path), 1), Severity.WARNING, help_, notes)


def _not_derived(info: KernelInfo) -> Diagnostic:
    message = f"`{info.name}` has no case; none is derived where nothing is verified"
    help_ = "port again without --no-verify: the original is then run, and the port is compared with it"
    return Diagnostic(codes.NO_CASE, message, info.span, Severity.WARNING, help_)


def _to_complete(info: KernelInfo, path: Path, where: str, made: CaseText | None = None) -> Diagnostic:
    message = f"`{info.name}` has no case; {where} {path}"
    notes = (f"open: {made.open}",) if made else ()
    help_ = f"complete {path} and port again: the port is not verified without it"
    return Diagnostic(codes.NO_CASE, message, info.span, Severity.WARNING, help_, notes)
