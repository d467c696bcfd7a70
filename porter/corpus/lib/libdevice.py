"""Functions of libdevice, the math library that nvcc links into device code: the same instructions as in the original.

`libdevice("norm3df", Float32, x, y, z)` is CUDA's `norm3df(x, y, z)`; the call is inlined.
"""

from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op


@dsl_user_op
def libdevice(name, result, *args, loc=None, ip=None):
    """libdevice's `__nv_<name>`, which gives a `result` (a CuTeDSL type) for values of the types that it takes.

    A name that libdevice lacks, and arguments of other types, are errors of the compilation.
    """
    values = [a.ir_value(loc=loc, ip=ip) for a in args]
    return result(_called(name, result, values, loc, ip))


@dsl_user_op
def libdevice_pair(name, results, *args, loc=None, ip=None):
    """Both results of a function that stores the second, or both, through pointers: `frexpf` gives (fraction,
    exponent), `modff` (fraction, whole part), `remquof` (remainder, quotient), `sincospif` (sine, cosine)."""
    returned, stored = (None, results) if name.startswith("sincos") else (results[0], results[1:])
    values = [a.ir_value(loc=loc, ip=ip) for a in args]
    word = ir.IntegerType.get_signless(32)
    one = llvm.mlir_constant(ir.IntegerAttr.get(word, 1), loc=loc, ip=ip)
    places = [
        llvm.alloca(llvm.PointerType.get(), one, ir.TypeAttr.get(t.mlir_type), loc=loc, ip=ip) for t in stored
    ]
    first = _called(name, returned, [*values, *places], loc, ip)
    loaded = [t(llvm.load(t.mlir_type, p, loc=loc, ip=ip)) for t, p in zip(stored, places, strict=True)]
    return tuple(loaded) if returned is None else (returned(first), *loaded)


def _called(name, result, values, loc, ip):
    symbol = f"__nv_{name}"
    returned = "void" if result is None else str(result.mlir_type)
    _declare(symbol, ir.Type.parse(f"!llvm.func<{returned} ({', '.join(str(v.type) for v in values)})>"))
    call = llvm.CallOp(
        None if result is None else result.mlir_type,
        values,
        op_bundle_operands=[],
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        callee=ir.FlatSymbolRefAttr.get(symbol),
        loc=loc,
        ip=ip,
    )
    return None if result is None else call.result


def _declare(symbol, function_type):
    """Declare a function in the module of the kernel that is being traced, once."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.name != "gpu.module":
        op = op.parent.operation
    block = op.regions[0].blocks[0]
    for other in block.operations:
        names = other.operation.attributes
        if "sym_name" in names and ir.StringAttr(names["sym_name"]).value == symbol:
            return
    with ir.InsertionPoint.at_block_begin(block):
        llvm.LLVMFuncOp(symbol, ir.TypeAttr.get(function_type))
