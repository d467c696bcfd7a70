"""What is shown cannot steer a terminal: the one place that all text for stdout and stderr goes through.

Source lines, messages of a port and names in a record are other people's text. Of characters that move the cursor,
colour, ring or reorder what stands beside them, people see a picture, one letter wide. Programs read `\\u001b`, in JSON
the same character.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

# C0 but for tab and newline, DEL, C1, marks that change the direction of text, separators of lines, halves of pairs
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text as people may be shown it: of what would steer a terminal a picture, one letter wide."""
    return _STEERING.sub(lambda m: chr(0x2400 + ord(m[0])) if m[0] < " " else "\ufffd", text)


def escaped(text: str) -> str:
    """Text as programs may read it: what would steer a terminal as `\\uXXXX`, but for the end of a line."""
    if not _STEERING.search(text):
        return text
    return _STEERING.sub(lambda m: f"\\u{ord(m[0]):04x}", text.replace("\r\n", "\n"))


class _Visible:
    """A text stream over `unseen`, which gets nothing that steers."""

    def __init__(self, unseen: TextIO):
        self.unseen = unseen

    def write(self, text: str) -> int:
        self.unseen.write(escaped(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unseen, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Within it, what is printed to stdout and stderr steers nothing."""
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (s if s is None or isinstance(s, _Visible) else cast(TextIO, _Visible(s)) for s in kept)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = kept


def styled(stream: TextIO, **settings: Any) -> Console:
    """A rich console over a stream: its own colours reach the terminal, what is in the text does not."""
    from rich.console import Console
    from rich.segment import Segment

    class Clean(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return Clean(file=getattr(stream, "unseen", stream), **settings)
