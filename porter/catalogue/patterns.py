"""What `porter patterns` and `porter corpus` show, read without importing the DSL; docs are generated from it too."""

from __future__ import annotations

import ast
from pathlib import Path

import porter.corpus
from porter.catalogue.corpus import CorpusEntry, corpus_entries
from porter.config import PortConfig
from porter.model import PortedModule
from porter.patterns.idioms.catalogue import Pattern
from porter.patterns.tables.intrinsics import ROWS
from porter.source import Source
from porter.syntax import module_tree

__all__ = ["CorpusEntry", "corpus_entries", "corpus_ops", "function_rows", "pattern_line", "pattern_page"]


def corpus_ops() -> list[tuple[str, str]]:
    """(torch schema, documentation) of the operations of the corpus, by name."""
    root = Path(porter.corpus.__path__[0])
    found: list[tuple[str, str]] = []
    for path in sorted((root / "ops").rglob("*.py")):
        body = module_tree(path.read_text(encoding="utf-8")).body
        texts = {
            n.targets[0].id: n.value.value
            for n in body
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Constant)
        }
        for node in body:
            for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "op":
                    found.append((_text(call.args[0], texts), ast.get_docstring(node) or ""))  # type: ignore[arg-type]
    return sorted(found)


def _text(node: ast.expr, constants: dict[str, object]) -> str:
    """The value of a sum of string constants and of names of such."""
    if isinstance(node, ast.BinOp):
        return _text(node.left, constants) + _text(node.right, constants)
    return str(constants[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node))


def pattern_line(pattern: Pattern, width: int) -> str:
    return f"{pattern.name:<{width}}  {pattern.title} ({pattern.promise})"


def pattern_page(pattern: Pattern) -> str:
    """One pattern as Markdown: what it does, what it takes for granted, its kernel and the port of it."""
    grounds = "".join(f"- {a.sentence}\n" for a in pattern.assumes)
    promise = pattern.promise[0].upper() + pattern.promise[1:]
    return (
        f"## {pattern.name}\n\n{pattern.title[0].upper()}{pattern.title[1:]}. {promise}."
        f" In `porter/{pattern.module}`.\n\n{grounds}{chr(10) if grounds else ''}"
        f"```cuda\n{pattern.before.strip()}\n```\n\n```python\n{ported(pattern)}\n```\n"
    )


def ported(pattern: Pattern) -> str:
    """The pattern's kernel as porter translates it now: its functions, without launcher. Raises PorterError."""
    module = port_of(pattern)
    return module.text[module.text.index("\n@cute.") : module.text.index("@cute.jit\ndef _launch_")].strip()


def port_of(pattern: Pattern) -> PortedModule:
    """The whole port of the pattern's kernel. Raises PorterError."""
    from porter.case.reader import parse_case
    from porter.frontend.parse.source import ParseOptions, parse_source
    from porter.pipeline.stages import Run, translate
    from porter.pipeline.style import in_style

    unit = parse_source(Source(Path(f"{pattern.name}.cu"), pattern.before), ParseOptions())
    (info,) = unit.kernels
    case = parse_case(pattern.case, Path(f"{pattern.name}.case.toml")) if pattern.case else None
    made = translate(unit, info, case, PortConfig(instantiate=pattern.instances), Run(info.name))
    return in_style(made, "tensor" if pattern.case else "pointer").module


def function_rows() -> list[tuple[str, str]]:
    """(CUDA function, CuTeDSL expression) of the table of one-to-one equivalents; {0}, {1} are the arguments."""
    rows: dict[tuple[str, str], None] = {}
    for row in ROWS:
        kinds = f" ({', '.join(row.when)})" if row.when else ""
        rows[row.cuda + kinds, row.emit] = None
    return sorted(rows)
