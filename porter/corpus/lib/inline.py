"""Inline PTX: values that the compiler may share, move or drop (`pure`), and statements like CUDA's `asm`."""

from cutlass import Float32, Float64, Int16, Int32, Int64, Uint16, Uint32, Uint64
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import dsl_user_op

_LETTER = {Float32: "f", Float64: "d", Int32: "r", Uint32: "r", Int64: "l", Uint64: "l", Int16: "h", Uint16: "h"}


@dsl_user_op
def pure(template, result, *args, loc=None, ip=None):
    """One PTX statement with `$0` as its result of CuTeDSL type `result` and `$1...` as the operands."""
    constraints = ",".join([f"={_LETTER[result]}", *(_LETTER[type(a)] for a in args)])
    value = llvm.inline_asm(
        result.mlir_type,
        [a.ir_value(loc=loc, ip=ip) for a in args],
        template,
        constraints,
        has_side_effects=False,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )
    return result(value)


@dsl_user_op
def asm(template, results, args, *, tied=(), volatile=False, early=False, loc=None, ip=None):
    """Inline PTX as CUDA's `asm`: `$0...` number the results, then the operands. `tied` holds (result, value) pairs for
    read-write operands. `volatile` keeps it in place, executed as often as written, and orders it with memory
    accesses. `early`: results are written before all operands are read."""
    constraints = [f"=&{_LETTER[r]}" if tied or early else f"={_LETTER[r]}" for r in results]
    constraints += [_LETTER[type(a)] for a in args]
    constraints += [str(i) for i, _ in tied]
    if volatile:
        constraints.append("~{memory}")
    values = [a.ir_value(loc=loc, ip=ip) for a in (*args, *(v for _, v in tied))]
    if len(results) == 0:
        result_type = None
    elif len(results) == 1:
        result_type = results[0].mlir_type
    else:
        result_type = llvm.StructType.get_literal([r.mlir_type for r in results])
    out = llvm.inline_asm(
        result_type,
        values,
        template,
        ",".join(constraints),
        has_side_effects=volatile,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )
    if len(results) == 0:
        return None
    if len(results) == 1:
        return results[0](out)
    return tuple(r(llvm.extractvalue(r.mlir_type, out, [i], loc=loc, ip=ip)) for i, r in enumerate(results))
