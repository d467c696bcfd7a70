"""What is sent: a prefix that is the same for every kernel (so that it is cached), then the task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from porter.agents.edit_session import EditSession, StartingPort
from porter.agents.exemplars import exemplars, kernel_query, ranker
from porter.agents.knowledge import page
from porter.agents.launch_edit import launch_of
from porter.agents.located_messages import located_messages
from porter.agents.messages import Message, ModelRequest
from porter.agents.regions import EditRefused
from porter.agents.settings import AgentSettings
from porter.agents.tools import schemas
from porter.model import Status, Verdict
from porter.provenance.hole_markers import open_holes

MOST = 40_000  # characters of a part of the task
# The table of CUDA functions, and code that shows how the library is used: shared memory, barriers, wide copies.
ALWAYS = ("intrinsics", "lib.blocks.block_reduce", "lib.memory.copy")

SYSTEM = """\
You complete ports of CUDA kernels to CuTeDSL (the Python DSL of CUTLASS). A translator has made the port; what it
could not translate is a hole: `runtime.hole(number, code, type)` at the place of the statement or value, with the CUDA
text in a comment above it or in the list of holes.

How the work goes
- You change regions of the port with replace_region and nothing else. The entry function, its signature, the case and
  the original kernel are not yours to change, nor is the launch but by replace_launch when you optimise.
- verify judges the candidate: does every library name exist, does it compile, are all outputs those of the original
  kernel over many inputs, does it touch memory it must not, is it deterministic. It is kept only when it is better
  than the best so far; otherwise the port goes back to the best. After you are done it is verified again with other
  seeds and shapes, so a port that fits the launches you saw and no others is lost.
- Keep the arithmetic of the original: the same operations, in the same order and precision, rounding where it rounds.
- The result is a CuTeDSL kernel that computes. Calling the original, torch operators that compute, results kept between
  calls, try/except and special cases for particular sizes or seeds are refused.
- Look names up (search_corpus, read_exemplar, check_names) instead of guessing them.
- When something cannot be done, call give_up with the reason: an open hole is better than a wrong line.
- Work in few steps: read what you need, replace, verify. Call a tool in every turn until you are done.
"""

OPTIMISE = """\
The port is verified. Make it faster while it stays as right as it is: wider accesses, fewer instructions, less shared
memory traffic, better overlap, other blocks and grids (replace_launch). profile gives times (or counts, without a GPU)
against the original. A candidate is kept only when every check still passes and it is faster by more than the noise.
Stop when nothing promising is left.
"""

CANDIDATES = """\
Independent attempts are made at this port at once, and the best is kept. The first candidate takes the way that looks
most promising; the others look for another one, each its own."""


def system_prompt() -> tuple[str, ...]:
    """The stable prefix: rules, the knowledge page of the DSL, exemplars that every kernel may need. With the tools it
    is longer than the 4096 tokens below which some models cache nothing."""
    known = {e.name: e for e in exemplars()}
    shown = [f"## {name}\n\n```python\n{known[name].text.rstrip()}\n```\n" for name in ALWAYS]
    return (SYSTEM, page(), "\n".join(["# Exemplars\n", *shown]))


def first_message(subject: StartingPort, verdicts: Sequence[Verdict], regions: Sequence[str]) -> Message:
    """The task: CUDA text, IR, port, holes, what the verifier said, exemplars."""
    parts = [f"# Kernel `{subject.kernel}`"]
    if subject.optimise:
        parts.append(OPTIMISE)
    parts.append(f"## CUDA\n\n```cuda\n{_clip(subject.cuda)}\n```")
    if subject.ir:
        parts.append(f"## The translator's view of it\n\n```text\n{_clip(subject.ir)}\n```")
    parts.append(f"## Port\n\n```python\n{_clip(subject.port)}\n```")
    still = open_holes(subject.port)  # an edited port may have some filled
    if still:
        rows = [
            f"- hole {n} ({h.code}, line {h.span.line} of the CUDA file): {h.reason}\n  `{' '.join(h.cuda.split())}`"
            for n, h in enumerate(subject.holes, 1)
            if n in still
        ]
        parts.append("## Holes\n\n" + "\n".join(rows))
    notes = [f"- {d.code} line {d.span.line}: {d.message}" for d in subject.diagnostics]
    failed = [f"- {v.check} {v.status.value}: {v.detail}" for v in verdicts if v.status is not Status.PASS]
    failed += [located_messages(v.diagnostics[:3], subject.line_map) for v in verdicts if v.status is Status.FAIL]
    if notes or failed:
        parts.append("## What porter says\n\n" + "\n".join([*notes, *filter(None, failed)]))
    parts.append(f"## Regions that you may replace\n\n{', '.join(regions)}")
    if subject.optimise:
        parts += _launch(subject)
    query = kernel_query(subject.cuda, [(h.cuda, h.reason) for h in subject.holes])
    near = [f"### {e.name}\n\n```python\n{_clip(e.text, 4000)}\n```" for e in ranker().to_show(query)]
    if near:
        parts.append("## Perhaps of use\n\n" + "\n\n".join(near))
    if subject.candidates > 1:
        parts.append(f"## Candidate {subject.candidate} of {subject.candidates}\n\n{CANDIDATES}")
    return {"role": "user", "content": [{"type": "text", "text": "\n\n".join(parts) + "\n"}]}


def _launch(subject: StartingPort) -> list[str]:
    """What replace_launch would replace, and the names that it may use; nothing where it cannot."""
    try:
        launch = launch_of(subject.port, subject.sizes, subject.template)
    except EditRefused:
        return []
    names = ", ".join(launch.names) or "none"
    return [f"## Launch\n\n(grid, block, shared memory in bytes) is `{launch.text}`. Names: {names}."]


def request_of(session: EditSession, settings: AgentSettings, messages: Sequence[Message]) -> ModelRequest:
    return ModelRequest(settings.model, settings.max_tokens, system_prompt(), schemas(), tuple(messages))


def as_text(url: str, body: bytes) -> str:
    """The body of a request for a person to read: everything that is in it, long texts as they are."""
    parts = [f"POST {url}"]
    value = json.loads(body)
    first = [k for k in ("model", "max_tokens", "stream", "system", "tools", "messages") if k in value]
    _show({k: value[k] for k in [*first, *(k for k in value if k not in first)]}, "", parts)
    return "\n".join(parts) + "\n"


def _show(value: Any, name: str, parts: list[str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _show(inner, f"{name}.{key}" if name else key, parts)
    elif isinstance(value, list) and value:
        for n, inner in enumerate(value):
            _show(inner, f"{name}[{n}]", parts)
    elif isinstance(value, str) and "\n" in value:
        parts.append(f"\n---- {name} ----\n{value}\n---- end of {name} ----\n")
    else:
        parts.append(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")


def _clip(text: str, most: int = MOST) -> str:
    text = text.rstrip()
    return text if len(text) <= most else f"{text[:most]}\n... {len(text) - most} characters left out"
