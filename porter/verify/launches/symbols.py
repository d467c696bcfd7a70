"""The original's module variables: which of them a kernel reaches, what the case puts into them, what nobody does.

A variable that the host fills is zero in a module that was only loaded. A port that ignores it, or multiplies by zero,
would equal the original: so no launch is made before every such variable has values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from porter import codes, ir
from porter.case.reader import BufferSpec, Case
from porter.model import Diagnostic, Instance, KernelInfo, PorterError
from porter.source import Span
from porter.verify.backends.emulator import module_of
from porter.verify.checks.ptx_stats import function_texts
from porter.verify.emulator.decode.ir import Variable
from porter.verify.emulator.memory.module_memory import initial_bytes

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_WORD = re.compile(r"[\w$]+")
_NAME = re.compile(r"[KL]?(\d+)")
_ANONYMOUS = ("_INTERNAL_", "_GLOBAL__N_")
_MADE = re.compile(r"\$|^__unnamed|^__cudart")  # strings and tables that the compiler makes
_LIBRARIES = ("cuda", "cub", "thrust", "cooperative_groups", "std")  # their variables are tags without a value


# ---------------------------------------------------------------- names


def components(mangled: str) -> tuple[str, ...]:
    """The names in a variable's symbol: `ns`, `taps` of `_ZN2ns4tapsE`, without template arguments and anonymous
    namespaces. A static local has its function before it."""
    if not mangled.startswith("_Z"):
        return (mangled,)
    local = mangled.startswith("_ZZ")
    found = _names(mangled, 3 if local else 2)
    if local:
        for end in re.finditer(r"EL?(\d+)", mangled):
            name = mangled[end.end() : end.end() + int(end.group(1))]
            if re.fullmatch(r"(_\d+|__\d+_)?", mangled[end.end() + len(name) :]):
                found.append(name)
                break
    return tuple(n for n in found if not n.startswith(_ANONYMOUS))


def _names(text: str, at: int) -> list[str]:
    found = []
    at += text[at : at + 1] == "N"
    while m := _NAME.match(text, at):
        at = m.end() + int(m.group(1))
        found.append(text[m.end() : at])
    return found


def means(declared: str, mangled: str) -> bool:
    """Whether a variable of the source (`ns::taps`) is the module's."""
    return tuple(declared.removeprefix("::").split("::")) == components(mangled)


# ---------------------------------------------------------------- what a kernel reaches


def reached_variables(ptx: str, entry: str) -> dict[str, Variable]:
    """The .const and .global variables that an entry names, directly, in functions that it calls or in initialisers."""
    module, functions = module_of(ptx), _functions(ptx)
    variables = {v.name: v for v in module.variables.values() if v.space in ("const", "global")}
    todo, seen = [entry], {entry}
    while todo:
        name = todo.pop()
        text = functions.get(name) or (variables[name].init if name in variables else "")
        for word in set(_WORD.findall(text)) - seen:
            if word in functions or word in variables:
                seen.add(word)
                todo.append(word)
    return {n: variables[n] for n in seen if n in variables}


@lru_cache(maxsize=16)
def _functions(ptx: str) -> dict[str, str]:
    return function_texts(ptx)


def symbols_of(case: Case, ptx: str, entry: str) -> dict[str, str]:
    """The module variable of each symbol of the case, by the symbol's parameter; a symbol that this instance does not
    reach has none. Raises PorterError PRT905 where the case's name or size does not fit."""
    reached = reached_variables(ptx, entry)
    found: dict[str, str] = {}
    for spec in case.buffers:
        if not spec.symbol:
            continue
        fits = [n for n in reached if means(spec.declaration or spec.symbol, n)]
        if len(fits) > 1:
            case.fail(codes.CASE_DOES_NOT_FIT,
                      f"`{spec.symbol}` is the name of {len(fits)} variables that the kernel reaches",
                      *spec.where, "name")  # fmt: skip
        if fits:
            found[spec.name] = fits[0]
    return found


def with_declared_values(case: Case, ptx: str, entry: str) -> Case:
    """The case with the bytes of symbols that start as declared. Raises PorterError PRT903 where none are declared."""
    names = symbols_of(case, ptx, entry)
    buffers = [_with_image(case, b, ptx, names.get(b.name, "")) if b.declared else b for b in case.buffers]
    return replace(case, buffers=tuple(buffers))


def declared_in_source(case: Case, unit: ParsedUnit, info: KernelInfo, instance: Instance) -> Case:
    """The same for a port in the original's place, which has no variables: the source is compiled for its declarations.
    Raises PorterError PRT821."""
    from porter.verify.original.build import build_original

    (build,) = build_original(unit.source, unit.options, info, [instance], ("ptx",), unit=unit)
    return with_declared_values(case, build.ptx, build.entry)


def _with_image(case: Case, spec: BufferSpec, ptx: str, name: str) -> BufferSpec:
    if not name:  # not reached by this instance: nobody looks at it
        return replace(spec, declared=False, dist="zeros")
    module = module_of(ptx)
    if spec.role == "in" and not spec.initialised and not module.variables[name].init:
        message = f"nothing in the declaration of {spec.symbol} gives it values"
        case.fail(codes.WRONG_VALUE, message, *spec.where, "initial", help="give dist, values or members")
    return replace(spec, image=initial_bytes(module, name))


# ---------------------------------------------------------------- what has no values


def unfilled(case: Case, ptx: str, entry: str, kernel: ir.Kernel | None) -> list[Diagnostic]:
    """A message for each variable that the original reaches, and that neither the source nor the case gives values.

    `kernel` is what the source shows of it; None where it cannot be read: then what has no initialiser counts.
    """
    given = set(symbols_of(case, ptx, entry).values())
    left = {n: v for n, v in reached_variables(ptx, entry).items() if n not in given}
    symbols = kernel.symbols if kernel is not None else ()
    tables = {g.name for g in kernel.globals} if kernel is not None else set()  # of zeros, some
    found = []
    for name, variable in sorted(left.items()):
        path = components(name)
        symbol = next((s for s in symbols if means(s.declared, name)), None)
        if symbol is None and (variable.init or not path or path[0] in _LIBRARIES or path[-1] in tables):
            continue
        label = symbol.declared if symbol else "::".join(path)
        kind = symbol.kind if symbol else "__constant__" if variable.space == "const" else "__device__"
        found.append(_message(case, label, kind, symbol))
    return found


def _message(case: Case, label: str, kind: str, symbol: ir.Symbol | None) -> Diagnostic:
    filled = f", which the host fills ({symbol.filled})" if symbol and symbol.filled else ""
    message = f"the kernel reaches {label}, {kind} memory{filled}, and the case gives it no values"
    help_ = f'add [[symbols]] with name = "{label}" to {case.path}'
    if symbol is not None and not symbol.constant and not symbol.filled:
        help_ += '; initial = "declared" starts it as its declaration does'
    return Diagnostic(
        codes.NO_VALUES_FOR_SYMBOL, message, symbol.span if symbol else Span(str(case.path), 1), help=help_
    )


def require_values(
    case: Case,
    unit: ParsedUnit | None,
    info: KernelInfo,
    builds: Sequence[tuple[Instance, str, str]],
) -> None:
    """Raise PorterError PRT845 unless every variable that the original reaches has values. `builds` are (instance, PTX,
    entry). The source is looked at where a variable is left; None: what the PTX shows has to do."""
    left = []
    for instance, ptx, entry in builds:
        given = set(symbols_of(case, ptx, entry).values())
        rest = {n: v for n, v in reached_variables(ptx, entry).items() if n not in given}
        if any(not v.init or not _MADE.search(n) for n, v in rest.items()):
            left.append((instance, ptx, entry))
    if not left:
        return
    kernels: tuple[ir.Kernel | None, ...] = (None,) * len(left)
    if unit is not None:
        from porter.frontend.case.symbols import wanted
        from porter.frontend.instances.lowered import lowered

        kernels = lowered(unit, info, tuple(i for i, _, _ in left), wanted(case))
    found: dict[str, Diagnostic] = {}
    for (_, ptx, entry), kernel in zip(left, kernels, strict=True):
        found |= {d.message: d for d in unfilled(case, ptx, entry, kernel)}
    if found:
        raise PorterError(*found.values())
