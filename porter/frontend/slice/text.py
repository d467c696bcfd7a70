"""The text side of a slice: where comments, strings and preprocessor directives are. Offsets are bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPAQUE = re.compile(
    r"//(?:[^\\\n]|\\.)*"
    r"|/\*.*?\*/"
    r'|R"([^\s()\\]{0,16})\(.*?\)\1"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*([a-z_]+)\b", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_INCLUDE = re.compile(r'#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")')
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)")


@dataclass(frozen=True)
class Directive:
    """One preprocessor line with its continuations: bytes start..end (the line end left out)."""

    word: str
    start: int
    end: int
    include: str = ""  # of an #include: the name as written
    quoted: bool = False
    macro: str = ""  # of a #define


def blank(text: str) -> str:
    """The text with everything but line ends turned into spaces."""
    return re.sub(r"[^\n]", " ", text)


def code_of(text: str) -> str:
    """The text with comments, strings and character literals blanked: same length, same lines."""
    return _OPAQUE.sub(lambda m: blank(m.group()), text)


def identifiers(code: str) -> set[str]:
    return set(_IDENTIFIER.findall(code))


def directives(text: str, code: str) -> list[Directive]:
    """All directives of a file, in inactive regions too. `code` is `code_of(text)`."""
    found = []
    for match in _DIRECTIVE.finditer(code):
        end = code.find("\n", match.end())
        while end > 0 and code[end - 1] == "\\":
            end = code.find("\n", end + 1)
        end = len(code) if end < 0 else end
        start = match.start()
        line = text[start:end]
        include = _INCLUDE.search(line) if match.group(1) == "include" else None
        define = _DEFINE.search(line) if match.group(1) == "define" else None
        found.append(
            Directive(
                match.group(1),
                start,
                end,
                (include.group(1) or include.group(2)) if include else "",
                bool(include and include.group(2)),
                define.group(1) if define else "",
            )
        )
    return found
