"""The bundle's manifest: kernels, instances and the launches to run, as plain data. Reading it needs numpy alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from porter.case import expressions
from porter.case.expressions import Value
from porter.case.reader import Case, LaunchShape, Point, load_case
from porter.corpus.runtime import read_cubin
from porter.cxx.types import pointee
from porter.model import Instance, KernelInfo, KernelParam, TemplateParam
from porter.verify.launches.buffers import storage
from porter.verify.launches.trials import Trial
from porter.verify.original.compiled import OriginalBuild

SCHEMA = 2
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: `dtype` is "ptr" or the scalar's name; offset and size in bytes, as the cubin has them."""

    name: str
    type: str
    dtype: str
    offset: int
    size: int


@dataclass(frozen=True)
class Launch:
    """One launch to run. `route`: "function" when the port's function chooses this instance by itself, "direct" when
    the port's kernel object has to be told, "empty" when the grid has no blocks."""

    sizes: dict[str, int]
    scalars: dict[str, int | float | bool]
    shapes: dict[str, list[int]]
    strides: dict[str, list[int]]
    null: list[str]
    scenario: str
    misaligned: list[str]
    route: str
    grid: list[int]
    block: list[int]
    smem: int
    cooperative: bool = False
    far: bool = False

    @property
    def point(self) -> Point:
        def rows(d: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
            return {k: tuple(v) for k, v in d.items()}

        return Point(dict(self.sizes), dict(self.scalars), rows(self.shapes), rows(self.strides), frozenset(self.null))

    @property
    def shape(self) -> LaunchShape:
        g, b = self.grid, self.block
        return LaunchShape((g[0], g[1], g[2]), (b[0], b[1], b[2]), self.smem, self.cooperative)

    def trial(self, seed: int) -> Trial:
        return Trial(self.point, self.scenario, seed, frozenset(self.misaligned), self.far)


@dataclass(frozen=True)
class BufferFacts:
    """What an instance makes of a buffer: for people and for the tests of the manifest; the case file decides."""

    name: str
    dtype: str
    role: str
    compare: str


@dataclass(frozen=True)
class InstanceFacts:
    """One specialisation of original and port. `approximations` are those of the original's and the port's PTX."""

    args: list[str]
    values: dict[str, str | int | bool]
    entry: str
    parameters: list[Parameter]
    buffers: list[BufferFacts]
    approximations: list[list[str]]
    reduces: bool
    launches: list[Launch]

    def __str__(self) -> str:
        return str(Instance(tuple(self.args)))


@dataclass(frozen=True)
class KernelFacts:
    """One kernel. Files are relative to the bundle. `arguments`: the port function's, and what each stands for."""

    name: str
    kernel: str
    function: str
    arguments: dict[str, str]
    port: str
    case: str
    cubin: str
    ptx: str
    template: list[dict[str, str]]  # of the kernel: name, kind, type and default of each parameter
    toolchain: str
    sha256: dict[str, str]
    instances: list[InstanceFacts]

    def info(self, n: int) -> KernelInfo:
        """What the verifier needs to know of the kernel's parameters."""
        params = tuple(KernelParam(p.name, p.type) for p in self.instances[n].parameters)
        template = tuple(TemplateParam(**p) for p in self.template)
        return KernelInfo(self.kernel, self.kernel, params, template)


@dataclass(frozen=True)
class Bundle:
    """A bundle folder that was read. `empty` is a cubin with `empty_kernel`, which does nothing."""

    folder: Path
    made: str
    commit: str
    arch: str
    versions: dict[str, str]
    seed: int
    empty: str
    kernels: list[KernelFacts]
    style: str = "pointer"  # of the ports

    def kernel(self, name: str) -> KernelFacts:
        return next(k for k in self.kernels if k.name == name)

    def case(self, kernel: KernelFacts) -> Case:
        return load_case(self.folder / kernel.case)

    def originals(self, kernel: KernelFacts) -> list[OriginalBuild]:
        """The compiled originals of a kernel's instances, as `build_original` gave them."""
        ptx, cubin = _content(self.folder / kernel.ptx).decode(), _content(self.folder / kernel.cubin)
        used = read_cubin(cubin)
        found = []
        for i in kernel.instances:
            numbers = (used[i.entry].registers, used[i.entry].local_bytes, used[i.entry].shared_bytes)
            found.append(OriginalBuild(Instance(tuple(i.args)), ptx, cubin, i.entry, *numbers, "", 0.0))
        return found


def _content(path: Path) -> bytes:
    """The bytes of a file, unpacked where its name ends in .gz."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def write_bundle(bundle: Bundle) -> None:
    """Write the manifest into the bundle's folder."""
    data = {"schema": SCHEMA, **asdict(bundle)}
    del data["folder"]
    (bundle.folder / MANIFEST).write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle. Raises FileNotFoundError when there is none, ValueError for another schema."""
    data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    if data.pop("schema") != SCHEMA:
        raise ValueError(f"{folder / MANIFEST} has another schema; make the bundle again")
    kernels = [_kernel(k) for k in data.pop("kernels")]
    return Bundle(folder=folder, kernels=kernels, **data)


def _kernel(data: dict[str, Any]) -> KernelFacts:
    return KernelFacts(**{**data, "instances": [_instance(i) for i in data["instances"]]})


def _instance(data: dict[str, Any]) -> InstanceFacts:
    parameters = [Parameter(**p) for p in data["parameters"]]
    buffers = [BufferFacts(**b) for b in data["buffers"]]
    return InstanceFacts(
        **{
            **data,
            "parameters": parameters,
            "buffers": buffers,
            "launches": [Launch(**launch) for launch in data["launches"]],
        }
    )


def chosen_instance(
    case: Case, values: Sequence[Mapping[str, Value]], n: int, point: Point, misaligned: frozenset[str]
) -> int | None:
    """Which instance the port's function takes for tensors of instance `n`'s dtypes at a point; None: it refuses.

    `values` are the template values of all instances. The first wins whose dtypes are these, whose values named like a
    size have that size, and whose `when` holds; an address is a multiple of 256 bytes, or one element more.
    """
    dtypes = [b.dtype_at(values[n]) for b in case.buffers if not b.optional]

    def aligned(buffer: str, nbytes: int) -> bool:
        if buffer not in misaligned or buffer in point.null or 0 in point.shapes[buffer]:
            return True
        itemsize = storage(case.buffer(buffer).dtype_at(values[n]))().itemsize
        return itemsize % nbytes == 0

    for j, (instance, theirs) in enumerate(zip(case.instances, values, strict=True)):
        same = [b.dtype_at(theirs) for b in case.buffers if not b.optional] == dtypes
        sized = all(point.sizes[k] == v for k, v in theirs.items() if k in case.base_sizes)
        if (
            same
            and sized
            and (not instance.when or expressions.evaluate(instance.when, point.names(theirs), aligned=aligned))
        ):
            return j
    return None


def is_pointer(type_: str) -> bool:
    return pointee(type_) is not None
