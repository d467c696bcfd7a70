"""The tools of the agent: plain functions, whose schemas come from their signatures and docstrings.

Each takes the edit session and what the model gave, and gives text. None of them reads or writes a file that the model
names; what may be changed is a region of the port, and what decides is the verifier. A new tool is a function in TOOLS.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from porter import codes
from porter.agents.copy_floor import at_copy_floor, times_of
from porter.agents.edit_session import EditSession
from porter.agents.exemplars import exemplars, ranker
from porter.agents.launch_edit import REGION as LAUNCH
from porter.agents.launch_edit import launch_of, with_launch
from porter.agents.located_messages import located_messages
from porter.agents.messages import Block
from porter.agents.ranking import speed_of
from porter.agents.regions import EditRefused, replace_code
from porter.model import Status, Verdict, facts_of
from porter.model.facts import PerformanceFacts
from porter.provenance.json import plain, verdict_data
from porter.source import lines_of
from porter.wording import plural

MOST = 12_000  # characters of an answer
Tool = Callable[..., str]


class BadInput(ValueError):
    """The model's input does not fit the tool; the text says how."""


# ---------------------------------------------------------------- looking things up


def search_corpus(session: EditSession, query: str) -> str:
    """Search curated CuTeDSL kernels, library functions and rewrite patterns. Gives names for read_exemplar.

    query: words, CUDA names, or a piece of CUDA code
    """
    found = ranker().search(query)
    return "\n".join(f"{e.name}: {e.summary}" for e in found) or "nothing was found"


def read_exemplar(session: EditSession, name: str) -> str:
    """Read an exemplar whole.

    name: as search_corpus gives it, or `intrinsics` for the table of CUDA functions
    """
    known = {e.name: e for e in exemplars()}
    if name not in known:
        near = [e.name for e in ranker().search(name, 3)]
        raise BadInput(f"there is no exemplar {name!r}; near are {', '.join(near) or 'none'}")
    return known[name].text


def read_region(session: EditSession, region: str) -> str:
    """Read a region of the port as it is now, with its line numbers; `port` reads the whole port.

    region: a name such as hole-1, body:my_kernel, helpers or launch
    """
    lines = lines_of(session.draft.text)
    first, last = 1, len(lines)
    if region == LAUNCH:
        try:
            launch = launch_of(session.draft.text, session.subject.sizes, session.subject.template)
        except EditRefused as error:
            raise BadInput(str(error)) from None
        first, last = launch.head, launch.body
    elif region != "port":
        try:
            at = session.draft.region(region)
        except EditRefused as error:
            raise BadInput(str(error)) from None
        first, last = at.first, at.last
    return "\n".join(f"{n:4} {lines[n - 1]}" for n in range(first, last + 1)) or "(empty)"


# ---------------------------------------------------------------- changing the port


def replace_region(session: EditSession, region: str, code: str) -> str:
    """Replace a region of the port by other code. Whole statements, indented from column 0; the region's own
    indentation is added. Functions, constants and imports from cutlass go into the region `helpers`.

    region: a name such as hole-1, body:my_kernel or helpers
    code: the new code
    """
    try:
        draft = replace_code(session.draft, region, code)
    except EditRefused as error:
        raise BadInput(f"refused: {error}") from None
    session.edit(draft, region)
    left = len(draft.open_holes)
    return f"replaced; {plural(left, 'hole')} open. Call verify to check it."


def replace_launch(session: EditSession, grid: str, block: str, shared_bytes: str) -> str:
    """Change how many blocks and threads a port that is being optimised is launched with. Expressions over sizes, with
    + - * // % < <= > >= if-else min max ceil_div round_up. Every way that they can take is verified, also beyond the
    sizes of the case: a grid must cover all of the work at any size.

    grid: x, or x, y, z; such as `ceil_div(n, 256)`
    block: x, or x, y, z; such as `256`
    shared_bytes: of dynamic shared memory; 0 for none
    """
    if not session.subject.optimise:
        raise BadInput("the launch is changed only while a verified port is optimised")
    try:
        draft = with_launch(
            session.draft, grid, block, shared_bytes, session.subject.sizes, session.subject.template
        )  # fmt: skip
    except EditRefused as error:
        raise BadInput(f"refused: {error}") from None
    session.edit(draft, LAUNCH)
    return "replaced. Call verify to check it."


# ---------------------------------------------------------------- asking the verifier


def check_names(session: EditSession) -> str:
    """Look up every cutlass and porter name of the candidate in what is installed, with suggestions. Cheap."""
    found = session.look_at("names")
    return located_messages(found, session.last_map) or "every name exists"


def compile(session: EditSession) -> str:
    """Compile the candidate. Open holes do not compile."""
    found = session.look_at("compile")
    return located_messages(found, session.last_map) or "it compiles"


def verify(session: EditSession) -> str:
    """Verify the candidate: names, compilation, numbers against the original kernel, memory errors and races.
    It is kept when it ranks strictly higher than the best so far; otherwise the port goes back to the best."""
    if session.draft.text in session.verified_texts:
        return "this text was verified before: change something first"
    kept, check = session.verify_draft()
    head = f"kept: it brings {check} forward" if kept else "not better than the best so far: rolled back to the best"
    return f"{head}\n{_verdicts(session.last_verdicts, session)}"


def first_divergence(session: EditSession) -> str:
    """Where the last verified candidate first diverges from the original, and the smallest launch that shows it."""
    found = [
        d
        for v in session.last_verdicts
        for d in v.diagnostics
        if d.code in (codes.FIRST_DIVERGENCE, codes.SMALLEST_FAILING_LAUNCH)
    ]
    return (
        located_messages(found, session.last_map)
        or "no divergence is known: numerics of the last verified candidate found none"
    )


def compare_resources(session: EditSession) -> str:
    """Registers, spills, shared memory, access widths and barriers of the last verified candidate and the original."""
    found = next((v for v in session.last_verdicts if v.check == "resources"), None)
    if found is None or not verdict_data(found):
        return "not known: the last verified candidate did not get that far"
    return json.dumps(plain(found.facts.to_json()), indent=1)


def profile(session: EditSession) -> str:
    """Times of the last verified candidate against the original's; without a GPU counts of instructions and sectors."""
    found = next((v for v in session.last_verdicts if v.check == "performance"), None)
    if found is None or (not verdict_data(found) and found.status is Status.SKIP):
        return "not known: nothing could be run"
    speed = speed_of(session.last_verdicts)
    head = (
        f"{found.detail}\nthe port against the original: {1 / speed:.3f} (lower is better)" if speed else found.detail
    )
    rows = times_of(facts_of([found], PerformanceFacts) or PerformanceFacts())
    if not rows:
        return f"{head}\n{json.dumps(verdict_data(found), indent=1)}"
    parts = [
        head,
        at_copy_floor(session.last_verdicts),
        "microseconds with a cold L2, where not said otherwise:",
        *rows,
    ]
    return "\n".join(filter(None, parts))


def give_up(session: EditSession, reason: str) -> str:
    """End the work when it cannot be done honestly. What was kept stays.

    reason: one or two sentences for the person who will look at it
    """
    session.gave_up = reason.strip() or "no reason was given"
    return "noted"


TOOLS: tuple[Tool, ...] = (
    search_corpus, read_exemplar, read_region, replace_region, replace_launch, check_names, compile, verify,
    first_divergence, compare_resources, profile, give_up,
)  # fmt: skip


# ---------------------------------------------------------------- schemas and calls

_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def schema(tool: Tool) -> Block:
    """A tool as the Messages API declares it: name, first part of the docstring, parameters with their lines of it."""
    text = inspect.getdoc(tool) or ""
    about, _, rest = text.partition("\n\n")
    about_each = dict(re.findall(r"^(\w+): (.+)$", rest, re.MULTILINE))
    properties = {
        name: {"type": _JSON_TYPES[str(p.annotation)], "description": about_each[name]} for name, p in _parameters(tool)
    }
    return {
        "name": tool.__name__,
        "description": " ".join(about.split()),
        "input_schema": {
            "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False
        },
    }  # fmt: skip


def schemas(tools: Sequence[Tool] = TOOLS) -> tuple[Block, ...]:
    return tuple(schema(t) for t in tools)


def use(session: EditSession, block: Block, tools: Sequence[Tool] = TOOLS) -> tuple[str, bool]:
    """Run the tool that a tool_use block asks for: (text, is it an error?). Never raises for what a model can do."""
    tool = next((t for t in tools if t.__name__ == block.get("name")), None)
    if tool is None:
        return f"there is no tool {block.get('name')!r}; the tools are {', '.join(t.__name__ for t in tools)}", True
    if "unreadable_input" in block:
        return f"the input of {tool.__name__} is not a JSON object: {block['unreadable_input'][:200]!r}", True
    try:
        return _clip(tool(session, **checked(tool, block.get("input")))), False
    except BadInput as error:
        return _clip(str(error)), True


def checked(tool: Tool, given: Any) -> dict[str, Any]:
    """The input, when it has exactly the tool's parameters in their types. Raises BadInput."""
    if not isinstance(given, dict):
        raise BadInput(f"the input of {tool.__name__} must be an object")
    wanted = dict(_parameters(tool))
    for name in given:
        if name not in wanted:
            raise BadInput(f"{tool.__name__} has no parameter {name!r}; it takes {', '.join(wanted) or 'none'}")
    for name, p in wanted.items():
        if name not in given:
            raise BadInput(f"{tool.__name__} needs {name!r}")
        kinds = _PYTHON_TYPES[str(p.annotation)]
        if not isinstance(given[name], kinds) or (isinstance(given[name], bool) and bool not in kinds):
            raise BadInput(f"{name!r} of {tool.__name__} must be a {_JSON_TYPES[str(p.annotation)]}")
    return dict(given)


def _parameters(tool: Tool) -> list[tuple[str, inspect.Parameter]]:
    return list(inspect.signature(tool).parameters.items())[1:]  # the first is the edit session


def _clip(text: str) -> str:
    return (
        text
        if len(text) <= MOST
        else f"{text[: MOST // 2]}\n... {len(text) - MOST} characters left out ...\n{text[-MOST // 2 :]}"
    )


def _verdicts(verdicts: Sequence[Verdict], session: EditSession) -> str:
    lines = []
    for v in verdicts:
        lines.append(f"{v.check:<12} {v.status.value:<5} {v.detail}")
        if v.status in (Status.FAIL, Status.ERROR):
            lines.append(located_messages(v.diagnostics[:4], session.last_map))
    return "\n".join(line for line in lines if line)
