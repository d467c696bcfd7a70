"""NVRTC in a child process: CUDA C++ text to PTX and cubin, with no host compiler and no toolkit. Knows no slices."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from porter import codes
from porter.extras import install
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.verify.compile.toolkit import Nvrtc, find_nvrtc

_MESSAGE = re.compile(r"^(.+?)\((\d+)\): (catastrophic error|error|warning)(?: #[\w-]+)?: (.*)$")


@dataclass(frozen=True)
class Program:
    """What NVRTC is given: the main text (its name is for messages), headers by include name, options, expressions."""

    text: str = field(repr=False)
    name: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Sequence[str] = ()
    expressions: Sequence[str] = ()
    cubin: bool = False


@dataclass(frozen=True)
class Compilation:
    """What NVRTC answered. `lowered` maps name expressions to symbols; PTX and cubin are empty when not `ok`."""

    ok: bool
    log: str
    ptx: str = field(default="", repr=False)
    cubin: bytes = field(default=b"", repr=False)
    lowered: Mapping[str, str] = field(default_factory=dict)


def require_nvrtc() -> Nvrtc:
    """The installed NVRTC; raises PorterError (PRT820) that says what to install when there is none."""
    found = find_nvrtc()
    if found is None:
        raise PorterError(
            Diagnostic(
                codes.NO_NVRTC,
                "NVRTC is not installed: the original kernel cannot be compiled to check the port against it",
                help=install("oracle"),
            )
        )
    return found


def compile_program(program: Program, timeout: float = 120.0) -> Compilation:
    """Run NVRTC on a program. Errors in the program are in the answer's log; raises PorterError when NVRTC is missing
    (PRT820), crashes or needs more than `timeout` seconds (PRT822)."""
    nvrtc = require_nvrtc()
    request = {
        "library": str(nvrtc.library),
        "builtins": str(nvrtc.builtins),
        "text": program.text,
        "name": program.name,
        "headers": dict(program.headers),
        "options": [*program.options, *(f"-I{folder}" for folder in nvrtc.includes)],
        "expressions": list(program.expressions),
        "cubin": program.cubin,
    }
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LANG")}
    child = [sys.executable, "-I", "-S", str(Path(__file__).with_name("nvrtc_child.py"))]
    try:
        done = subprocess.run(
            child, input=json.dumps(request), capture_output=True, text=True, timeout=timeout, env=env
        )
    except subprocess.TimeoutExpired:
        raise PorterError(
            Diagnostic(codes.NVRTC_DIED, f"NVRTC did not finish {program.name} in {timeout:g} s")
        ) from None
    if done.returncode:
        code = done.returncode
        what = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        notes = tuple(done.stderr.strip().splitlines()[-5:])
        raise PorterError(Diagnostic(codes.NVRTC_DIED, f"NVRTC died on {program.name} ({what})", notes=notes))
    answer = json.loads(done.stdout)
    if answer["rc"]:
        return Compilation(False, answer["log"])
    cubin = base64.b64decode(answer.get("cubin", ""))
    return Compilation(True, answer["log"], answer["ptx"], cubin, answer["lowered"])


def messages(log: str, code: str = codes.NVRTC_REJECTS) -> list[Diagnostic]:
    """The errors of a log as diagnostics. Line numbers are the original's, as `#line` made them."""
    found = []
    lines = log.splitlines()
    for n, line in enumerate(lines):
        match = _MESSAGE.match(line)
        if match and match.group(3) != "warning":
            notes = []
            for more in lines[n + 1 :]:
                if _MESSAGE.match(more) or re.match(r"\d+ (catastrophic )?errors? detected", more):
                    break
                if more.strip() not in ("", "^"):
                    notes.append(more.strip())
            span = Span(match.group(1), int(match.group(2)))
            found.append(Diagnostic(code, f"NVRTC: {match.group(4)}", span, notes=tuple(notes[:8])))
    return found
