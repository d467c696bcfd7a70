"""`--show-prompt`: the first request of each run that --agent or --optimise would start. Sends and writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from porter.agents.edit_session import EditSession, StartingPort
from porter.agents.loop import Run as AgentRun
from porter.agents.loop import Stop
from porter.agents.messages import ModelRequest
from porter.agents.prompts import request_of
from porter.agents.providers import Connection, connect
from porter.agents.record import Journal
from porter.agents.runs.candidates import Baseline, CandidateVerifier
from porter.agents.runs.edited_port import edited_start, started_from_edit
from porter.agents.runs.verifier import PortVerifier, subject_of
from porter.agents.settings import AgentSettings
from porter.config import PortConfig
from porter.corpus.runtime.scratch import Scratch
from porter.model import KernelInfo, PorterError
from porter.pipeline.compile_commands import with_build_flags
from porter.pipeline.inputs import choose_kernels, known_case, parse
from porter.pipeline.outputs import Translation, claim_in, port_paths
from porter.pipeline.stages import Run, translate

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

T = TypeVar("T")


def prompts_of(
    paths: Sequence[Path],
    config: PortConfig,
    settings: AgentSettings,
    modes: Sequence[bool],
    refused: Callable[[PorterError], None],
) -> Iterator[tuple[str, bytes]]:
    """(URL, body) of the first request for each kernel that needs the agent; `modes` as of porter.agents.runs.session.
    What a file or kernel raises goes to `refused`, and the others follow."""
    provider = connect(settings.provider, Connection("", settings.base_url))

    def guarded(work: Callable[[], Iterable[T]]) -> Iterator[T]:
        try:
            yield from work()
        except PorterError as error:
            refused(error)

    for path in paths:
        for unit, info, target in guarded(partial(_kernels, path, config)):
            for request in guarded(partial(_of_kernel, unit, info, target, config, settings, modes)):
                yield provider.wire(request)


def _kernels(path: Path, config: PortConfig) -> list[tuple[ParsedUnit, KernelInfo, Path]]:
    """The kernels of a file, each with the port that it has."""
    config = with_build_flags(config, path)
    unit = parse(path, config)
    kernels = choose_kernels(unit, config)
    ports = port_paths(unit, kernels, config.output, claim_in({}))
    return [(unit, info, ports[info.span]) for info in kernels]


def _of_kernel(
    unit: ParsedUnit, info: KernelInfo, target: Path, config: PortConfig, settings: AgentSettings, modes: Sequence[bool]
) -> Iterator[ModelRequest]:
    case = known_case(unit, info, config)
    if case is not None:  # without one a run drafts it and sends nothing
        made = translate(unit, info, case, config, Run(info.name))
        yield from first_requests(made, target, config, settings, modes)


def first_requests(
    made: Translation, target: Path, config: PortConfig, settings: AgentSettings, modes: Sequence[bool]
) -> Iterator[ModelRequest]:
    """One a candidate, where a run in one of the modes would ask anything: the run itself says so."""
    start = None if config.force else edited_start(made, target)
    if start is not None:
        made = started_from_edit(made, start, target.read_text(encoding="utf-8"))
    assert made.case is not None
    verifier = PortVerifier(made, made.case, config, target)
    baseline = Baseline(made.module.text, threading.Lock())  # verified once for all
    for optimise in modes:
        subject = subject_of(made, optimise)
        for number in range(1, settings.candidates + 1):
            mine = replace(subject, candidate=number, candidates=settings.candidates)
            yield from _first(mine, CandidateVerifier(verifier, baseline, threading.Event()), settings)


def _first(subject: StartingPort, verifier: CandidateVerifier, settings: AgentSettings) -> Iterator[ModelRequest]:
    with Scratch() as folder:
        journal = Journal(Path(folder) / "events.jsonl")
        run, session = AgentRun(subject, verifier, None, settings, journal), EditSession(subject, verifier, journal)
        try:
            session.open_baseline()
            run.begin(session)
        except Stop:
            return
        finally:
            journal.close()
        yield request_of(session, settings, run.messages)
