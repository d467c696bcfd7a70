"""Statements of host functions, run one after the other."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.conversions import copied, unknown
from porter.frontend.host.expressions import assign, blank, condition, evaluate, place_of
from porter.frontend.host.nodes import Node, is_integer
from porter.frontend.host.powers import next_power
from porter.frontend.host.reach import launches_within
from porter.frontend.host.run import CannotMerge, Frame, PathEnds, Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import (
    ArrayValue,
    ListValue,
    Null,
    Place,
    PlacePointer,
    Pointer,
    TensorValue,
    Text,
    TypeOf,
    Unknown,
    Value,
)
from porter.frontend.parse.clang_compat import CursorKind, TypeKind

_UNROLL = 32  # turns of a loop with known bounds
_FAILS = ("__porter_fail", "exit", "abort", "_Exit", "quick_exit", "__assert_fail", "terminate")
_JUMPS = (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT, CursorKind.GOTO_STMT)


def execute(run: Run, frame: Frame, node: Node) -> str:
    """Run a statement; "" goes on, "return", "break" and "continue" leave."""
    run.step()
    kind = node.kind
    if kind == CursorKind.COMPOUND_STMT:
        for child in node.children:
            signal = execute(run, frame, child)
            if signal:
                return signal
        return ""
    if kind == CursorKind.DECL_STMT:
        for child in node.children:
            if child.kind == CursorKind.VAR_DECL:
                declare(run, frame, child)
        return ""
    if kind == CursorKind.RETURN_STMT:
        if node.expressions:
            frame.result = evaluate(run, frame, node.expressions[0])
        return "return"
    if kind == CursorKind.IF_STMT:
        return _if(run, frame, node)
    if kind == CursorKind.SWITCH_STMT:
        return _switch(run, frame, node)
    if kind == CursorKind.FOR_STMT:
        return _for(run, frame, node)
    if kind in (CursorKind.WHILE_STMT, CursorKind.DO_STMT):
        return _while(run, frame, node)
    if kind == CursorKind.CXX_FOR_RANGE_STMT:
        body = node.children[-1]
        for child in node.children:
            if child.kind == CursorKind.VAR_DECL:
                frame.places[child.key] = Place(unknown(run, child, child.spelling), child.spelling)
        signal = execute(run, frame, body) if _matters(run, node) else ""
        return signal if signal == "return" else ""
    if kind == CursorKind.BREAK_STMT:
        return "break"
    if kind == CursorKind.CONTINUE_STMT:
        return "continue"
    if kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT):
        return execute(run, frame, node.children[-1]) if node.children else ""
    if kind == CursorKind.CXX_TRY_STMT:
        return execute(run, frame, node.children[0]) if node.children else ""
    if kind == CursorKind.CXX_THROW_EXPR:
        raise PathEnds
    if kind == CursorKind.GOTO_STMT:
        raise PathEnds
    if kind.is_expression():
        if node.kind == CursorKind.UNEXPOSED_EXPR and any(c.kind == CursorKind.CXX_THROW_EXPR for c in node.children):
            raise PathEnds
        evaluate(run, frame, node)
        return ""
    if kind.is_statement() or kind.is_attribute():
        for child in node.children:
            if child.kind.is_statement() or child.kind.is_expression():
                signal = execute(run, frame, child)
                if signal:
                    return signal
    return ""


def declare(run: Run, frame: Frame, node: Node) -> None:
    """`T x = init;`: a reference is bound, a value is copied."""
    ctype = node.cursor.type
    initialisers = node.expressions
    name = node.spelling
    if node.type_kind == TypeKind.CONSTANTARRAY or node.type_kind == TypeKind.INCOMPLETEARRAY:
        initialisers = [c for c in initialisers if c.kind in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL)]
    if node.type_kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE) and initialisers:
        place = place_of(run, frame, initialisers[-1])
        if place is None:
            place = Place(evaluate(run, frame, initialisers[-1]), name)
        frame.places[node.key] = place
        return
    value: Value = None
    if initialisers:
        before = set(run.symbols)
        value = evaluate(run, frame, initialisers[-1])
        _name_new(run, value, name, before)
        if isinstance(value, ListValue) and node.type_kind == TypeKind.RECORD and "dim3" in node.type_text:
            value = None
    if value is None:
        if node.type_kind == TypeKind.RECORD or node.type_kind == TypeKind.CONSTANTARRAY:
            value = blank(run, ctype)
            if not isinstance(value, ArrayValue) and value.type.startswith(("std::", "at::", "c10::", "torch::")):
                value = Unknown(name, node.span)
        elif node.type_kind == TypeKind.POINTER:
            value = Null()
        elif is_integer(node.type_kind) and not initialisers:
            value = None
        else:
            value = unknown(run, node, name)
    value = copied(value)
    frame.places[node.key] = Place(value, name)
    run.called(value, name)


def _name_new(run: Run, value: Value, name: str, before: set[str]) -> None:
    """A tensor or a size that the initialiser made is called like the variable."""
    if isinstance(value, TensorValue) and value.region is not None and value.region.name.startswith("made "):
        value.region.name = name
    if isinstance(value, Pointer) and value.region.name.startswith("made "):
        value.region.name = name
    if isinstance(value, Term) and value.op == "sym":
        key = str(value.args[0])
        if key not in before and run.symbols.get(key) is not None and run.symbols[key].kind != "param":
            run.symbols[key].names.insert(0, name)


def failing(run: Run, node: Node | None) -> bool:
    """Whether an arm only says that something is wrong, or leaves without a launch: what it needs is a constraint."""
    if node is None:
        return False
    key = f"failing {node.key}"
    memo = run.program.unit.memo.setdefault("host failing", {})
    if key not in memo:
        memo[key] = _failing(run, node)
    return bool(memo[key])


def _failing(run: Run, node: Node) -> bool:
    if _throws(node):
        return True
    leaves = False
    for x in node.walk():
        if x.kind == CursorKind.RETURN_STMT:
            leaves = True
        if x.kind == CursorKind.DECL_REF_EXPR and x.spelling in ("cerr", "stderr") and not _matters_node(run, node):
            return True
    if leaves and not _matters_node(run, node):
        last = node.children[-1] if node.kind == CursorKind.COMPOUND_STMT and node.children else node
        return last.kind == CursorKind.RETURN_STMT and node.kind != CursorKind.IF_STMT
    return False


def _if(run: Run, frame: Frame, node: Node) -> str:
    parts = [c for c in node.children if c.kind != CursorKind.DECL_STMT]
    for child in node.children:
        if child.kind == CursorKind.DECL_STMT:
            execute(run, frame, child)
        elif child.kind == CursorKind.VAR_DECL:  # if (auto x = ...)
            declare(run, frame, child)
            parts = [c for c in parts if c is not child]
    if not parts:
        return ""
    test, then = parts[0], parts[1] if len(parts) > 1 else None
    other = parts[2] if len(parts) > 2 else None
    if test.constant is not None and test.kind != CursorKind.DECL_REF_EXPR:
        chosen = then if test.constant else other
        return execute(run, frame, chosen) if chosen is not None else ""
    for fails, arm in ((then, other), (other, then)):
        if fails is None or not failing(run, fails):
            continue
        returns_value = frame.function.type_kind != TypeKind.VOID and not frame.launching
        if returns_value and not _throws(fails):
            break
        return _checked(run, frame, node, test, fails is then, arm)
    c = condition(run, frame, test)
    known = run.known(c)
    if known is None and _mergeable(run, then) and _mergeable(run, other):
        decisions, symbols = len(run.decisions), dict(run.symbols)
        try:
            run.merged(
                c,
                lambda: execute(run, frame, then) if then is not None else "",
                lambda: execute(run, frame, other) if other is not None else "",
            )
            return ""
        except CannotMerge:
            if len(run.decisions) != decisions:
                raise PathEnds from None
            run.symbols = symbols
    taken = run.decide(c, node.span) if known is None else known
    chosen = then if taken else other
    return execute(run, frame, chosen) if chosen is not None else ""


_OFTEN = (CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.SWITCH_STMT, CursorKind.CXX_FOR_RANGE_STMT,
          CursorKind.CONDITIONAL_OPERATOR, CursorKind.LAMBDA_EXPR)  # fmt: skip


def _throws(node: Node) -> bool:
    """Whether a statement fails whenever it is reached; a check inside it that may hold is no failure."""
    if node.kind == CursorKind.CXX_THROW_EXPR or (node.kind == CursorKind.CALL_EXPR and node.spelling in _FAILS):
        return True
    if node.kind == CursorKind.IF_STMT:
        arms = [c for c in node.children if c.kind not in (CursorKind.DECL_STMT, CursorKind.VAR_DECL)][1:]
        return len(arms) == 2 and all(_throws(a) for a in arms)
    if node.kind in _OFTEN or (node.kind == CursorKind.BINARY_OPERATOR and node.operator in ("&&", "||")):
        return False
    return any(_throws(c) for c in node.children)


def _checked(run: Run, frame: Frame, node: Node, test: Node, fails_if_true: bool, arm: Node | None) -> str:
    """A check: the way goes on where it holds."""
    decisions = len(run.decisions)
    c = condition(run, frame, test)
    wanted = terms.negate(c) if fails_if_true else c
    if wanted.value is False and len(run.decisions) > decisions:
        raise PathEnds  # the way decided it to fail
    opaque = any(run.symbols[s].kind == "free" for s in terms.symbols(wanted) if s in run.symbols)
    if not opaque:
        run.require(wanted, node.span)
    return execute(run, frame, arm) if arm is not None else ""


def _mergeable(run: Run, node: Node | None) -> bool:
    """Whether an arm only computes: nothing leaves it and nothing is launched in it."""
    if node is None:
        return True
    memo = run.program.unit.memo.setdefault("host mergeable", {})
    if node.key not in memo:
        memo[node.key] = not any(
            x.kind in (*_JUMPS, CursorKind.RETURN_STMT, CursorKind.CXX_THROW_EXPR, CursorKind.SWITCH_STMT)
            for x in node.walk()
        ) and not _matters_node(run, node)
    return bool(memo[node.key])


def _matters_node(run: Run, node: Node) -> bool:
    return launches_within(run.program, node)


def _matters(run: Run, node: Node) -> bool:
    memo = run.program.unit.memo.setdefault("host matters", {})
    if node.key not in memo:
        memo[node.key] = _matters_node(run, node)
    return bool(memo[node.key])


def _switch(run: Run, frame: Frame, node: Node) -> str:
    """One arm for each label; an arm that only fails is not taken."""
    parts = node.children
    value = evaluate(run, frame, parts[0])
    body = parts[-1]
    arms: list[tuple[list[Node], list[Node]]] = []  # labels (none: default), statements from there on
    statements = body.children if body.kind == CursorKind.COMPOUND_STMT else [body]
    for i, child in enumerate(statements):
        labels: list[Node] = []
        default = False
        inner = child
        while inner.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
            if inner.kind == CursorKind.CASE_STMT:
                labels.append(inner.children[0])
            else:
                default = True
            inner = inner.children[-1]
        if labels or default:
            arms.append(([] if default else labels, [inner, *statements[i + 1 :]]))
    if isinstance(value, TypeOf):
        known = run.dtypes.get(value.key)
        named = [
            (labels, rest) for labels, rest in arms if labels and not any(_label(x) in
            run.not_dtypes.get(value.key, ()) for x in labels)
        ]  # fmt: skip
        if known is not None:
            fit = [rest for labels, rest in named if known in [_label(x) for x in labels]]
            fit = fit or [rest for labels, rest in arms if not labels]
            return _arm(run, frame, fit[0]) if fit else ""
        named = [(labels, rest) for labels, rest in named if not failing(run, rest[0])]
        if not named:
            return ""
        labels, rest = named[run.pick(f"{node.span}", len(named))]
        run.dtypes[value.key] = _label(labels[0])
        return _arm(run, frame, rest)
    for labels, rest in [a for a in arms if a[0]]:
        tests = []
        for label in labels:
            wanted = evaluate(run, frame, label)
            if isinstance(wanted, Text) and isinstance(value, Text):
                tests.append(terms.const(wanted.value == value.value))
            elif isinstance(wanted, Term) and isinstance(value, Term):
                tests.append(terms.compare("==", value, wanted))
        c = terms.either(*tests)
        if failing(run, rest[0]):
            if run.known(c):
                raise PathEnds
            if c.value is None:
                run.require(terms.negate(c), node.span)
            continue
        if run.decide(c, labels[0].span):
            return _arm(run, frame, rest)
    for labels, rest in arms:
        if not labels:
            if failing(run, rest[0]) and any(a[0] for a in arms):
                raise PathEnds
            return _arm(run, frame, rest)
    return ""


def _label(node: Node) -> str:
    for x in node.walk():
        if x.target is not None and x.target.kind == CursorKind.ENUM_CONSTANT_DECL:
            return str(x.target.spelling)
        if x.kind == CursorKind.DECL_REF_EXPR and x.spelling.startswith("k"):
            names = {"Float16": "Half", "Float32": "Float", "Float64": "Double", "Int32": "Int", "Int64": "Long",
                     "Int8": "Char", "UInt8": "Byte", "Int16": "Short"}  # fmt: skip
            return names.get(x.spelling[1:], x.spelling[1:])
    return node.spelling


def _arm(run: Run, frame: Frame, statements: list[Node]) -> str:
    for s in statements:
        while s.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
            s = s.children[-1]
        signal = execute(run, frame, s)
        if signal == "break":
            return ""
        if signal:
            return signal
    return ""


def _for(run: Run, frame: Frame, node: Node) -> str:
    children = node.children
    body = children[-1]
    if not children[:-1]:
        return _once(run, frame, node, body)
    # libclang leaves out parts that are empty: a declaration comes first, the test is a condition
    head = children[:-1]
    init = head[0] if head[0].kind == CursorKind.DECL_STMT or head[0].operator == "=" else None
    rest = head[1:] if init is not None else head
    test = next((c for c in rest if _is_test(c)), None)
    step = rest[-1] if rest and rest[-1] is not test else None
    if init is not None:
        execute(run, frame, init)
    if not _matters(run, node) and not _short(run, frame, test):
        return _skip(run, frame, node)
    for turn in range(_UNROLL):
        if test is not None:
            c = condition(run, frame, test)
            if run.known(c) is False:
                return ""
            if run.known(c) is None:
                if turn:
                    return ""
                run.require(c, node.span)
                signal = execute(run, frame, body)
                return signal if signal == "return" else ""
        signal = execute(run, frame, body)
        if signal == "return":
            return signal
        if signal == "break":
            return ""
        if step is not None:
            evaluate(run, frame, step)
    return ""


def _is_test(node: Node) -> bool:
    while node.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR) and len(node.children) == 1:
        node = node.children[0]
    return node.operator in ("<", "<=", ">", ">=", "!=", "==", "&&", "||")


def _short(run: Run, frame: Frame, test: Node | None) -> bool:
    """Whether a loop's bound is a small number."""
    if test is None or not _is_test(test):
        return False
    decisions = len(run.decisions)
    known = run.known(condition(run, frame, test))
    parts = test.expressions
    bound = evaluate(run, frame, parts[-1]) if len(parts) == 2 else None
    small = isinstance(bound, Term) and bound.value is not None and abs(bound.value) <= _UNROLL
    return known is not None and len(run.decisions) == decisions and small


def _skip(run: Run, frame: Frame, node: Node) -> str:
    """A loop that launches nothing: what it writes is not known after it."""
    for x in node.walk():
        target: Node | None = None
        if (
            x.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
            or (x.kind == CursorKind.BINARY_OPERATOR and x.operator == "=")
            or (x.kind == CursorKind.UNARY_OPERATOR and x.operator in ("x++", "++x", "x--", "--x"))
        ):
            target = x.children[0]
        if target is not None and target.kind == CursorKind.DECL_REF_EXPR:
            place = frame.find(target.target_key)
            if place is not None and isinstance(place.value, Term):
                run.write(place, unknown(run, target, f"{target.spelling}", "a loop computes it"))
    return ""


def _once(run: Run, frame: Frame, node: Node, body: Node) -> str:
    if not _matters(run, node):
        return _skip(run, frame, node)
    signal = execute(run, frame, body)
    return signal if signal == "return" else ""


def _while(run: Run, frame: Frame, node: Node) -> str:
    do = node.kind == CursorKind.DO_STMT
    body, test = (node.children[0], node.children[-1]) if do else (node.children[-1], node.children[0])
    if do and not failing(run, body):
        # do { ... } while (0): a macro
        signal = execute(run, frame, body)
        if signal == "return" or test.constant in (0, False):
            return "" if signal in ("break", "continue") else signal
        if not _matters(run, node):
            return _skip(run, frame, node)
        return ""
    if do:
        return execute(run, frame, body)
    power = next_power(run, frame, test, body)
    if power:
        return ""
    for turn in range(_UNROLL):
        c = condition(run, frame, test)
        known = run.known(c)
        if known is False:
            return ""
        if known is None:
            if turn:
                return _skip(run, frame, node)
            if not _matters(run, node):
                return _skip(run, frame, node)
            return _once(run, frame, node, body)
        signal = execute(run, frame, body)
        if signal == "return":
            return signal
        if signal == "break":
            return ""
    return ""


__all__ = ["PlacePointer", "assign", "declare", "execute", "failing"]
