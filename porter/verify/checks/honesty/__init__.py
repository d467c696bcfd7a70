"""Does the port do the work itself, and is it nothing but a port? A look at its text; nothing is imported or run.

An allow-list, in parts: the text, the language, the imports, state between calls, torch, what is launched, and what
the machine is asked. What
the list cannot know (what a name of a library really is) the check `names` looks up, still before anything is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from porter import codes
from porter.model import Diagnostic
from porter.source import Span
from porter.syntax import module_tree
from porter.verify.checks.honesty.imports import check_imports
from porter.verify.checks.honesty.language import check_host_attributes, check_language
from porter.verify.checks.honesty.launches import check_launches, offered_instances
from porter.verify.checks.honesty.machine import check_machine
from porter.verify.checks.honesty.objection import PLAIN, Objection, host_functions, walk
from porter.verify.checks.honesty.state import check_state
from porter.verify.checks.honesty.tensors import check_tensors
from porter.verify.checks.honesty.text import check_text

__all__ = ["CODE", "check_honesty"]


def check_honesty(text: str, path: Path, verified: Sequence[Mapping[str, object]] | None = None) -> list[Diagnostic]:
    """Everything that stands against the port, each a diagnostic at its line; empty when it is honest.

    `verified`: the template values of the instances that are being verified; the port may offer no others. A file that
    is not Python gives one diagnostic.
    """
    found = list(check_text(text))
    if not found or len(text) < (1 << 20):
        try:
            tree = module_tree(text)
            found += _checks(tree, text)
            for line, values in offered_instances(tree) if verified is not None else ():
                if values not in [dict(v) for v in verified or ()]:
                    help = "an instance that the case (or .port.json) does not name is not verified"
                    found.append(Objection(line, f"offers an instance that is not verified: {values}", help))
        except SyntaxError as error:
            found.append(Objection(error.lineno or 1, f"the port is not Python: {error.msg}", ""))
        except (RecursionError, MemoryError, ValueError) as error:
            text = f"the port cannot be read ({type(error).__name__}): it is nested too deeply"
            found.append(Objection(1, text, PLAIN))
    unique = sorted(dict.fromkeys(found), key=lambda f: (f.line, f.message))
    return [Diagnostic(codes.NOT_ITS_OWN_WORK, f.message, Span(str(path), f.line), help=f.help) for f in unique]


def _checks(tree: ast.Module, text: str) -> Iterator[Objection]:
    yield from check_imports(tree)
    yield from check_language(tree, text)
    imported = {
        (a.asname or a.name.split(".")[0])
        for n in walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    yield from check_host_attributes(tree, host_functions(tree), imported)
    yield from check_state(tree)
    yield from check_tensors(tree)
    yield from check_launches(tree)
    yield from check_machine(tree)
