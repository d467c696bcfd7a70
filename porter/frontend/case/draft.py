"""A case drafted for a kernel that has none: what the source says is filled in, what a person must decide is a TODO.

Nothing is guessed quietly: each guess has a comment, and a TODO is a name the case reader refuses.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter.case.fit import check_case
from porter.case.reader import Case, parse_case
from porter.frontend.case.assemble import assembled
from porter.frontend.case.body import Body, body_of, read_body
from porter.frontend.case.derived import DerivedCase
from porter.frontend.case.from_host import Evaluated, evaluated, launches_of_kernel
from porter.frontend.case.from_text import case_from_text
from porter.frontend.case.text import case_text
from porter.frontend.host.explore import entries, entries_through_templates
from porter.frontend.instances.reached import choose_few
from porter.model import Instance, KernelInfo, Launch, PorterError
from porter.source import Source

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


def draft_case(unit: ParsedUnit, info: KernelInfo) -> str:
    """TOML text of a case for a parsed kernel, from its parameters, its body, its launches and its instances."""
    return case_text(derive_case(unit, info))[0]


def draft_case_text(
    info: KernelInfo, launches: tuple[Launch, ...], instances: tuple[Instance, ...], source: Source | None = None
) -> str:
    """The same from launches as text; `source` is read for the comments beside the parameters."""
    return case_text(case_from_text(info, launches, instances, source))[0]


def derive_case(unit: ParsedUnit, info: KernelInfo) -> DerivedCase:
    """What the source says of a kernel's case, found once per unit and kernel.

    The host functions that launch the kernel are evaluated; where none is reached, their text is read.
    """
    key = f"derived case {info.span}"
    if key not in unit.memo:
        unit.memo[key] = _derive(unit, info)
    found: DerivedCase = unit.memo[key]
    return found


def case_from_launch(unit: ParsedUnit, info: KernelInfo) -> Case | None:
    """A case without a file: where launcher and comments give every shape, scalar and launch expression; else None.

    Shapes and roles taken from comments and `const` are checked by the run itself: with a buffer too small or an output
    that is read, the original's own accesses are reported, and nothing passes.
    """
    derived = derive_case(unit, info)
    text, todo = case_text(derived)
    case = None if todo else checked(text, unit, info)
    if case is None:
        return None
    return replace(case, derived=derived.place)


def checked(text: str, unit: ParsedUnit, info: KernelInfo) -> Case | None:
    """The text as a case of the kernel, None where the reader refuses it."""
    try:
        case = parse_case(text, Path(str(unit.source.path)).with_suffix(".case.toml"))
        check_case(case, info)
    except PorterError:
        return None
    return case


def _derive(unit: ParsedUnit, info: KernelInfo) -> DerivedCase:
    found = entries(unit)
    made = evaluated(unit, found, info)
    if made is None and info.is_template:
        made = evaluated(unit, entries_through_templates(unit, info), info)
    if made is None:
        return _without_launch(unit, info)
    return assembled(unit, made, _body(unit, made, info))


def _body(unit: ParsedUnit, made: Evaluated, info: KernelInfo) -> Body | None:
    """The kernel's body at the first instance, from the parse that evaluated its launch where that holds it."""
    wanted = made.instances[0]
    for launch in launches_of_kernel(unit, made.entry, info):
        if launch.kernel is not None and (launch.template_args == wanted.args or not info.is_template):
            return body_of(launch.run.program.unit, launch.kernel, info, wanted)
    return read_body(unit, info, wanted)


def _without_launch(unit: ParsedUnit, info: KernelInfo) -> DerivedCase:
    from porter.frontend.instances.choice import default_instances, instances_from_launches

    instances: tuple[Instance, ...] = ()
    if info.is_template:
        launched = tuple(instances_from_launches(unit, info))
        instances = choose_few(launched) if launched else tuple(default_instances(info))
    body = read_body(unit, info, instances[0] if instances else Instance())
    return case_from_text(info, unit.launches, instances, unit.source, body)
