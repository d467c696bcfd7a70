"""A port taken apart into lines and put together again is the same port, with the same line map."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.lift.lines import functions_of, module_of
from porter.lift.scopes import separate, together
from tests.lift.ports import SOURCES, pointer_form


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_nothing_is_lost(path: Path) -> None:
    module = pointer_form(path).module
    before, functions, after = functions_of(module)
    for fn in functions:
        separate(fn.body)
        together(fn.body)
    again = module_of(module, before, functions, after)
    assert again.text == module.text
    assert again.line_map == module.line_map
