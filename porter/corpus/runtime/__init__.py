"""How CuTeDSL kernels are compiled, cached and launched. Imports cutlass and torch only when one is compiled or run."""

from porter.corpus.runtime.arch import arch_for, arch_of_capability, device_index, sm_count
from porter.corpus.runtime.cache import ArtifactCache, cache_root, digest
from porter.corpus.runtime.checks import HoleReached, aligned, check, hole
from porter.corpus.runtime.cubin import CubinKernel, read_cubin
from porter.corpus.runtime.dsl import Resources
from porter.corpus.runtime.dtypes import DTYPES, DType, cutlass_type, dtype, name_of, torch_type
from porter.corpus.runtime.kernel import Compiled, Kernel, Num, Ptr

__all__ = [
    "DTYPES",
    "ArtifactCache",
    "Compiled",
    "CubinKernel",
    "DType",
    "HoleReached",
    "Kernel",
    "Num",
    "Ptr",
    "Resources",
    "aligned",
    "arch_for",
    "arch_of_capability",
    "cache_root",
    "check",
    "cutlass_type",
    "device_index",
    "digest",
    "dtype",
    "hole",
    "name_of",
    "read_cubin",
    "sm_count",
    "torch_type",
]
