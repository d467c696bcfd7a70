"""Is the file what it looks like? Encodings, letters that only look like others, invisible characters, sheer size."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator

from porter.verify.checks.honesty.objection import Objection

MOST_BYTES = 2 << 20
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_UTF8 = ("utf-8", "utf8", "utf_8", "u8")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00\x0b\x0c\x1a\x1b\x08]")


def check_text(text: str) -> Iterator[Objection]:
    """Encoding declarations, invisible and direction-changing characters, names outside ASCII."""
    if len(text) > MOST_BYTES:
        yield Objection(1, f"the file has {len(text)} characters", "a port is a file that can be read")
        return
    for number, line in enumerate(text.splitlines()[:2], 1):
        cookie = _COOKIE.match(line)
        if cookie and cookie.group(1).lower() not in _UTF8:
            help = "Python would read other code than an editor shows: write UTF-8"
            yield Objection(number, f"declares the encoding {cookie.group(1)}", help)
    for found in _INVISIBLE.finditer(text):
        name = unicodedata.name(found.group(), f"U+{ord(found.group()):04X}")
        line_number = text.count("\n", 0, found.start()) + 1
        yield Objection(line_number, f"holds an invisible character ({name})", "what is read must be what is run")
    if not text.isascii():
        yield from _names(text)


def _names(text: str) -> Iterator[Objection]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                letter = next(c for c in token.string if not c.isascii())
                message = f"the name {token.string} has the letter {unicodedata.name(letter, letter)}"
                yield Objection(
                    token.start[0], message, "names are ASCII: letters that look alike are not the same name"
                )
    except (tokenize.TokenError, SyntaxError):
        return  # not Python: the parser says where
