"""Logic is written once: no two places share ten lines of code to the letter without a reason that stands here."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES = 10
FOLDERS = ("porter", "tools", "bench", "tests")
# why two places may be alike, by the files
REASONS = {
    "tests/corpus/old_ports": "ports as an earlier porter wrote them",
    "tests/gpu/faulty_kernels.py": "launch functions as ports have them, which a launch from Python needs in this form",
}


def code(text: str) -> list[tuple[int, str]]:
    """(number, text) of the lines that count: no blanks, comments, imports and lone punctuation; indentation apart."""
    found, importing = [], False
    for number, raw in enumerate(text.splitlines(), 1):
        line = " ".join(raw.split())
        if importing or line.startswith(("import ", "from ")):
            importing = (importing or line.endswith("(")) and not line.endswith(")")
        elif line and line[0] != "#" and any(c.isalnum() for c in line):
            found.append((number, line))
    return found


def twins(texts: dict[str, str], lines: int = LINES) -> list[str]:
    """`a.py:3 ~ b.py:40` for each run of so many lines that stands in two places, at its beginning."""
    places: dict[tuple[str, ...], list[tuple[str, int, int]]] = defaultdict(list)
    for name, text in texts.items():
        rows = code(text)
        for i in range(len(rows) - lines + 1):
            places[tuple(line for _, line in rows[i : i + lines])].append((name, i, rows[i][0]))
    pairs = {
        (a, b)
        for found in places.values()
        for n, a in enumerate(found)
        for b in found[n + 1 :]
        if a[0] != b[0] or b[1] - a[1] >= lines
    }
    before = {((a[0], a[1] + 1), (b[0], b[1] + 1)) for a, b in pairs}  # a longer run is told of once
    return sorted(f"{a[0]}:{a[2]} ~ {b[0]}:{b[2]}" for a, b in pairs if (a[:2], b[:2]) not in before)


def test_no_two_places_share_ten_lines() -> None:
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    found = twins({p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in sorted(files)})
    reasons = {pair: [r for r in REASONS if all(side.startswith(r) for side in pair.split(" ~ "))] for pair in found}
    assert [pair for pair, why in reasons.items() if not why] == []
    assert {r for why in reasons.values() for r in why} == set(REASONS), "a reason without twins is not needed"


def test_twins_are_found_whatever_their_indentation_and_comments() -> None:
    run = [f"value_{n} = compute({n})" for n in range(LINES)]
    plain, nested = "\n".join(run), "if x:\n" + "\n\n".join(f"    {line}" for line in run[:4])
    nested += "\n    # a comment\n" + "\n".join(f"    {line}" for line in run[4:])
    assert twins({"a.py": "import os\n" + plain, "b.py": nested}) == ["a.py:2 ~ b.py:2"]
    assert twins({"a.py": plain + "\nother()\n" + plain}) == [f"a.py:1 ~ a.py:{LINES + 2}"]
    assert twins({"a.py": plain + "\nmore()", "b.py": plain + "\nmore()"}) == ["a.py:1 ~ b.py:1"]
    assert twins({"a.py": plain, "b.py": "\n".join(run[:-1])}) == []
    assert twins({"a.py": "x = f(1)\n" * LINES}) == []
    imports = "from a import (\n" + "".join(f"    b{n},\n" for n in range(LINES)) + ")\n"
    assert twins({"a.py": imports, "b.py": imports}) == []
