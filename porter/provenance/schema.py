"""What a `.port.json` must look like, and which of its keys does not: a damaged record is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Check = Callable[[Any, str], None]  # a value and its key; raises DamagedRecord


class DamagedRecord(ValueError):
    """A value of a record is not what it must be. `key` is the path of its key, such as `port.sha256`."""

    def __init__(self, key: str, what: str):
        super().__init__(f"`{key}` {what}" if key else what)
        self.key = key


def text(value: Any, key: str) -> None:
    _require(isinstance(value, str), key, "a string", value)


def whole(value: Any, key: str) -> None:
    _require(isinstance(value, int) and not isinstance(value, bool), key, "a whole number", value)


def one_of(*allowed: str) -> Check:
    return lambda value, key: _require(value in allowed, key, f"one of {', '.join(allowed)}", value)


def a_list(of: Check) -> Check:
    def check(value: Any, key: str) -> None:
        _require(isinstance(value, list), key, "a list", value)
        for n, v in enumerate(value):
            of(v, f"{key}[{n}]")

    return check


def an_object(needed: dict[str, Check] | None = None, optional: dict[str, Check] | None = None) -> Check:
    """An object with these keys; others are let pass."""

    def check(value: Any, key: str) -> None:
        _require(isinstance(value, dict), key, "an object", value)
        for name in needed or {}:
            if name not in value:
                raise DamagedRecord(f"{key}.{name}" if key else name, "is missing")
        for name, of in {**(needed or {}), **(optional or {})}.items():
            if name in value:
                of(value[name], f"{key}.{name}" if key else name)

    return check


def texts_by_name(value: Any, key: str) -> None:
    _require(isinstance(value, dict), key, "an object", value)
    for name, v in value.items():
        text(v, f"{key}.{name}")


def or_null(of: Check) -> Check:
    return lambda value, key: None if value is None else of(value, key)


def row_of_seven(value: Any, key: str) -> None:
    good = isinstance(value, list) and len(value) == 7 and all(isinstance(v, int) for v in value)
    _require(good, key, "a list of seven whole numbers", value)


def _require(good: bool, key: str, wanted: str, value: Any) -> None:
    if not good:
        shown = repr(value)
        raise DamagedRecord(key, f"is {shown if len(shown) <= 60 else shown[:57] + '...'}, not {wanted}")


SPAN = or_null(an_object({"file": text, "line": whole}))
DIAGNOSTIC = an_object(
    {"code": text, "message": text},
    {
        "severity": one_of("note", "warning", "error"),
        "span": SPAN,
        "help": text,
        "notes": a_list(text),
        "port_line": whole,
        "hole": whole,
        "key": text,
    },
)
FILE = an_object(optional={"path": text, "sha256": text, "reference_sha256": text})
SOURCE = an_object(optional={"path": text, "sha256": text, "headers": texts_by_name})
RECORD = an_object(
    {"kernel": text},
    {
        "source": SOURCE,
        "source_text": text,
        "case": FILE,
        "port": an_object(optional={"sha256": text, "previous_sha256": text, "lines": text}),
        "instances": a_list(a_list(text)),
        "arches": a_list(text),
        "patterns": a_list(text),
        "symbols": an_object(),
        "assumptions": a_list(an_object({"text": text, "basis": text}, {"pattern": text, "how": text, "check": text})),
        "holes": a_list(an_object({"code": text, "cuda": text, "reason": text}, {"span": SPAN})),
        "verified_sha256": text,
        "verdicts": a_list(
            an_object(
                {"check": text, "status": one_of("PASS", "FAIL", "SKIP", "ERROR")},
                {"detail": text, "diagnostics": a_list(DIAGNOSTIC), "data": an_object()},
            )
        ),
        "options": an_object(
            optional={
                "std": text,
                "define": a_list(text),
                "include": a_list(text),
                "instantiate": a_list(text),
                "math": a_list(text),
                "pre_include": a_list(text),
            }
        ),
        "versions": an_object(),
        "line_map": an_object(optional={"files": a_list(text), "authors": a_list(text), "rows": a_list(row_of_seven)}),
    },
)


def check_record(value: dict[str, Any]) -> None:
    """Raise DamagedRecord for the first key of a record that is not as it must be."""
    RECORD(value, "")
