"""The child process that runs NVRTC once: JSON program on stdin, JSON result on stdout. Imports nothing of porter."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
from typing import Any


def _bytes_of(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)):
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def compile_program(request: dict[str, Any]) -> dict[str, Any]:
    ctypes.CDLL(request["builtins"], mode=ctypes.RTLD_GLOBAL)  # or NVRTC looks for it on the system's library path
    nvrtc = ctypes.CDLL(request["library"])
    program = ctypes.c_void_p()
    headers = request["headers"]
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    main = request["text"].encode()
    rc = nvrtc.nvrtcCreateProgram(ctypes.byref(program), main, request["name"].encode(), len(headers), texts, names)
    for expression in request["expressions"]:
        rc = rc or nvrtc.nvrtcAddNameExpression(program, expression.encode())
    if rc:
        return {"rc": rc, "log": "NVRTC could not create the program"}
    options = request["options"]
    rc = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    )
    result: dict[str, Any] = {
        "rc": rc,
        "log": _bytes_of(nvrtc, program, "ProgramLog").decode(errors="replace").rstrip("\0"),
    }
    if rc:
        return result
    lowered = {}
    for expression in request["expressions"]:
        name = ctypes.c_char_p()
        if not nvrtc.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name)) and name.value:
            lowered[expression] = name.value.decode()
    result["lowered"] = lowered
    result["ptx"] = _bytes_of(nvrtc, program, "PTX").decode(errors="replace").rstrip("\0")
    if request["cubin"]:
        result["cubin"] = base64.b64encode(_bytes_of(nvrtc, program, "CUBIN")).decode()
    return result


def main() -> None:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(compile_program(json.load(sys.stdin)), answer)
    answer.flush()


if __name__ == "__main__":
    main()
