"""A derived case as TOML: guesses have comments, what is open is a TODO that the case reader refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

from porter.frontend.case.derived import DerivedBuffer, DerivedCase, DerivedScalar, DerivedSize
from porter.frontend.case.draft_symbols import draft_symbol

TODO = "TODO"


class _Writer:
    def __init__(self, case: DerivedCase):
        self.case = case
        self.todo = 0

    def need(self, reason: str) -> str:
        self.todo += 1
        return f"# TODO {reason}"


def case_text(case: DerivedCase, source: str = "", derived: bool = False) -> tuple[str, int]:
    """(TOML text, how many places a person has to fill in). `source` is the path to the source from where the case will
    lie, "": beside it. `derived` says that nothing is left open and nobody has confirmed it."""
    w = _Writer(case)
    name = Path(case.info.span.file).name
    source = source or name
    head = f"Drafted by porter from {name or 'the kernel'}. Complete every TODO."
    if derived:
        head = f"Derived by porter from {case.place}: read it, and delete the line `derived` when it is right."
    buffers = [_buffer(w, b) for b in case.buffers]
    scalars = [_scalar(w, s) for s in case.scalars]
    launch = _launch(w)
    sizes = _sizes(w)
    instances = _instances(w)
    lines = [
        f"# {head}",
        "# The format is described at the top of porter/case/reader.py.",
        *(f"# taken from the source: {g}" for g in case.grounds if not g.is_guess),
        *(f"# a guess: {g}" for g in case.grounds if g.is_guess),
        "schema = 1",
        f'kernel = "{case.info.name}"',
        *([f'derived = "{case.place}"'] if derived else []),
        f"source = {json.dumps(source)}" if source else "",
        *(["only_shapes = true"] if case.only_shapes else []),
        "",
        *instances,
        *sizes,
    ]
    for shape in case.shapes:
        lines += ["", "[[shapes]]", *(f"{n} = {v}" for n, v in shape.items())]
    for rows in buffers:
        lines += ["", *rows]
    for symbol in case.symbols:
        lines += ["", *draft_symbol(symbol, case.roles.get(symbol.name, ""), w.need)]
    lines += ["", "[scalars]", *scalars, "", *launch]
    lines += ["", "# [reference]",
              "# function = a float64 reference: porter.verify.numerics.references, file.py:function"]  # fmt: skip
    return "\n".join(lines) + "\n", w.todo


def _instances(w: _Writer) -> list[str]:
    info = w.case.info
    if not info.is_template:
        return []
    lines: list[str] = []
    for instance in w.case.instances:
        args = ", ".join(a if re.fullmatch(r"-?\d+", a) or a in ("true", "false") else f'"{a}"' for a in instance.args)
        lines += ["[[instances]]", f"args = [{args}]"]
        lines += [f'when = "{instance.when}"', ""] if instance.when else [""]
    if not w.case.instances:
        names = ", ".join(p.name for p in info.template_params)
        lines += [w.need(f"give at least two [[instances]] with args for <{names}>"), ""]
    elif len(w.case.instances) == 1:
        lines += ["# the only instance that the file launches", ""]
    return lines


def _sizes(w: _Writer) -> list[str]:
    sizes = w.case.sizes
    if not sizes:
        return ["[sizes]", f"{TODO} = [1]  {w.need('name the sizes that shapes are made of')}"]
    listed = [s for s in sizes if not isinstance(s.values, str)]
    derived = [s for s in sizes if isinstance(s.values, str)]
    return ["[sizes]", *(_size(w, s) for s in (*listed, *derived))]


def _size(w: _Writer, s: DerivedSize) -> str:
    w.todo += s.comment.startswith(TODO)
    value = f'"{s.values}"' if isinstance(s.values, str) else f"[{', '.join(map(str, s.values))}]"
    return f"{s.name} = {value}" + (f"  # {s.comment}" if s.comment else "")


def strings(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(t if re.fullmatch(r"\d+", t) else f'"{t}"' for t in texts) + "]"


def _quoted(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{t}"' for t in texts) + "]"


def _buffer(w: _Writer, b: DerivedBuffer) -> list[str]:
    lines = ["[[buffers]]", f'name = "{b.name}"']
    if b.dtype is None:
        lines.append(f'dtype = "{TODO}"  {w.need(f"the element type of {b.type}")}')
    else:
        lines.append(f'dtype = "{b.dtype}"')
    if b.shape is None:
        reason = "its dimensions" + (f" ({b.shape_from})" if b.shape_from else "")
        lines.append(f'shape = ["{TODO}"]  {w.need(reason)}')
    else:
        lines.append(f"shape = {_quoted(b.shape)}" + (f"  # {b.shape_from}" if b.shape_from else ""))
    if b.strides is not None:
        lines.append(f"strides = [{', '.join(s if s == '1' else chr(34) + s + chr(34) for s in b.strides)}]")
    why = b.role_from or ("a guess; `inout` if what it held before is read or kept" if b.role_is_guess else "")
    lines.append(f'role = "{b.role}"' + (f"  # {why}" if why else ""))
    if b.dist:
        lines.append(f'dist = "{b.dist}"' + (f"  # {b.dist_from}" if b.dist_from else ""))
    if b.low is not None:
        lines.append(f"low = {b.low}")
    if b.high == TODO:
        lines.append(f'high = "{TODO}"  {w.need("one past the largest value it may hold")}')
    elif b.high is not None:
        note = f"  # {b.dist_from}" if b.dist_from and not b.dist else ""
        lines.append(f"high = {b.high}{note}" if re.fullmatch(r"\d+", b.high) else f'high = "{b.high}"{note}')
    if b.optional:
        lines.append("optional = true  # it may be null")
    return lines


def _scalar(w: _Writer, s: DerivedScalar) -> str:
    key = s.name if re.fullmatch(r"\w+", s.name) else f'"{s.name}"'
    if not s.values:
        return f'{key} = "{TODO}"  {w.need(s.comment or f"a {s.type} cannot be passed by a case")}'
    w.todo += s.comment.startswith(TODO)
    values = [_value(v) for v in s.values]
    text = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
    return f"{key} = {text}" + (f"  # {s.comment}" if s.comment else "")


def _value(text: str) -> str:
    if text in ("true", "false", "True", "False"):
        return text.lower()
    return text if re.fullmatch(r"-?\d+\.\d*(e[+-]?\d+)?|-?\d+e[+-]?\d+", text) else f'"{text}"'


def _launch(w: _Writer) -> list[str]:
    launch = w.case.launch
    lines = ["[launch]"]
    if launch.host_function:
        lines[0] += f"  # from {launch.host_function}, line {launch.span.line}"
    elif launch.span.line:
        lines[0] += f"  # line {launch.span.line}"
    for key, dims in (("grid", launch.grid), ("block", launch.block)):
        if dims is None:
            reason = launch.open.get(key, "no launch of this kernel was found in the file")
            lines.append(f'{key} = ["{TODO}"]  {w.need(reason)}')
        else:
            lines.append(f"{key} = {_quoted(dims)}" + (f"  # {launch.guess}" if launch.guess else ""))
    if launch.smem is None:
        lines.append(f'smem = "{TODO}"  {w.need(launch.open.get("smem", "its dynamic shared memory"))}')
    elif launch.smem != "0":
        lines.append(f'smem = "{launch.smem}"')
    if launch.cooperative:
        lines.append("cooperative = true")
    if launch.cluster:
        lines.append(f"cluster = {strings(launch.cluster)}")
    return lines
