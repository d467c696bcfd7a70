"""The folders are the ones that docs/architecture.md tells of, and none grows beyond what a person takes in."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 20  # modules of a folder, its __init__ aside
MOST_LOOSE = 9  # modules of porter/ itself
MOST_LINES = 500  # of a module
TABLES: frozenset[str] = frozenset()  # modules that are tables of rows, and may be longer


def told() -> dict[str, tuple[str, str]]:
    """Folder -> (what it holds, what keeps it so), from the table."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(porter/[\w/]*)` \| (.+) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == len({folder for folder, *_ in rows}), "a folder is told of twice"
    return {folder.rstrip("/"): (what, rule) for folder, what, rule in rows}


def modules() -> Counter[str]:
    """Folder of porter -> how many modules lie in it."""
    found: Counter[str] = Counter()
    for path in (ROOT / "porter").rglob("*.py"):
        found[path.parent.relative_to(ROOT).as_posix()] += path.name != "__init__.py"
    return found


def test_every_folder_is_in_the_table_and_no_other():
    assert set(told()) == set(modules())


def test_no_folder_is_too_large():
    found = modules()
    assert found["porter"] <= MOST_LOOSE
    assert {folder: n for folder, n in found.items() if n > MOST} == {}


def test_no_module_is_too_long():
    lines = {p.relative_to(ROOT).as_posix(): p.read_text("utf-8").count("\n") for p in (ROOT / "porter").rglob("*.py")}
    long = {module for module, n in lines.items() if n > MOST_LINES}
    assert long - TABLES == set()
    assert long >= TABLES, "a table that is no longer long needs no exception"


def test_every_folder_is_a_package():
    missing = [folder for folder in modules() if not (ROOT / folder / "__init__.py").is_file()]
    assert missing == []


def test_the_table_follows_the_order_of_the_layers():
    """A folder of a higher layer stands before those that it may import."""
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("layers = [")[2].partition("]")[0]
    order = {
        name.strip().replace(".", "/"): n
        for n, row in enumerate(re.findall(r'"([^"]+)"', contract))
        for name in re.split(r"[:|]", row)
    }
    top = [folder for folder in told() if folder.count("/") == 1 and folder in order]
    assert [order[folder] for folder in top] == sorted(order[folder] for folder in top)
