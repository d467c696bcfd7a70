"""Compile the runtime of the emulator's compiled code from C: `python -m tools.emulator_runtime`.

Writes `constants.h` and `runtime.ll` in porter/verify/emulator/llvm/runtime. `--check` writes nothing and fails where
they would change; without clang it compares digests only. The IR is kept free of what depends on a target or on clang's
release, so that every LLVM which llvmlite has parses it and compiles it for the CPU it is on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from porter.verify.emulator.llvm import abi

FOLDER = Path(abi.__file__).with_name("runtime")
CONSTANTS, COMPILED = FOLDER / "constants.h", FOLDER / "runtime.ll"
RELEASE = "19.1.7"  # of clang; Debian and Ubuntu: package clang-19
FLAGS = (
    "--target=x86_64-unknown-linux-gnu", "-std=c17", "-ffreestanding", "-O2", "-Wall", "-Wextra", "-Werror",
    "-Wno-psabi",  # vectors are passed between functions of this unit only
    # loops are short, and how wide vectors are is for the CPU at hand to say
    "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops",
    "-fno-strict-aliasing", "-ffp-contract=off", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-pic",
)  # fmt: skip

# of parameters, results and functions; behind inlining they say nothing that code generation needs
_ATTRIBUTES = re.compile(
    r" (?:noundef|nocapture|readonly|readnone|writeonly|nonnull|noalias|returned|zeroext|signext|dso_local|unnamed_addr"
    r"|local_unnamed_addr|nounwind|range\(.*?\)|initializes\(\(.*?\)\)|dereferenceable(?:_or_null)?\(\d+\)|#\d+)"
    r"(?=[ ,){]|$)"
)
_DROPPED = re.compile(
    r"; ModuleID|; Function Attrs|source_filename|target |attributes #|!"
    r"|.*@llvm\.(?:lifetime|assume|experimental\.noalias)"
)
_METADATA = re.compile(r", !(?:[\w.]+) !\d+")


def digest() -> str:
    """Of all that the compiled text depends on."""
    found = hashlib.blake2b(digest_size=16)
    parts = [RELEASE, *FLAGS, _ATTRIBUTES.pattern, _DROPPED.pattern, _METADATA.pattern, abi.header()]
    parts += [p.name + "\0" + p.read_text(encoding="utf-8") for p in sorted(FOLDER.glob("*.[ch]")) if p != CONSTANTS]
    for part in parts:
        found.update(part.encode() + b"\0")
    return found.hexdigest()


def clang() -> tuple[str | None, str]:
    """clang of the right release, or None and why there is none."""
    for name in filter(None, (os.environ.get("CLANG"), f"clang-{RELEASE.partition('.')[0]}", "clang")):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        if f"version {RELEASE}" in version:
            return path, ""
    return None, f"no clang {RELEASE} here (package clang-{RELEASE.partition('.')[0]}; $CLANG may name it)"


def neutral(text: str) -> str:
    """clang's IR without what belongs to a target or a release of LLVM."""
    lines = []
    for line in text.splitlines():
        if _DROPPED.match(line):
            continue
        line = _METADATA.sub("", line)
        while line != (shorter := _ATTRIBUTES.sub("", line)):
            line = shorter
        line = re.sub(r"\s+; preds = .*", "", line).rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip() + "\n"


def compiled(path: str) -> str:
    """The text of runtime.ll. Raises subprocess.CalledProcessError."""
    command = [path, *FLAGS, "-S", "-emit-llvm", "-o", "-", "runtime.c"]
    text = subprocess.run(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True, check=True).stdout
    head = f"; Made by `python -m tools.emulator_runtime` with clang {RELEASE} from the C beside it.\n; {digest()}\n"
    return head + neutral(text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.emulator_runtime", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file is not current")
    args = parser.parse_args()
    path, reason = clang()
    if args.check:
        current = CONSTANTS.read_text() == abi.header() and f"; {digest()}\n" in COMPILED.read_text()
        if path is not None:
            current = current and COMPILED.read_text() == compiled(path)
        print("runtime.ll is current" if current else "not current: run `python -m tools.emulator_runtime`")
        return 0 if current else 1
    CONSTANTS.write_text(abi.header())
    if path is None:
        print(reason, file=sys.stderr)
        return 2
    COMPILED.write_text(compiled(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
