"""Device library calls that the host serves: vprintf (captured) and __assertfail."""

from __future__ import annotations

import re
import struct

import numpy as np

from porter.verify.emulator.decode.program import HostCall, MemoryOperand
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner
from porter.verify.emulator.memory.access import LanesKilled, Resolver, address_getter, fetch

_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t|L)?([diuoxXfFeEgGaAcspn%])")
_GENERIC = MemoryOperand("", None, 0)


class _Reader:
    """Reads one lane's memory through the checked path."""

    def __init__(self, e: Env, step: HostCall):
        self.e, self.step = e, step
        self.readers = {w: Resolver(step.source, _GENERIC, w, False) for w in (1, 4, 8)}

    def read(self, address: int, width: int) -> bytes:
        resolved = self.readers[width](self.e, np.array([address], np.uint64))
        resolved.finish()
        return fetch(self.e, self.step.source, resolved, width).tobytes()[:width]

    def string(self, address: int, limit: int = 4096) -> str:
        out = bytearray()
        while len(out) < limit:
            byte = self.read(address + len(out), 1)
            if byte == b"\0":
                break
            out += byte
        return out.decode("utf-8", "replace")


def format_printf(reader: _Reader, text: str, arguments: int) -> str:
    """C printf with the device's argument buffer: each value aligned to its size, small ones promoted."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at = (at + size - 1) // size * size
        value = reader.read(arguments + at, size)
        at += size
        return value

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(struct.unpack("<i", take(4))[0])
        if precision == "*":
            precision = str(struct.unpack("<i", take(4))[0])
        spec = "%" + flags + (width or "") + ("." + precision if precision is not None else "")
        if kind in "fFeEgGaA":
            value = struct.unpack("<d", take(8))[0]
            if kind in "aA":
                return value.hex()
            return (spec + kind) % value
        if kind == "s":
            pointer = struct.unpack("<Q", take(8))[0]
            return (spec + "s") % (reader.string(pointer) if pointer else "(null)")
        if kind == "p":
            return f"{struct.unpack('<Q', take(8))[0]:#x}"
        if kind == "c":
            return (spec + "c") % chr(struct.unpack("<i", take(4))[0] & 0xFF)
        size = 8 if length in ("l", "ll", "z", "j", "t") else 4
        code = ("<q" if size == 8 else "<i") if kind in "di" else ("<Q" if size == 8 else "<I")
        number = struct.unpack(code, take(size))[0]
        return (spec + ("d" if kind in "diu" else kind)) % number

    return _SPEC.sub(convert, text)


def compile_hostcall(step: HostCall, output: list[str]) -> Runner:
    from porter.verify.emulator.memory.access import deposit

    places = [address_getter(p) for p in step.args]
    resolvers = [Resolver(step.source, p, 8, False) for p in step.args]

    def arguments(e: Env) -> list[np.ndarray]:
        values = []
        for k, (place, resolver) in enumerate(zip(places, resolvers, strict=True)):
            width = 4 if step.name == "__assertfail" and k == 2 else 8
            if width == 4:
                resolver = Resolver(step.source, step.args[k], 4, False)
            resolved = resolver(e, place(e))
            values.append(np.broadcast_to(fetch(e, step.source, resolved, width), (e.n,)).astype(np.uint64))
            resolved.finish()
        return values

    def lane_env(e: Env, k: int) -> Env:
        return e.narrowed(np.arange(e.n) == k)

    if step.name == "vprintf":

        def run(e: Env) -> None:
            text_at, args_at = arguments(e)
            for k in range(e.n):
                reader = _Reader(lane_env(e, k), step)
                output.append(format_printf(reader, reader.string(int(text_at[k])), int(args_at[k])))
            if step.result is not None:
                resolved = Resolver(step.source, step.result, 4, True)(e, address_getter(step.result)(e))
                deposit(e, resolved, 4, np.zeros(1, np.uint32))

        return run

    def assert_failed(e: Env) -> None:
        message_at, file_at, line, function_at, _ = arguments(e)
        reader = _Reader(lane_env(e, 0), step)
        place = f"{reader.string(int(file_at[0]))}:{int(line[0])}: {reader.string(int(function_at[0]))}"
        text = f"{place}: assertion `{reader.string(int(message_at[0]))}` failed"
        e.wave.recorder.add("assert", step.source, e.ids, e.wave.coordinates, text)
        raise LanesKilled(np.array(e.ids))

    return assert_failed
