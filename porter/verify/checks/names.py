"""Does every library name that a port uses exist in what is installed, and is it what a port may use?

Found by syntax, looked up in a child process that has imported no port. The parent only reads the port's syntax tree;
`resolve` runs in the compile worker, where cutlass may be imported. A name that turns out to be a module outside the
DSL, or something defined by one (`cute.runtime.ctypes`), is refused: modules hold what they import.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import json
import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from porter import codes
from porter.model import Diagnostic
from porter.source import Span
from porter.syntax import module_tree
from porter.verify.checks.honesty.vocabulary import is_module

_INSIDE = ("cutlass", "nvidia_cutlass_dsl", "porter", "math", "cuda", "typing", "collections", "enum", "dataclasses",
           "functools", "operator", "builtins")  # fmt: skip
_LOOKED_UP = ("cutlass", "porter.corpus", "cuda", "math")  # torch is large, and is looked at by `honesty`


@dataclass(frozen=True)
class Use:
    """A dotted name of the port: the module it starts from, the attributes taken of it, and where."""

    module: str
    attributes: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return ".".join((self.module, *self.attributes))


def library_uses(text: str) -> list[Use]:
    """Each library name that the text uses, once, in order. Raises SyntaxError for what is not Python."""
    tree = module_tree(text)
    bound: dict[str, tuple[str, tuple[str, ...]]] = {}  # local name -> module and attributes it stands for
    uses: dict[tuple[str, tuple[str, ...]], Use] = {}

    def add(module: str, attributes: tuple[str, ...], line: int) -> None:
        if any(module == r or module.startswith(r + ".") for r in _LOOKED_UP) or (
            module == "porter" and attributes[:1] == ("corpus",)
        ):
            uses.setdefault((module, attributes), Use(module, attributes, line))

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    bound[alias.asname] = (alias.name, ())
                else:
                    root = alias.name.split(".")[0]
                    bound.setdefault(root, (root, ()))
                add(alias.name, (), node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                bound[alias.asname or alias.name] = (node.module, (alias.name,))
                add(node.module, (alias.name,), node.lineno)
    rebound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    rebound |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        parts: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in bound and at.id not in rebound:
            module, attributes = bound[at.id]
            add(module, (*attributes, *reversed(parts)), node.lineno)
    # an attribute of the result of a call starts a chain of its own, which nobody can look up without running it
    return list(uses.values())


def resolve(uses: Sequence[tuple[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """For each (module, attributes): {} when it exists, else what is missing and the near names. Imports modules."""
    return [_resolve_one(module, attributes) for module, attributes in uses]


def _resolve_one(module: str, attributes: Sequence[str]) -> dict[str, Any]:
    parts = module.split(".")
    try:
        at: Any = importlib.import_module(module)
    except ImportError as error:
        for depth in range(len(parts) - 1, 0, -1):
            try:
                parent = importlib.import_module(".".join(parts[:depth]))
            except ImportError:
                continue
            return _missing(parent, parts[depth], ".".join(parts[:depth]))
        return {"missing": module, "of": "", "near": [], "error": str(error)}
    name = module
    for attribute in attributes:
        try:
            found = inspect.getattr_static(at, attribute) if isinstance(at, type) else getattr(at, attribute)
        except AttributeError:
            found = None
            if isinstance(at, types.ModuleType):
                try:
                    found = importlib.import_module(f"{at.__name__}.{attribute}")
                except ImportError:
                    return _missing(at, attribute, name)
            elif isinstance(at, type):
                if hasattr(at, attribute):
                    return {}  # a metaclass answers
                return _missing(at, attribute, name)
        name = f"{name}.{attribute}"
        outside = _defined_outside(found)
        if outside:
            return {"outside": outside, "name": name}
        if not isinstance(found, types.ModuleType | type):
            return {}  # attributes of objects are made at run time
        at = found
    if attributes and isinstance(at, types.ModuleType) and not (is_module(name) or is_module(at.__name__)):
        return {"outside": f"{at.__name__}, a module", "name": name}  # what is taken of it, nobody could see
    return {}


def _defined_outside(found: Any) -> str:
    """The module, where a port may use neither it nor what it defines."""
    if isinstance(found, types.ModuleType):
        name = found.__name__
        return "" if name.split(".")[0] in ("cutlass", "porter", "math", "cuda") else name
    if isinstance(found, type | types.FunctionType | types.BuiltinFunctionType):
        name = getattr(found, "__module__", None) or "builtins"
        return "" if name.split(".")[0] in _INSIDE else name
    return ""


def _missing(parent: Any, name: str, of: str) -> dict[str, Any]:
    known = [n for n in dir(parent) if not n.startswith("_")]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not near:  # `thread_index` for `thread_idx`: a shared part is worth more than the letters
        words = set(name.lower().split("_"))
        near = sorted((n for n in known if words & set(n.lower().split("_"))), key=len)[:3]
    return {"missing": name, "of": of, "near": near}


def diagnostics(path: Path, uses: Sequence[Use], answers: Sequence[dict[str, Any]]) -> list[Diagnostic]:
    """The unknown names as diagnostics with a suggestion."""
    found = []
    for use, answer in zip(uses, answers, strict=True):
        if answer.get("outside"):
            message = f"`{use.text}` leads outside the DSL: {answer['name']} belongs to {answer['outside']}"
            found.append(
                Diagnostic(codes.NOT_ITS_OWN_WORK, message, Span(str(path), use.line), help="a port is CuTeDSL")
            )
        elif answer:
            of = answer["of"] or use.module
            message = f"`{use.text}` does not exist: {of} has no `{answer['missing']}`"
            near = answer["near"]
            help = f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
            found.append(Diagnostic(codes.NO_SUCH_LIBRARY_NAME, message, Span(str(path), use.line), help=help))
    return sorted(found, key=lambda d: d.span)


def check_names(port_path: Path) -> tuple[int, list[Diagnostic]]:
    """How many library names a port uses, and a diagnostic for each unknown one. Raises RuntimeError without an answer.

    Answers are remembered by what is installed: a port that has not changed starts no child.
    """
    from porter.corpus.runtime import ArtifactCache, digest
    from porter.corpus.runtime.sources import source_closure
    from porter.verify.compile.worker import resolve_names, used_dsl_version

    uses = library_uses(port_path.read_text(encoding="utf-8"))
    asked = [(u.module, list(u.attributes)) for u in uses]
    sources = [sha for _, sha in source_closure(port_path)]
    cache = ArtifactCache("port-names")
    key = digest(["3", used_dsl_version(), *sources, json.dumps(asked)])
    folder = cache.get(key)
    if folder is None:
        answers = resolve_names(port_path, [(u.module, u.attributes) for u in uses])
        folder = cache.put(key, {"answers.json": json.dumps(answers).encode()})
    return len(uses), diagnostics(port_path, uses, json.loads((folder / "answers.json").read_text()))
