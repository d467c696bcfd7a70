"""The version of what ports import from the corpus, and the names that it had in earlier versions.

Ports live in other repositories and keep the names that they were made with, so a name that changes goes on here as an
alias of the new one. The version counts up with each such change; `.port.json` says which one a port was made with.
"""

from __future__ import annotations

import sys

VERSION = 2

# Module -> old name -> new name; names of `porter.corpus.lib`'s modules are also names of the package.
RENAMED = {
    "porter.corpus.lib.blocks": {"pairwise": "tree_reduce"},
    "porter.corpus.lib.packed": {
        "STREAM": "STREAMING",
        "first_in_line": "first_in_cache_line",
        "forget_words": "opaque_words",
        "peek": "ld_relaxed",
    },
    "porter.corpus.lib.sync": {"leading": "in_first_blocks"},
    "porter.corpus.runtime.ops": {"forget_plans": "clear_plans", "usually": "compact_key"},
}
# Class of porter.corpus.lib -> old name of a method -> new name.
RENAMED_METHODS = {
    "porter.corpus.lib.quantisation.block_scales.BlockScales": {"place": "scale_ptr"},
    "porter.corpus.lib.rows.Rows": {
        "ask": "prefetch_row",
        "ask_ahead": "prefetch_next_row",
        "at": "access_start",
        "mine": "thread_row",
        "of": "row_slice",
        "place": "thread_coord",
    },
}


def renamed_in(package: str) -> dict[str, str]:
    """Old name -> new name of all modules of a package."""
    found: dict[str, str] = {}
    for module, names in RENAMED.items():
        if module.startswith(package + "."):
            found |= names
    return found


def add_old_names(module: str) -> None:
    """Bind the old names of a module, and of the methods of its classes. The last line of each module of the tables."""
    target = sys.modules[module]
    for old, new in RENAMED.get(module, {}).items():
        setattr(target, old, getattr(target, new))
    for path, names in RENAMED_METHODS.items():
        home, _, name = path.rpartition(".")
        if home == module:
            owner = getattr(target, name)
            for old, new in names.items():
                setattr(owner, old, getattr(owner, new))
