"""Launch choices found by measurement, as data: one JSON file a device in porter/corpus/tuning.

A plan asks `choose(...)`, with its own rule for where the table says nothing. `python -m porter.corpus.tune`
makes the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from porter.corpus.runtime.device import Device

FOLDER = Path(__file__).resolve().parent.parent / "tuning"
SCHEMA = 2
# what choices were called in schema 1
_NAMES_IN_1 = {"lead": "prefetch_blocks", "ahead": "prefetch_distance", "stream": "streaming"}

Choice = Mapping[str, Any]

_forced: Choice | None = None
_questions: list[Question] | None = None


@dataclass(frozen=True)
class Question:
    """What a plan asked: op, key (dtype, lengths), number of rows, its own rule's choice, and what it could take."""

    op: str
    key: str
    tokens: int
    default: Choice
    candidates: Callable[[], Sequence[Choice]]


@dataclass(frozen=True)
class Entry:
    """The best choice measured for one shape. `key`: what the plan asks with (dtype, lengths); `tokens`: rows."""

    op: str
    key: str
    tokens: int
    choice: Choice
    us: float
    default_us: float


def choose(
    device: Device, op: str, key: str, tokens: int, default: Choice, candidates: Callable[[], Sequence[Choice]]
) -> Choice:
    """The measured choice for an op, else `default`, whose keys the result has.

    Of the entries with this key: the one with the fewest tokens that are at least `tokens`, or the one with the most.
    Devices of one architecture share entries when they have no file of their own, and float16 those of bfloat16.
    """
    if _questions is not None:
        _questions.append(Question(op, key, tokens, default, candidates))
    if _forced is not None:
        return {**default, **_forced}
    found = _entries(device)
    entries = found.get((op, key)) or found.get((op, re.sub("^f16", "bf16", key)), ())
    best = next((e.choice for e in entries if e.tokens >= tokens), entries[-1].choice if entries else {})
    return {**default, **{k: v for k, v in best.items() if k in default}}


@contextmanager
def forced(value: Choice) -> Iterator[list[Question]]:
    """Every plan made inside gets this choice, and its question is kept: how the tuner tries one."""
    global _forced, _questions
    before, _forced, _questions = (_forced, _questions), value, []
    try:
        yield _questions
    finally:
        _forced, _questions = before


def slug(device_name: str) -> str:
    """The file's name for a device: "NVIDIA H200" -> "nvidia_h200"."""
    return re.sub(r"[^a-z0-9]+", "_", device_name.lower()).strip("_")


def write(path: Path, device: Device, versions: Mapping[str, str], entries: list[Entry]) -> None:
    """Write a device's file; entries of other shapes that it holds stay."""
    kept = {} if not path.is_file() else {(e.op, e.key, e.tokens): e for e in read(path)[1]}
    kept |= {(e.op, e.key, e.tokens): e for e in entries}
    rows = [
        json.dumps({"op": e.op, "key": e.key, "tokens": e.tokens, "choice": dict(e.choice), "us": e.us,
                    "default_us": e.default_us})
        for _, e in sorted(kept.items())
    ]  # fmt: skip
    head = {"schema": SCHEMA, "device": device.name, "arch": device.arch, "sm_count": device.sm_count}
    text = json.dumps({**head, "versions": dict(versions)}, indent=1)[:-2]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text + ',\n "entries": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n")
    partial.replace(path)
    _all_entries.cache_clear()


def read(path: Path) -> tuple[dict[str, Any], list[Entry]]:
    """A device's file: its head, and its entries. Raises ValueError for a schema later than this version's."""
    data = json.loads(path.read_text())
    if data.get("schema") not in (1, SCHEMA):
        raise ValueError(f"{path} has schema {data.get('schema')}, this version reads {SCHEMA} and 1")
    entries = [Entry(**row) for row in data.pop("entries")]
    if data["schema"] == 1:
        entries = [replace(e, choice={_NAMES_IN_1.get(k, k): v for k, v in e.choice.items()}) for e in entries]
    return data, entries


def _entries(device: Device) -> Mapping[tuple[str, str], tuple[Entry, ...]]:
    files = _all_entries()
    own = files.get(slug(device.name))
    if own is not None:
        return own[1]
    return next((found for arch, found in files.values() if arch == device.arch), {})


@cache
def _all_entries() -> dict[str, tuple[str, Mapping[tuple[str, str], tuple[Entry, ...]]]]:
    """File name -> (architecture, (op, key) -> entries by tokens)."""
    found: dict[str, tuple[str, Mapping[tuple[str, str], tuple[Entry, ...]]]] = {}
    for path in sorted(FOLDER.glob("*.json")):
        head, entries = read(path)
        table: dict[tuple[str, str], tuple[Entry, ...]] = {}
        for e in sorted(entries, key=lambda e: e.tokens):
            table[e.op, e.key] = (*table.get((e.op, e.key), ()), e)
        found[path.stem] = (head["arch"], table)
    return found
