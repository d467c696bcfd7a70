"""Template arguments when nobody names any: plausible values by parameter name, kept if clang instantiates them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, product

from porter import codes
from porter.frontend.instances.argument_text import split_arguments
from porter.frontend.instances.bodies import lacks_bodies
from porter.frontend.instances.reached import instances_from_host_templates
from porter.frontend.instances.specialise import signature, try_specialise
from porter.frontend.launches.sites import host_functions
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.declarations import has_body, project_decls, qualified_name, template_of, template_params
from porter.frontend.parse.source import ParsedUnit, parse_source
from porter.model import Diagnostic, Instance, KernelInfo, Severity, TemplateParam
from porter.source import Source, Span

_MAX_TRIED = 48  # instances per parse; each costs clang one instantiation of the kernel
_MAX_HOST_TRIED = 6  # instantiations of a host template
_MAX_SECONDS = 4.0  # of processor time, for blind guesses
_MAX_CONFIRMED = 6
_MAX_TESTED = 6
_MAX_OBSTRUCTED = 3  # guesses that are asked what stops them
_MAX_OBSTACLES = 4
_PLACED = re.compile(r"([^:]+):(\d+)(?::\d+)?: (.*)", re.S)

# (pattern of the parameter's name, candidates in order): the first that matches counts.
_TYPE_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"acc|compute|^U$|opmath|mathtype|float_t|weight_t|scale_t", ("float",)),
    (r"fp8|quant|cache|out_?q", ("{fp8}", "int8_t", "{t0}")),
    (r"id|idx|index|int_t|offset", ("int", "int64_t")),
    (r"2$|packed|vec_t", ("{v0}", "{v1}", "float2", "{t0}")),
    (r"", ("{t0}", "{t1}", "float", "int", "{fp8}", "uint8_t")),
)
_VALUE_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"warp_?size|warpsize|lanes", ("32",)),
    (r"(head|row|token|warp|group|expert)s?_?per_?(warp|thread|block|cta|tb)", ("4", "2", "1", "8")),
    (r"log2|pow2", ("10", "8", "5")),
    (r"num_?dims|n_?dims?$|rank", ("2", "3", "1", "4")),
    (r"head|dim|hidden|cols|width_?d", ("128", "64", "256", "512", "1024")),
    (r"expert", ("128", "64", "8", "256")),
    (r"group", ("128", "64", "8", "1")),
    (r"per_?thread|^(elem|items)", ("8", "4", "2", "1", "16")),
    (r"block|thread|tpb|cta|bdx|num_t", ("256", "128", "512", "1024", "64", "32")),
    (r"vec|width|pack|per_?thread|ldg|unroll|elem|items", ("8", "4", "2", "1", "16", "0")),
    (r"topk|top_k|stage|num|n_|warps", ("4", "2", "8", "1", "6", "16")),
    (r"bits", ("4", "8")),
    (r"", ("8", "4", "2", "1", "16", "32", "64", "128", "256", "0")),
)


_UNUSUAL_TYPES = ("int", "uint8_t", "c10::Float8_e4m3fn", "__nv_fp8_e4m3")  # as the element type of a kernel
_UNUSUAL = 6  # how much less plausible than the next choice


def no_default_instance(kernel: KernelInfo) -> Diagnostic:
    """Nobody named template arguments and no guess fits."""
    return Diagnostic(
        codes.NO_INSTANCE_KNOWN,
        f"no template arguments are known for {kernel.name}",
        kernel.span,
        help=f"name them, for example --instantiate '{kernel.name}<...>'; the parameters are: {signature(kernel)}",
    )


def default_instances(kernel: KernelInfo, unit: ParsedUnit | None = None) -> tuple[Instance, ...]:
    """Up to two instances that clang accepts, different in types and flags where the template allows; () if none fits.

    `unit` is the parsed file that holds the kernel; without it the file is read again with default options.
    """
    if not kernel.is_template:
        return (Instance(),)
    if unit is None:
        unit = parse_source(Source.read(kernel.span.file))
    lists = [_candidates(p, unit, unit.definition(kernel)) for p in _wanted(kernel.template_params)]
    followed = _through_host_templates(unit, kernel)
    if followed:
        found = _pick_two(unit, kernel, sorted(followed, key=lambda i: _rank(i, lists)), lists)
        if found:
            return found
    if not all(lists):
        return ()
    deadline = time.process_time() + _MAX_SECONDS
    tried: set[tuple[str, ...]] = set()
    accepted: list[Instance] = []
    while len(accepted) < 2 and time.process_time() < deadline:
        batch = list(islice((c for c in _by_plausibility(lists) if c not in tried), _MAX_TRIED))
        if not batch:
            break
        tried.update(batch)
        accepted += _accepted(unit, kernel, [Instance(args) for args in batch])
    return _pick_two(unit, kernel, accepted, lists)


def obstacles(unit: ParsedUnit, kernel: KernelInfo) -> tuple[Diagnostic, ...]:
    """What stops the first guesses for a kernel's template parameters alike, so that it is not about them: the faults
    of the file that it comes from first. () where each is stopped by something else, or nothing can be tried."""
    lists = [_candidates(p, unit, unit.definition(kernel)) for p in _wanted(kernel.template_params)]
    if not lists or not all(lists):
        return ()
    tried = [Instance(args) for args in islice(dict.fromkeys(_by_plausibility(lists)), _MAX_OBSTRUCTED)]
    _, _, failures = try_specialise(unit.source, unit.options, [(kernel, i) for i in tried], stand_ins=unit.stand_ins)
    if len(failures) < len(tried):  # it is in functions' bodies, which a parse of several does not show
        alone = [
            try_specialise(unit.source, unit.options, [(kernel, i)], stand_ins=unit.stand_ins)[2] for i in tried[:2]
        ]
        failures = {key: d for found in alone for key, d in found.items()} if all(alone) else {}
    noted = [dict.fromkeys(d.notes) for d in failures.values()]
    alike = [n for n in noted[0] if all(n in other for other in noted)] if noted else []
    found = []
    for note in alike:
        place = _PLACED.match(note)
        if place is not None:
            span = Span(place.group(1), int(place.group(2)))
            found += [*_mentioned(unit, place.group(3)), Diagnostic(codes.PARSE_ERROR, place.group(3), span)]
    return tuple(dict.fromkeys(found))[:_MAX_OBSTACLES]


def _mentioned(unit: ParsedUnit, message: str) -> list[Diagnostic]:
    """Faults of the file in lines with a name that a message quotes: a function that was not taken, say."""
    names = re.findall(r"'(\w+)'", message)
    found = []
    for d in unit.diagnostics:
        if d.code == codes.PARSE_ERROR and d.span.file:
            lines = unit.bytes_of(d.span.file).decode("utf-8", "replace").splitlines()
            line = lines[d.span.line - 1] if 0 < d.span.line <= len(lines) else ""
            if any(re.search(rf"\b{name}\b", line) for name in names):
                found.append(replace(d, severity=Severity.ERROR))
    return found


def _wanted(params: Sequence[TemplateParam]) -> list[TemplateParam]:
    return [p for p in params if not p.default and not _is_pack(p)]


def _rank(instance: Instance, lists: Sequence[Sequence[str]]) -> int:
    """How far the arguments are from the first guesses of each parameter."""
    return sum(
        options.index(a) + _UNUSUAL * (a in _UNUSUAL_TYPES) if a in options else _UNUSUAL
        for a, options in zip(instance.args, lists, strict=False)
    )


def _through_host_templates(unit: ParsedUnit, kernel: KernelInfo) -> list[Instance]:
    """What the file's host templates launch when their own parameters are guessed: values that belong together."""
    seeds = host_template_seeds(unit, kernel)
    return list(instances_from_host_templates(unit, kernel, seeds)) if seeds else []


def host_template_seeds(unit: ParsedUnit, kernel: KernelInfo) -> list[tuple[str, tuple[str, ...]]]:
    """(name, arguments) for the file's host templates that launch a kernel, their parameters guessed."""
    seeds: list[tuple[str, tuple[str, ...]]] = []
    names = {launch.host_function for launch in unit.launches if launch.kernel == kernel.name}
    for function in host_functions(unit):
        if function.kind != CursorKind.FUNCTION_TEMPLATE or qualified_name(function) not in names:
            continue
        lists = [_candidates(p, unit, function) for p in _wanted(template_params(function))]
        if lists and all(lists):
            combinations = islice(dict.fromkeys(_by_plausibility(lists)), _MAX_HOST_TRIED)
            seeds += [(qualified_name(function), args) for args in combinations]
    return seeds


def _is_pack(p: TemplateParam) -> bool:
    return p.name.endswith("...")


def _by_plausibility(lists: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """All first choices, all second choices, then every combination, fewest departures from the first choices first."""
    yield tuple(c[0] for c in lists)
    yield tuple(c[1 % len(c)] for c in lists)
    ranks = [range(min(len(c), 7)) for c in lists]
    size = 1
    for r in ranks:
        size *= len(r)
    if size <= 20_000:
        unusual = [[_UNUSUAL * (option in _UNUSUAL_TYPES) for option in options] for options in lists]

        def cost(c: tuple[int, ...]) -> tuple[int, int]:
            return sum(r + unusual[i][r] for i, r in enumerate(c)), max(c, default=0)

        for combination in sorted(product(*ranks), key=cost):
            yield tuple(lists[i][r] for i, r in enumerate(combination))
        return
    for i, options in enumerate(lists):  # too many: change one parameter at a time
        for option in options[1:]:
            yield tuple(option if j == i else c[0] for j, c in enumerate(lists))


def _accepted(unit: ParsedUnit, kernel: KernelInfo, instances: list[Instance]) -> dict[Instance, bool]:
    """Those that clang instantiates without an error and that mean this very template (not an overload of it), each
    with whether all functions that it calls have a body (looked up where it is the only one)."""
    _, cursors, _ = try_specialise(
        unit.source, unit.options, [(kernel, i) for i in instances], stand_ins=unit.stand_ins
    )
    found = {}
    for instance in instances:
        cursor = cursors.get((kernel.qualified_name, instance))
        template = template_of(cursor) if cursor is not None else None
        fits = template is not None and cc.span(template.get_definition() or template) == kernel.span
        if fits:
            found[instance] = len(instances) > 1 or not lacks_bodies(cursor)
    return found


def _pick_two(
    unit: ParsedUnit, kernel: KernelInfo, accepted: list[Instance], lists: Sequence[Sequence[str]]
) -> tuple[Instance, ...]:
    """The most plausible, and one that differs from it in most arguments (small rank changes preferred).

    Each is instantiated alone once more: only then is a fault in a function that it calls known to be its own.
    """

    @cache
    def alone(instance: Instance) -> dict[Instance, bool]:
        return _accepted(unit, kernel, [instance])

    def sound(instance: Instance) -> bool:
        return instance in alone(instance)

    def complete(instance: Instance) -> bool:
        return alone(instance).get(instance, False)

    few = accepted[:_MAX_CONFIRMED]
    first = next((i for i in few if complete(i)), None) or next((i for i in few if sound(i)), None)
    if first is None:
        return ()

    def worth(other: Instance) -> tuple[int, int]:
        pairs = list(zip(first.args, other.args, lists, strict=False))
        different = sum(a != b for a, b, _ in pairs)
        usual = -sum(_UNUSUAL * (b in _UNUSUAL_TYPES and a not in _UNUSUAL_TYPES) for a, b, _ in pairs)
        return different + usual, -_rank(other, lists)

    others = sorted((i for i in accepted if i != first), key=worth, reverse=True)
    second = next((i for i in others[:_MAX_CONFIRMED] if complete(i)), None)
    return (first,) if second is None else (first, second)


# ---------------------------------------------------------------- candidates of one parameter


def _candidates(p: TemplateParam, unit: ParsedUnit, template: Cursor) -> list[str]:
    if p.kind == "type":
        return _types(p, unit, template)
    if p.kind == "value":
        return _values(p, unit, template)
    return _named_alike(p, unit, (CursorKind.CLASS_TEMPLATE,))[:7]


def _rule(rules: tuple[tuple[str, tuple[str, ...]], ...], name: str) -> tuple[str, ...]:
    return next(values for pattern, values in rules if re.search(pattern, name, re.I))


def _types(p: TemplateParam, unit: ParsedUnit, template: Cursor) -> list[str]:
    torch = "c10::" in unit.source.text or "AT_DISPATCH" in unit.source.text or "_DISPATCH_" in unit.source.text
    names = {
        "t0": "c10::BFloat16" if torch else "__nv_bfloat16",
        "t1": "c10::Half" if torch else "__half",
        "v0": "__nv_bfloat162",
        "v1": "__half2",
        "fp8": "c10::Float8_e4m3fn" if torch else "__nv_fp8_e4m3",
    }
    quantises = re.search(r"quant|fp8", template.spelling, re.I) and re.search(r"^O$|out|dst", p.name, re.I)
    rule = ("{fp8}", "int8_t") if quantises else _rule(_TYPE_RULES, p.name)
    found = [t.format(**names) for t in rule]
    return list(dict.fromkeys([*found, *_functors(p, unit)]))


def _functors(p: TemplateParam, unit: ParsedUnit) -> list[str]:
    """Classes that a parameter named like an operation may be given."""
    if not re.search(r"op|func|^f$|reducer|functor|traits|policy|act", p.name, re.I):
        return []
    return _named_alike(p, unit, (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL))[:8]


def _named_alike(p: TemplateParam, unit: ParsedUnit, kinds: tuple[CursorKind, ...]) -> list[str]:
    """Classes of the file, then those of its headers that have a word of the parameter's name in theirs (an
    `Activation` may be a `GeluActivation`); clang decides which really fit."""
    path = str(unit.source.path)
    words = [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", p.name) if len(w) > 2]
    classes = [c for c in project_decls(unit.tu) if c.kind in kinds and c.spelling]
    own = [c for c in classes if c.location.file.name == path]
    alike = [c for c in classes if c.location.file.name != path and any(w in c.spelling.lower() for w in words)]
    return list(dict.fromkeys(qualified_name(c) for c in (*own, *alike)))


def _values(p: TemplateParam, unit: ParsedUnit, template: Cursor) -> list[str]:
    if p.type in ("bool", "const bool"):
        return ["true", "false"]
    if "*" in p.type:
        return _functions(unit, p.type, p.name)
    declaration = next((c for c in template.get_children() if c.spelling == p.name and c.type.spelling == p.type), None)
    canonical = declaration.type.get_canonical() if declaration is not None else None
    if canonical is not None and canonical.kind == TypeKind.ENUM:
        scope = canonical.get_declaration()
        return [
            f"{qualified_name(scope)}::{c.spelling}"
            for c in scope.get_children()
            if c.kind == CursorKind.ENUM_CONSTANT_DECL
        ][:6]
    rule = _rule(_VALUE_RULES, p.name)
    tested = _tested(p.name, template) if rule == _VALUE_RULES[-1][1] else []
    return list(dict.fromkeys([*tested, *rule]))


def _tested(name: str, template: Cursor) -> list[str]:
    """The numbers that a template compares its parameter with: what selects code by a number has no case for others."""
    text = " ".join(t.spelling for t in template.get_tokens())
    found = re.findall(rf"\b{name} [!=]= (\d+)\b(?! [-+*/%<>])", text)
    found += re.findall(rf"(?<![-+*/%<>] )\b(\d+) [!=]= {name}\b", text)
    for m in re.finditer(rf"\bswitch \( {name} \)", text):
        found += re.findall(r"\bcase (\d+) :", text[m.end() :])
    return sorted(dict.fromkeys(found), key=int)[:_MAX_TESTED]


def _functions(unit: ParsedUnit, pointer: str, param: str) -> list[str]:
    """Device functions of the file with as many parameters as `R (*)(A, B)` has: clang decides which really fit."""
    count = len(split_arguments(pointer[pointer.rindex("(") + 1 : pointer.rindex(")")]))
    path = str(unit.source.path)
    found = []
    for c in project_decls(unit.tu):
        if c.kind not in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE) or c.location.file.name != path:
            continue
        kinds = [x.kind for x in c.get_children()]
        if CursorKind.CUDADEVICE_ATTR in kinds and has_body(c) and kinds.count(CursorKind.PARM_DECL) == count:
            found.append(qualified_name(c))
    # PACKED_ACT_FN is more likely packed_silu than silu.
    words = [w for w in param.lower().split("_") if len(w) > 2]
    ranked = sorted(dict.fromkeys(found), key=lambda f: -sum(w in f.lower() for w in words))
    return ranked[:7]
