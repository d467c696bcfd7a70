"""Includes that are not there: those the prelude stands in for, and where in the source's own tree the others are."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from porter import codes
from porter.frontend.parse.hermetic import ParseOptions, project_root
from porter.model import Diagnostic, PorterError
from porter.plain_files import is_plain, read_plain
from porter.source import Source, Span

# Headers whose content the prelude already gives (or that hold nothing a kernel needs): included as empty files.
KNOWN = frozenset(  # words are easier to keep than a hundred quoted strings
    """
    algorithm any array atomic bit bitset cassert cctype cerrno cfloat chrono cinttypes climits cmath complex
    concepts condition_variable cstdarg cstddef cstdint cstdio cstdlib cstring ctime deque exception filesystem
    fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator limits list map memory
    mutex new numeric optional ostream queue random ratio regex set shared_mutex span sstream stack stdexcept
    streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector assert.h ctype.h errno.h fcntl.h float.h inttypes.h limits.h
    malloc.h math.h memory.h omp.h pthread.h signal.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    time.h unistd.h sys/mman.h sys/stat.h sys/time.h sys/types.h sys/ioctl.h x86intrin.h immintrin.h numbers ranges
    charconv strings.h cuda.h cuda_awbarrier.h cuda_awbarrier_primitives.h cuda_bf16.h cuda_bf16.hpp
    cuda_device_runtime_api.h cuda_fp16.h cuda_fp16.hpp cuda_fp4.h cuda_fp6.h cuda_fp8.h cuda_fp8.hpp
    cuda_occupancy.h cuda_pipeline.h cuda_pipeline_primitives.h cuda_profiler_api.h cuda_runtime.h
    cuda_runtime_api.h cuda_texture_types.h cudaTypedefs.h device_functions.h device_atomic_functions.h
    device_launch_parameters.h device_types.h driver_functions.h driver_types.h host_defines.h library_types.h
    math_constants.h math_functions.h mma.h sm_20_intrinsics.h sm_30_intrinsics.h sm_35_intrinsics.h surface_types.h
    texture_types.h vector_functions.h vector_types.h crt/mma.h cooperative_groups.h cooperative_groups/reduce.h
    cooperative_groups/scan.h cooperative_groups/memcpy_async.h cooperative_groups/details/partitioning.h
    cublas_v2.h cublas_api.h cublasLt.h cudnn.h curand.h curand_kernel.h curand_philox4x32_x.h cusparse.h
    cusolverDn.h nccl.h nvml.h nvrtc.h cufft.h nvToolsExt.h dlpack/dlpack.h sys/sysinfo.h sys/wait.h dirent.h
    arpa/inet.h netinet/in.h cuComplex.h locale sys/syscall.h sanitizer/asan_interface.h ext/numeric iso646.h
    crt/host_defines.h sys/socket.h netdb.h direct.h io.h windows.h ciso646 cxxabi.h dlfcn.h execinfo.h
    nvtx3/nvToolsExt.h version compare source_location coroutine barrier latch semaphore stop_token format expected
    memory_resource execution forward_list cfenv csignal csetjmp clocale cwchar cwctype
    """.split()  # noqa: SIM905
)
KNOWN_FOLDERS = (
    "ATen/", "c10/", "torch/", "caffe2/", "pybind11/", "cub/", "thrust/", "nvtx3/", "tvm/ffi/",
)  # fmt: skip


def is_known(include: str) -> bool:
    """True when the prelude stands in for this include, so that its absence is no news."""
    if include in KNOWN:
        return True
    # Project folders may carry these names too; the real headers of cuda/ and nv/ have no ending.
    if include.startswith(("cuda/", "nv/")):
        return "." not in include
    return include.startswith(KNOWN_FOLDERS)


_HEADER_ENDINGS = (".h", ".hpp", ".cuh", ".hh", ".inl", ".cu", ".inc")
_SKIP = {".git", "node_modules", "build", "__pycache__", ".venv", "venv", "site-packages"}
_MAX_FILES = 60_000
_MAX_FOLDERS = 20_000
_MAX_UP = 8
_MAX_SCANNED = 400


@lru_cache(maxsize=8)
def _headers_by_name(root: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    count = 0
    for visited, (folder, subfolders, files) in enumerate(os.walk(root)):
        subfolders[:] = sorted(d for d in subfolders if d not in _SKIP)
        for name in files:
            if name.endswith(_HEADER_ENDINGS):
                found.setdefault(name, []).append(os.path.join(folder, name))
                count += 1
        if count > _MAX_FILES or visited > _MAX_FOLDERS:
            break
    return {k: tuple(v) for k, v in found.items()}


def find_include(include: str, includer: str, source: Source) -> str | None:
    """The file in the source's tree whose path ends with `include` (../ dropped), nearest to the includer first."""
    parts = [p for p in include.split("/") if p not in ("..", ".", "")]
    if not parts:
        return None
    start = Path(includer).resolve().parent if os.path.isabs(includer) else source.path.resolve().parent
    for folder in [start, *start.parents][:_MAX_UP]:
        for sub in ("", "include", "csrc", "src"):
            candidate = folder / sub / Path(*parts)
            if len(folder.parts) > 2 and candidate.is_file():
                return str(candidate)
    tail = "/" + "/".join(parts)
    matches = [p for p in _headers_by_name(project_root(source.path)).get(parts[-1], ()) if p.endswith(tail)]
    if not matches:
        return None
    here = str(start)
    return max(matches, key=lambda p: (len(os.path.commonpath([p, here])), -len(p), p))


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def _is_there(path: Path) -> bool:
    """Whether clang would open it: a folder it passes over."""
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False


def _not_plain(includer: Path, text: str, name: str, found: Path) -> Diagnostic:
    line = text.count("\n", 0, text.find(name)) + 1
    message = f"include '{name}' is not a regular file: {found}"
    help_ = "a pipe or a device may never end: include a regular file"
    return Diagnostic(codes.INCLUDE_NOT_FOUND, message, Span(str(includer), line), help=help_)


def scan_includes(source: Source, options: ParseOptions) -> dict[str, str]:
    """Stand-ins for the includes that clang would not find, by following #include lines through the source's tree.

    Text only, conditions ignored: a stand-in that nothing asks for costs nothing, a missed one costs another parse.
    Includes that are found nowhere get an empty file; so does what the prelude declares and a folder of -I outside the
    project has as well (CUDA's own headers, PyTorch's), by its absolute path: both at once would clash, and such a tree
    is seldom whole. Raises PorterError PRT003 for a pipe or a device.
    """
    root = project_root(source.path)
    stand_ins: dict[str, str] = {}
    folders = [Path(d) for d in options.include_dirs]
    queue: list[tuple[Path, str]] = [(source.path.resolve(), source.text)]
    seen = {queue[0][0]}

    def visit(path: Path) -> None:
        if path not in seen and len(seen) < _MAX_SCANNED:
            seen.add(path)
            try:
                queue.append((path, read_plain(path).decode("utf-8", "replace")))
            except OSError:
                return

    while queue:
        includer, text = queue.pop()
        for quote, name in _INCLUDE.findall(text):
            places = [includer.parent, *folders] if quote == '"' else folders
            if os.path.isabs(name):
                places = [Path("/")]
            given = next((p / name for p in places if _is_there(p / name)), None)
            if given is not None and not is_plain(given):
                raise PorterError(_not_plain(includer, text, name, given))
            if given is not None and is_known(name) and not given.resolve().is_relative_to(root):
                stand_ins[os.path.abspath(given)] = ""
            elif given is not None:
                visit(given.resolve())
            elif name not in stand_ins:
                target = None if is_known(name) else find_include(name, str(includer), source)
                stand_ins[name] = f'#include "{target}"\n' if target else ""
                if target:
                    visit(Path(target).resolve())
    return stand_ins
