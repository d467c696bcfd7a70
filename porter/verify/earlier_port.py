"""A port in the place of the original: what it takes to use an earlier state of a port as the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from porter import codes
from porter.case.expressions import Value
from porter.model import Diagnostic, Instance, PorterError
from porter.source import Span
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.compiled import OriginalBuild


def port_builds(port: Path, instances: Sequence[Mapping[str, Value]], arch: str, jobs: int) -> list[OriginalBuild]:
    """The port compiled at each instance's template values. Raises PorterError PRT811 when it does not compile."""
    found = []
    for result in compile_port(port, [CompileRequest(values, arch) for values in instances], jobs=jobs):
        if not result.ok:
            message = f"the earlier port does not compile: {result.error}"
            raise PorterError(Diagnostic(codes.DOES_NOT_COMPILE, message, Span(str(port), result.line)))
        found.append(
            OriginalBuild(
                Instance(),
                result.ptx,
                result.cubin,
                result.entry,
                result.registers,
                result.local_bytes,
                result.static_smem,
                "",
                result.seconds,
            )
        )
    return found
