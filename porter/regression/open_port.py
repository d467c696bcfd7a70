"""A port read with all that it is verified against: its record, the source, the kernel, the case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes
from porter.case.reader import Case
from porter.config import PortConfig
from porter.model import Diagnostic, Hole, KernelInfo, PorterError, Verdict
from porter.pipeline.inputs import choose_kernels, find_case, parse, with_instances
from porter.pipeline.open_ports import changed_since, recorded, recorded_config
from porter.pipeline.outputs import claim_in, now, port_paths
from porter.pipeline.stages import Run
from porter.plain_files import read_plain_text
from porter.provenance.baseline import (
    BaselineRun,
    baseline_run,
)
from porter.provenance.hole_markers import open_holes
from porter.provenance.record import PortRecord, sha256_text, tool_versions
from porter.source import Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


@dataclass(frozen=True)
class OpenPort:
    """A port on disk with all that it is verified against. `given`: with the case and the instances that were
    named for this run alone; `given_case`: with the instances that are its own or were named so."""

    path: Path
    text: str
    record: PortRecord
    config: PortConfig
    unit: ParsedUnit
    info: KernelInfo
    case: Case
    holes: tuple[Hole, ...] = ()
    given: PortConfig = field(default_factory=PortConfig)
    given_case: Case | None = None

    @property
    def named(self) -> bool:
        """Whether a person named the case for this run: then a change of it is meant."""
        return self.given.case is not None

    def baseline_run(self, verdicts: Sequence[Verdict], backend: str) -> BaselineRun:
        """What these verdicts about the port would be as a baseline."""
        run = BaselineRun(
            backend=backend,
            date=now(),
            port_sha256=sha256_text(self.text),
            source_sha256=self.unit.source.sha256,
            case_sha256=sha256_text(self.case.text),
            thorough=self.config.thorough,
            arches=self.config.arch,
            versions=tool_versions() | ({"dsl": self.config.dsl} if self.config.dsl else {}),
        )
        return baseline_run(verdicts, run)


def open_port(port_file: Path, config: PortConfig, run: Run, source: str | None = None) -> OpenPort:
    """Read a port, its record, the source (or `source` in its place) and the case. Raises PorterError."""
    record = recorded(port_file)
    given = config
    config = recorded_config(record, port_file.parent, config)
    text = port_text(port_file)
    with run.stage("parse"):
        unit = parse(Path(os.path.normpath(port_file.parent / record.source)), config, source)
        info = recorded_kernel(record, port_file, unit, config)
        asked = replace(config, instantiate=given.instantiate)
        own_case = find_case(unit, info, asked)
        case = with_instances(own_case, record.instances, unit, info)
    run.diagnostics += changed_since(record, unit, port_file)
    still = open_holes(text)
    holes = tuple(h for n, h in enumerate(record.holes, 1) if n in still)
    return OpenPort(port_file, text, record, config, unit, info, case, holes, replace(asked, case=given.case), own_case)


def port_text(port: Path) -> str:
    """The port's text. Raises PorterError PRT010 where it cannot be read or is no text."""
    try:
        return read_plain_text(port)
    except UnicodeDecodeError:
        message = f"{port} is not UTF-8 text"
    except OSError as error:
        message = f"cannot read {port}: {error.strerror}"
    help_ = "restore it, or run porter port --force"
    raise PorterError(Diagnostic(codes.UNREADABLE_SOURCE, message, Span(str(port), 0), help=help_))


def recorded_kernel(record: PortRecord, port: Path, unit: ParsedUnit, config: PortConfig) -> KernelInfo:
    """The kernel that a record names; of overloads the one that this file is the port of. Raises PorterError PRT956."""
    found = choose_kernels(unit, replace(config, kernel=(record.kernel,)))
    exact = [k for k in found if k.qualified_name == record.kernel] or list(found)
    files = port_paths(unit, found, port.parent, claim_in({}))
    return next((k for k in exact if files[k.span].name == port.name), exact[0])
