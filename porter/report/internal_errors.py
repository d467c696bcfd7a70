"""Where the traceback of an internal error goes: a file in the cache folder, named in the message."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from porter.corpus.runtime.cache import cache_root
from porter.model import Diagnostic
from porter.source import NO_SPAN, Span


def internal_error(error: BaseException, traceback_text: str, doing: str = "", span: Span = NO_SPAN) -> Diagnostic:
    """The PRT950 message for an error porter did not expect; keeps the traceback in a file."""
    where = f" while {doing}" if doing else ""
    return Diagnostic(
        "PRT950",
        f"internal error{where}: {type(error).__name__}: {error}".rstrip(": "),
        span,
        help=f"this is a defect of porter; the traceback is in {save_traceback(traceback_text)}",
    )


def save_traceback(text: str) -> str:
    """Keep `text` and return the path to name in the message. Never raises: the last resort is a temporary folder."""
    name = f"crash-{hashlib.sha256(text.encode()).hexdigest()[:10]}.txt"
    for folder in (cache_root() / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            return str(folder / name)
        except OSError:
            continue
    return "no file: no folder could be written"
