"""Compiles a Program with llvmlite (machine code cached by content) and runs blocks of a grid with it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from porter.verify.emulator.checks.ordering import GPU
from porter.verify.emulator.checks.races import Shadow, granule_of, lazily_zeroed
from porter.verify.emulator.checks.violations import Checks
from porter.verify.emulator.decode.ir import Module
from porter.verify.emulator.decode.program import Program
from porter.verify.emulator.llvm import abi, runtime
from porter.verify.emulator.llvm.emit import Compiled, Emitter, Guards
from porter.verify.emulator.llvm.machine_code import cache_folder, generate, host, write_atomically
from porter.verify.emulator.llvm.records import fill_foreign, renumber
from porter.verify.emulator.llvm.text import Refused
from porter.verify.emulator.machine.wave import Geometry
from porter.verify.emulator.memory.buffers import AddressSpace, MemoryRegion
from porter.verify.emulator.memory.layout import SHARED_WINDOW

SLICE = 64  # blocks that run before Python looks for Ctrl-C, at first


class CompiledEntry:
    """Machine code of one entry. Keeps its engine alive."""

    def __init__(self, engine: Any, address: int, facts: Compiled, cached: bool):
        self.engine, self.facts, self.cached = engine, facts, cached
        self.run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)


@lru_cache(maxsize=1)
def _sources() -> bytes:
    """A digest of this package: compiled code belongs to the version that made it."""
    digest = hashlib.blake2b(runtime.text().encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def guards_of(checks: Checks, program: Program) -> Guards:
    """What compiled code has to look at."""
    granules = [
        granule_of(program, space).bit_length() - 1 if wanted else None
        for space, wanted in (("shared", checks.shared_races), ("global", checks.global_races))
    ]
    return Guards(checks.uninitialised, *granules)


_FILE = re.compile(r"^\s*\.file\s.*$", re.M)  # code does not depend on the folder of its source


def key_of(module: Module, program: Program, guards: Guards) -> str:
    digest = hashlib.blake2b(_sources(), digest_size=20)
    for part in (host().key, str(guards), program.entry, _FILE.sub("", module.text)):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def is_cached(module: Module, program: Program, guards: Guards) -> bool:
    return ("llvm", program.entry, guards) in module.cache or (
        cache_folder() / (key_of(module, program, guards) + ".o")
    ).exists()


def compile_program(module: Module, program: Program, guards: Guards) -> CompiledEntry:
    """The kernel of an entry, from memory, from the cache folder, or compiled now. Raises Refused."""
    kept = ("llvm", program.entry, guards)
    found = module.cache.get(kept)
    if isinstance(found, Refused):
        raise found
    if found is not None:
        return found  # type: ignore[return-value]
    try:
        kernel = _load(module, program, guards)
    except Refused as refusal:
        module.cache[kept] = refusal
        raise
    module.cache[kept] = kernel
    return kernel


def _load(module: Module, program: Program, guards: Guards) -> CompiledEntry:
    import llvmlite.binding as llvm

    target = host().machine(opt=0)
    path = cache_folder() / (key_of(module, program, guards) + ".o")
    facts_path = path.with_suffix(".json")
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, target)
    try:
        code = path.read_bytes()
        facts = Compiled("", **json.loads(facts_path.read_text()))
        cached = True
    except (OSError, ValueError, TypeError):
        compiled = Emitter(program, host().lanes, guards).module()
        code = generate(compiled.text, target, simplify=True)
        facts = Compiled("", compiled.warp_stride, compiled.sites, compiled.segments)
        words = {"warp_stride": facts.warp_stride, "sites": facts.sites, "segments": facts.segments}
        write_atomically(path, code)
        write_atomically(facts_path, json.dumps(words).encode())
        cached = False
    for part in (code, runtime.machine_code()):
        engine.add_object_file(llvm.ObjectFileRef.from_data(part))
    engine.finalize_object()
    return CompiledEntry(engine, engine.get_function_address("run"), facts, cached)


class Machine:
    """Memory and context for running blocks of one launch with a Kernel."""

    def __init__(
        self, kernel: CompiledEntry, geometry: Geometry, params: np.ndarray, space: AddressSpace, guards: Guards,
        seen: dict[object, object], limit: int,
    ):  # fmt: skip
        """`limit`: how much work (see Budget) may be done."""
        g, track = geometry, guards.track
        self.kernel, self.geometry = kernel, geometry
        facts = kernel.facts
        shared = max(g.shared_size, 1)
        local = max(g.padded * g.local_stride, 1)
        self.shared, self.local = np.zeros(shared, np.uint8), np.zeros(local, np.uint8)
        self.shared_shadow = np.zeros(shared if track else 1, np.uint8)
        self.local_shadow = np.zeros(local if track else 1, np.uint8)
        self.warp_memory = _aligned(g.warps * facts.warp_stride)
        self.counts = np.zeros(facts.segments, np.int64)
        self.sites = np.zeros(max(facts.sites, 1) * abi.REGION_WORDS, np.int64)
        self.scratch = _aligned(4096)
        self.order = np.zeros(1, np.int64)
        thread = np.arange(g.padded)
        self.alive = np.packbits(thread < g.block_threads, bitorder="little").view(np.uint32).copy()
        x, y = g.block[0], g.block[1]
        self.tids = [t.astype(np.uint32) for t in (thread % x, thread // x % y, thread // (x * y))]
        self.params = params if params.size else np.zeros(1, np.uint8)
        window = MemoryRegion(
            "shared", "shared", SHARED_WINDOW, self.shared[: g.shared_size], self.shared_shadow if track else None
        )
        regions = [window, *space.regions]
        self.records: list[np.ndarray] = []  # of every region: writes, then reads
        self.table = np.array([[*_row(r), *self._records(r, guards, seen)] for r in regions], np.int64).reshape(-1)
        self.keep = (regions, params)
        words = np.zeros(len(abi.CONTEXT), np.int64)
        values: dict[str, int] = {
            "regions": _address(self.table),
            "region_count": len(regions),
            "params": _address(self.params),
            "params_size": params.size,
            "smem": _address(self.shared),
            "smem_size": g.shared_size,
            "smem_shadow": _address(self.shared_shadow) if track else 0,
            "local": _address(self.local),
            "local_shadow": _address(self.local_shadow) if track else 0,
            "local_stride": g.local_stride,
            "local_bytes": g.local_stride,
            "warp_memory": _address(self.warp_memory),
            "warps": g.warps,
            "warp_stride": facts.warp_stride,
            "counts": _address(self.counts),
            "sites": _address(self.sites),
            "alive": _address(self.alive),
            "dynamic_smem": g.dynamic_shared,
            "scratch": _address(self.scratch),
            "races": guards.races,
            "epoch0": 2,
            "fuel": limit,
        }
        for k, name in enumerate(("writes", "to_reads", "form")):
            values[f"smem_records.{name}"] = int(self.table[abi.RACE_WORD + k])
        for k, axis in enumerate("xyz"):
            values[f"tid_{axis}"] = _address(self.tids[k])
            values[f"ntid_{axis}"], values[f"nctaid_{axis}"] = g.block[k], g.grid[k]
        for name, value in values.items():
            words[abi.SLOT[name]] = value
        self.words = words

    def _records(self, region: MemoryRegion, guards: Guards, seen: dict[object, object]) -> tuple[int, int, int]:
        """Records for the race check of a region, and the three words that tell of them.

        `seen`: what the interpreter remembers of blocks that it has run.
        """
        shared = region.space == "shared"
        shift = guards.shared if shared else guards.global_
        if shift is None or not region.size or not region.writable:
            return 0, 0, 0
        granules = (-(-region.size >> shift) + 15) // 8 * 8
        records = lazily_zeroed(2 * granules, np.int32)
        self.records.append(records)
        earlier = None if shared else seen.get(region.base)
        if isinstance(earlier, Shadow):
            n = earlier.writer.size
            fill_foreign(records[:n], [earlier.writer], earlier.write_strong, GPU)
            readers = [earlier.reader, earlier.other_reader]
            fill_foreign(records[granules : granules + n], readers, earlier.read_strong, GPU)
        return _address(records), 4 * granules, shift | (abi.SHARED_FORM if shared else 0)

    def run(self, blocks: np.ndarray) -> int:
        """Runs blocks (linear numbers) in order. Returns how many were completed: fewer than all means a bail-out."""
        self.order = np.ascontiguousarray(blocks, np.int64)
        self.words[abi.SLOT["order"]] = _address(self.order)
        done, step = 0, SLICE
        while done < blocks.size:
            end, started = min(done + step, blocks.size), time.perf_counter()
            done = int(self.kernel.run(_address(self.words), done, end))
            if time.perf_counter() - started < 0.1:
                step *= 2
            if not self.words[abi.SLOT["renumber"]]:
                if done < end:
                    return done
                continue
            self.words[abi.SLOT["renumber"]], self.words[abi.SLOT["epoch0"]] = 0, 2
            for records in self.records:
                renumber(records)
            if self.words[abi.SLOT["smem_records.writes"]]:
                self.records[0][:] = 0
        return done

    @property
    def crossed(self) -> int:
        return int(self.words[abi.SLOT["crossed"]])


def _row(region: MemoryRegion) -> list[int]:
    host = region.data.ctypes.data
    shadow = region.shadow.ctypes.data - region.base if region.shadow is not None else 0
    return [region.base, region.size, host - region.base, shadow, int(region.writable)]


def _address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def _aligned(size: int) -> np.ndarray:
    block = np.zeros(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size]
