"""What a port may name: modules, the names of each, builtins, methods. Everything that is not listed is refused."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import porter.corpus
from porter.corpus.library import renamed_in
from porter.syntax import module_tree


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


# Parts of the DSL that look at the machine, write files, load libraries or call host functions.
_DSL_REFUSED = words(
    "compile compile_to extern ffi export viz testing LinkLibraries load_module find_runtime_libraries profiling"
    " distributed print_latex print_latex_tv register_jit_arg_adapter register_library_unload_callback"
    " unregister_library_unload_callback JitArgAdapterRegistry CACHE_FILE base_dsl cutlass_dsl jax runtime cuda"
    " tensor_utils ir llvm nvvm arith scf builtin gpu extract_mlir_values new_from_mlir_values"
)
_TYPES = words(
    "BFloat16 Boolean Float Float16 Float32 Float4E2M1FN Float64 Float8E4M3 Float8E4M3B11FNUZ Float8E4M3FN Float8E5M2"
    " Float8E8M0FNU Int4 Int8 Int16 Int32 Int64 Int128 Integer Numeric TFloat32 Uint8 Uint16 Uint32 Uint64 Uint128"
)
TORCH_NAMES = words(
    "Tensor dtype device Size empty empty_like empty_strided zeros zeros_like full full_like cuda library Tag"
    " bfloat16 float16 float32 float64 half float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
    " float8_e4m3fn float8_e5m2 float8_e8m0fnu float4_e2m1fn_x2 iinfo finfo get_device_module compiler _check"
    " check_is_size promote_types result_type"
)
# None: every public name of the module (what it is is looked up by the check `names`).
MODULES: dict[str, frozenset[str] | None] = {
    "cutlass": _TYPES | words(
        "AddressSpace Array Constexpr Layout LoopUnroll Pointer Shape Stride Swizzle Tensor Tile Tiler Vector all_ and_"
        " any_ as_numeric const_expr dynamic_expr full full_like inttoptr is_integer max min not_ or_ range"
        " range_constexpr select_ cute pipeline utils"
    ),
    "cutlass.cute": None,
    "cutlass.cute.arch": None,
    "cutlass.cute.math": None,
    "cutlass.cute.nvgpu": None,
    "cutlass.cute.nvgpu.common": None,
    "cutlass.cute.nvgpu.cpasync": None,
    "cutlass.cute.nvgpu.tcgen05": None,
    "cutlass.cute.nvgpu.warp": None,
    "cutlass.cute.nvgpu.warpgroup": None,
    "cutlass.cute.runtime": words("make_ptr nullptr make_fake_stream make_fake_tensor make_fake_compact_tensor"),
    "cutlass.cute.typing": None,
    "cutlass.cute.testing": words("assert_"),
    "cutlass._mlir": words("ir dialects"),  # what functions with `dsl_user_op` make device code of
    "cutlass._mlir.ir": words(
        "Attribute BF16Type BoolAttr DenseElementsAttr DenseI32ArrayAttr F16Type F32Type F64Type FloatAttr IntegerAttr"
        " IntegerType StringAttr Type TypeAttr UnitAttr Value VectorType"
    ),
    "cutlass._mlir.dialects": words("llvm nvvm arith vector math builtin"),
    "cutlass._mlir.dialects.builtin": words("unrealized_conversion_cast"),  # between CuTe's pointers and LLVM's
    "cutlass._mlir.dialects.llvm": None,
    "cutlass._mlir.dialects.nvvm": None,
    "cutlass._mlir.dialects.arith": None,
    "cutlass._mlir.dialects.vector": None,
    "cutlass._mlir.dialects.math": None,
    "cutlass.cutlass_dsl": words("dsl_user_op"),
    "cutlass.pipeline": None,
    "cutlass.utils": None,
    "porter.corpus": words("lib runtime"),
    "porter.corpus.lib": None,  # and only what it defines itself: `library_names`
    "porter.corpus.runtime": words(
        "Kernel Ptr Num check aligned name_of torch_type cutlass_type dtype DType sm_count hole HoleReached"
        " device_index arch_for arch_of_capability"
    ),
    "torch": TORCH_NAMES,
    "torch.cuda": words(
        "current_stream current_device device Stream get_device_properties get_device_capability is_available"
        " is_current_stream_capturing"
    ),
    "torch.library": words("custom_op register_fake"),
    "torch.compiler": words("is_compiling"),
    "math": None,
    "typing": words(
        "Any Callable Final Generic Literal NamedTuple Optional Protocol Sequence TYPE_CHECKING Tuple Type TypeAlias"
        " TypeVar Union"
    ),
    "collections.abc": None,
    "dataclasses": words("dataclass field replace"),
    "enum": words("Enum IntEnum IntFlag auto"),
    "functools": words("partial reduce"),
    "operator": words(
        "add sub mul truediv floordiv mod neg and_ or_ xor invert lshift rshift lt le eq ne ge gt not_ is_ is_not"
    ),
    "cuda.bindings.driver": words("CUstream"),
    "__future__": words("annotations"),
}  # fmt: skip

BUILTINS = words(
    "range len min max abs int float bool str tuple list dict set frozenset zip enumerate isinstance issubclass sum any"
    " all round divmod pow sorted reversed slice ord chr map filter complex print repr hex type hash object iter next"
    " property staticmethod classmethod super ValueError TypeError RuntimeError NotImplementedError AssertionError"
    " IndexError KeyError ZeroDivisionError OverflowError NotImplemented Ellipsis getattr hasattr"
)
DECORATORS = words(
    "dsl_user_op cute.kernel cute.jit cute.struct cute.native_struct cutlass.cute.kernel cutlass.cute.jit"
    " cutlass.cute.struct dataclass dataclasses.dataclass staticmethod classmethod property"
    " torch.library.custom_op custom_op torch.library.register_fake register_fake"
)
BASES = words("object NamedTuple typing.NamedTuple Protocol typing.Protocol Enum enum.Enum IntEnum enum.IntEnum")
DUNDER_METHODS = words(
    "__init__ __post_init__ __call__ __repr__ __str__ __len__ __getitem__ __setitem__ __iter__ __eq__ __ne__ __add__"
    " __sub__ __mul__ __neg__ __extract_mlir_values__ __new_from_mlir_values__ __get_mlir_types__ __c_pointers__"
)
# Ways from a harmless object to frames, globals, classes or the format language, which reads attributes.
ESCAPES = words(
    "f_back f_builtins f_code f_globals f_locals gi_code gi_frame gi_yieldfrom cr_await cr_code cr_frame ag_frame"
    " tb_frame tb_next func_globals func_code mro format format_map with_traceback"
)
# Names of modules that a chain of attributes could lead to from an object that holds one.
GATES = words(
    "os posix sys subprocess shutil socket ctypes importlib builtins pathlib io tempfile inspect types threading"
    " multiprocessing asyncio concurrent pickle marshal code codeop runpy pty gc resource mmap fcntl platform site"
    " sysconfig urllib http ssl atexit logging warnings traceback linecache tracemalloc cffi"
)
# Methods of a tensor that look at it or make another view of the same memory.
TENSOR_METHODS = words(
    "data_ptr size stride dim numel element_size is_contiguous view reshape flatten unflatten squeeze unsqueeze select"
    " narrow expand new_empty new_zeros new_full untyped_storage storage_offset get_device record_stream ndimension"
    " movedim permute transpose zero_ fill_ as_strided unbind chunk split is_floating_point nelement"
)
# What host code may call on other values: texts, tables, lists of its own, kernels.
HOST_METHODS = TENSOR_METHODS | words(
    "launch prepare compile register_fake get items keys values append extend index count join startswith endswith"
    " bytes name lower upper removeprefix removesuffix split strip bit_length is_integer as_integer_ratio __init__"
)
# What host code may give a tensor to, beside `runtime`, KERNEL, torch's listed names and functions of the port.
TAKES_TENSORS = words("len isinstance tuple list dict zip enumerate repr print hasattr getattr")
# Attributes of a tensor whose value is no tensor.
SIZES = words(
    "shape dtype device ndim layout is_cuda itemsize nbytes data_ptr size stride dim numel element_size is_contiguous"
    " storage_offset get_device ndimension is_floating_point nelement requires_grad"
)


@cache
def library_names() -> frozenset[str]:
    """The public names that the modules of porter.corpus.lib define themselves, read from their text, and the names
    that these had in earlier versions."""
    found = set(renamed_in("porter.corpus.lib"))
    for file in (Path(porter.corpus.__file__).parent / "lib").rglob("*.py"):
        for node in module_tree(file.read_bytes()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return frozenset(n for n in found if not n.startswith("_"))


def may_name(module: str, name: str) -> bool:
    """Whether a port may use `name` of a module of the list. Submodules of the list count as names."""
    if f"{module}.{name}" in MODULES:
        return True
    names = MODULES[module]
    if module == "porter.corpus.lib":
        return name in library_names()
    if names is not None:
        return name in names
    refused = _DSL_REFUSED if module.startswith("cutlass") else frozenset()
    return not name.startswith("_") and name not in refused


def is_module(path: str) -> bool:
    """Whether this dotted path is a module that a port may import from."""
    return path in MODULES
