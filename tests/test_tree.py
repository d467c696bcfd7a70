"""The folders are the ones that docs/architecture.md tells of, and none grows beyond what a person takes in."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
    assert all(what.strip() and rule.strip() for what, rule in told().values())


def test_folders_without_modules_are_told_of_too():
    """Those of porter that git keeps files in, other than what lies inside one that is told of."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("Folders without modules:")[2]
    told_of = set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))
    assert {folder for folder in told_of if not (ROOT / folder).is_dir()} == set()
    packages = set(modules())
    found = {p.parent.relative_to(ROOT) for p in (ROOT / "porter").rglob("*") if p.is_file() and p.suffix != ".pyc"}
    bare = {f for f in found if f.as_posix() not in packages and "__pycache__" not in f.parts}
    assert {f.as_posix() for f in bare if not {f.as_posix(), *map(str, f.parents)} & told_of} == set()


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


# ---------------------------------------------------------------- cycles


@cache
def imported(text: str, names: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """(module of `names`, line) of each import in a text, also of those inside functions; not of those for annotations
    alone (`if TYPE_CHECKING:`)."""
    return tuple(_imports(text, names))


def _imports(text: str, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        elif isinstance(node, ast.Import):
            yield from ((a.name, node.lineno) for a in node.names if a.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for a in node.names:
                found = next((n for n in (f"{node.module}.{a.name}", node.module) if n in names), "")
                if found:
                    yield found, node.lineno
        elif not isinstance(node, ast.expr):  # no statement stands in an expression
            waiting += ast.iter_child_nodes(node)


def graph(texts: dict[str, str]) -> dict[str, set[str]]:
    """Module -> what it imports, without the imports whose line says why they close a cycle (`# cycle: ...`)."""
    names = frozenset(texts)
    made = {}
    for name, text in texts.items():
        lines = text.splitlines()
        edges = {other for other, line in imported(text, names) if not re.search(r"# cycle: \w", lines[line - 1])}
        made[name] = edges - {name}
    return made


def cycle_in(texts: dict[str, str]) -> list[str]:
    try:
        TopologicalSorter(graph(texts)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@cache
def sources() -> dict[str, str]:
    """Dotted name of each module of porter -> its text."""
    found = {}
    for path in (ROOT / "porter").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def test_no_import_cycle_but_where_a_comment_says_why():
    assert cycle_in(sources()) == []


def test_a_comment_about_a_cycle_stands_at_an_import_that_closes_one():
    texts = sources()
    names = frozenset(texts)
    edges = {name: {other for other, _ in imported(text, names)} for name, text in texts.items()}
    needless = []
    for name, text in texts.items():
        marked = [n for n, line in enumerate(text.splitlines(), 1) if "# cycle: " in line and " import " in line]
        for other in {other for other, line in imported(text, names) if line in marked}:
            seen, waiting = set(), [other]
            while waiting and name not in seen:
                at = waiting.pop()
                waiting += edges[at] - seen
                seen |= {at, *edges[at]}
            if name not in seen:
                needless.append(f"{name} imports {other}")
    assert needless == []


def test_cycles_are_found():
    """At the top, inside a function, through three modules; neither for annotations alone nor with a reason."""
    one = {"p.a": "from p import b", "p.b": "def f():\n    from p.a import x"}
    assert set(cycle_in(one)) == {"p.a", "p.b"}
    three = {
        "p.a": "import p.b",
        "p.b": "from p.c import x",
        "p.c": "if x:\n    try:\n        from p.a import y\n    except E: pass",
    }
    assert set(cycle_in(three)) == {"p.a", "p.b", "p.c"}
    typed = {"p.a": "from p import b", "p.b": "if TYPE_CHECKING:\n    from p.a import x\nelse:\n    x = 1"}
    assert cycle_in(typed) == []
    reason = {"p.a": "from p import b", "p.b": "def f():\n    from p.a import x  # cycle: a holds b"}
    assert cycle_in(reason) == [] and cycle_in(reason | {"p.b": reason["p.b"].replace(": a holds b", "")}) != []
