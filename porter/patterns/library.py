"""cub and cooperative groups: handles disappear, their methods become shuffles, barriers and corpus reductions.

Group handles carry no state beyond their type, so every method is rewritten from the type of its object alone. Sums of
floats may associate in another order than cub's, which leaves its order unspecified (an assumption the report shows).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.block_reduce import combiner, expand, expand_tile
from porter.patterns.names import Names
from porter.patterns.reduction_operators import operation
from porter.patterns.references import simplified_deref, without_pointer_casts
from porter.patterns.shared_params import SCRATCH

CG = "cooperative_groups::"
_OPAQUE = ("cooperative_groups::", "cub::")
_PLAIN = ("c10::cuda::compat::", "c10::", "at::", "cuda::std::", "std::")


def is_opaque(t: ir.Type) -> bool:
    """A library handle or its storage (arrays and unions of them too)."""
    if isinstance(t, ir.Array):
        return is_opaque(t.elem)
    if isinstance(t, ir.Struct):
        if t.name.startswith(_OPAQUE) and not t.fields:
            return True
        return bool(t.fields) and all(is_opaque(f.type) for f in t.fields)
    return False


def _u32(e: ir.Expr) -> ir.Expr:
    return e if e.type == ir.U32 else ir.Cast(e, type=ir.U32, span=e.span)


def _bin(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Binary(op, a, b, type=a.type, span=a.span)


def _builtin(kind: str, axis: str) -> ir.Expr:
    return ir.Builtin(f"{kind}.{axis}", type=ir.U32)


def _product(kind: str) -> ir.Expr:
    return _bin("*", _bin("*", _builtin(kind, "x"), _builtin(kind, "y")), _builtin(kind, "z"))


def _lib(name: str, args: tuple[ir.Expr, ...], t: ir.Type, *, targs: tuple[Any, ...] = (), span: Any = None) -> ir.Expr:
    return ir.Intrinsic(f"lib.{name}", args, targs, type=t, span=span or (args[0].span if args else ir.NO_SPAN))


def _thread() -> ir.Expr:
    return _u32(_lib("linear_thread", (), ir.I32))


def _block() -> ir.Expr:
    """Linear block index."""
    x, y, z = (_builtin("blockIdx", a) for a in "xyz")
    return _bin("+", x, _bin("*", _builtin("gridDim", "x"), _bin("+", y, _bin("*", _builtin("gridDim", "y"), z))))


def _const(v: int, t: ir.Type = ir.U32) -> ir.Expr:
    return ir.Const(v, type=t)


def _tile_size(t: ir.Type) -> int | None:
    if isinstance(t, ir.Struct):
        m = re.match(r"cooperative_groups::(?:thread_block_tile|tiled_group)<(\d+)", t.name)
        if m:
            return int(m[1])
    return None


def _mask(n: int) -> ir.Expr:
    return _const(0xFFFFFFFF) if n == 32 else _lib("tile_mask", (), ir.U32, targs=(n,))


class Rewriter:
    """Rewrites the library calls of one kernel."""

    def __init__(self, functions: dict[str, ir.Function], names: Names):
        self.functions = functions
        self.names = names
        self.scratch: dict[ir.Type, ir.SharedDecl] = {}

    def _scratch(self, t: ir.Type) -> ir.Expr:
        if t not in self.scratch:
            name = f"{SCRATCH}{t.name}" if isinstance(t, ir.Scalar) else self.names.fresh("reduce_struct")
            self.scratch[t] = ir.SharedDecl(name, ir.Array(t, 33))
        d = self.scratch[t]
        return ir.Decay(ir.Var(d.name, type=d.type), type=ir.Pointer(t, "shared"))

    def expr(self, e: Any) -> Any:
        if isinstance(e, ir.Deref):
            return simplified_deref(e)
        if isinstance(e, ir.AddressOf) and isinstance(e.place, ir.Deref):
            return e.place.ptr
        if not isinstance(e, ir.Intrinsic):
            return e
        for prefix in _PLAIN:
            if e.name.startswith(prefix):
                e = replace(e, name=e.name.removeprefix(prefix))
        if e.name == "bit_cast" and isinstance(e.type, ir.Scalar) and e.args and isinstance(e.args[0].type, ir.Scalar):
            return replace(e, name="porter.bits")
        for prefix, method in (("cub::", self._cub), (CG, self._cg)):
            if e.name.startswith(prefix):
                return method(e)
        return e

    # ---- cooperative groups

    def _cg(self, e: ir.Intrinsic) -> ir.Expr:
        parts = e.name.removeprefix(CG).split("::")
        method = parts[-1]
        if len(parts) == 1:
            if method == "sync" and e.args:
                return self._method(e, e.args[0].type, "sync", e.args[1:])
            if method == "reduce" and len(e.args) == 3:
                return self._reduce(e)
            return e
        obj = e.args[0].type if e.args else ir.VOID
        return self._method(e, obj, method, e.args[1:])

    def _method(self, e: ir.Intrinsic, obj: ir.Type, method: str, args: tuple[ir.Expr, ...]) -> ir.Expr:
        name = obj.name if isinstance(obj, ir.Struct) else e.name
        if "grid_group" in name or "grid_group" in e.name:
            return self._grid(e, method)
        if "cluster_group" in name or "cluster_group" in e.name:
            return self._cluster(e, method, args)
        tile = _tile_size(obj)
        if tile is not None:
            return self._tile(e, method, args, tile)
        if "thread_block" in name and "tile" not in name:
            return self._thread_block(e, method)
        return e

    def _dim3(self, e: ir.Intrinsic, kind: str) -> ir.Expr:
        return ir.StructInit(tuple(_builtin(kind, a) for a in "xyz"), type=e.type, span=e.span)

    def _cast(self, e: ir.Intrinsic, value: ir.Expr) -> ir.Expr:
        return value if value.type == e.type else ir.Cast(value, type=e.type, span=e.span)

    def _thread_block(self, e: ir.Intrinsic, method: str) -> ir.Expr:
        if method in ("sync", "barrier_wait"):
            return ir.Intrinsic("__syncthreads", (), type=ir.VOID, span=e.span)
        table: dict[str, Callable[[], ir.Expr]] = {
            "thread_rank": lambda: self._cast(e, _thread()),
            "size": lambda: self._cast(e, _product("blockDim")),
            "num_threads": lambda: self._cast(e, _product("blockDim")),
            "group_index": lambda: self._dim3(e, "blockIdx"),
            "thread_index": lambda: self._dim3(e, "threadIdx"),
            "group_dim": lambda: self._dim3(e, "blockDim"),
            "dim_threads": lambda: self._dim3(e, "blockDim"),
        }
        return table[method]() if method in table else e

    def _grid(self, e: ir.Intrinsic, method: str) -> ir.Expr:
        if method == "sync":
            return _lib("grid_sync", (), ir.VOID, span=e.span)
        threads = _product("blockDim")
        table: dict[str, Callable[[], ir.Expr]] = {
            "thread_rank": lambda: self._cast(e, _bin("+", _bin("*", _block(), threads), _thread())),
            "size": lambda: self._cast(e, _bin("*", _product("gridDim"), threads)),
            "num_threads": lambda: self._cast(e, _bin("*", _product("gridDim"), threads)),
            "block_rank": lambda: self._cast(e, _block()),
            "num_blocks": lambda: self._cast(e, _product("gridDim")),
            "cluster_rank": lambda: self._cast(e, _lib("cluster_index", (), ir.U32)),
            "num_clusters": lambda: self._cast(e, _lib("clusters", (), ir.U32)),
            "block_index": lambda: self._dim3(e, "blockIdx"),
            "dim_blocks": lambda: self._dim3(e, "gridDim"),
            "group_dim": lambda: self._dim3(e, "gridDim"),
        }
        return table[method]() if method in table else e

    def _cluster(self, e: ir.Intrinsic, method: str, args: tuple[ir.Expr, ...]) -> ir.Expr:
        effects = {"sync": "cluster_sync", "barrier_arrive": "cluster_arrive", "barrier_wait": "cluster_wait"}
        if method in effects:
            return _lib(effects[method], (), ir.VOID, span=e.span)
        if method == "map_shared_rank" and len(args) == 2:
            if isinstance(e.type, ir.Pointer):
                return _lib("map_shared_rank", args, e.type, span=e.span)
            pointer = ir.Pointer(e.type)
            address = ir.AddressOf(args[0], type=pointer)
            mapped = _lib("map_shared_rank", (address, args[1]), pointer, span=e.span)
            return ir.Deref(mapped, type=e.type, span=e.span)
        rank, blocks = _lib("cluster_rank", (), ir.U32), _lib("cluster_blocks", (), ir.U32)
        threads = _product("blockDim")

        def dim3(name: str) -> ir.Expr:
            parts = tuple(_lib(name, (), ir.U32, targs=(a,)) for a in "xyz")
            return ir.StructInit(parts, type=e.type, span=e.span)

        table: dict[str, Callable[[], ir.Expr]] = {
            "block_rank": lambda: self._cast(e, rank),
            "num_blocks": lambda: self._cast(e, blocks),
            "thread_rank": lambda: self._cast(e, _bin("+", _bin("*", rank, threads), _thread())),
            "size": lambda: self._cast(e, _bin("*", blocks, threads)),
            "num_threads": lambda: self._cast(e, _bin("*", blocks, threads)),
            "block_index": lambda: dim3("cluster_position"),
            "dim_blocks": lambda: dim3("cluster_extent"),
        }
        return table[method]() if method in table else e

    def _tile(self, e: ir.Intrinsic, method: str, args: tuple[ir.Expr, ...], n: int) -> ir.Expr:
        if method.startswith("shfl") and len(args) == 2:
            cuda = {
                "shfl": "__shfl_sync",
                "shfl_xor": "__shfl_xor_sync",
                "shfl_down": "__shfl_down_sync",
                "shfl_up": "__shfl_up_sync",
            }
            if method in cuda:
                return ir.Intrinsic(
                    cuda[method], (_mask(n), args[0], args[1], _const(n, ir.I32)), type=e.type, span=e.span
                )
        if method == "sync":
            return ir.Intrinsic("__syncwarp", (_mask(n),), type=ir.VOID, span=e.span)
        if method in ("any", "all") and args:
            vote = ir.Intrinsic(f"__{method}_sync", (_mask(n), args[0]), type=ir.I32, span=e.span)
            return self._cast(e, vote)
        if method == "ballot" and args:
            word = ir.Intrinsic("__ballot_sync", (_mask(n), args[0]), type=ir.U32, span=e.span)
            if n < 32:
                base = _bin("*", _bin("/", _bin("%", _thread(), _const(32)), _const(n)), _const(n))
                word = _bin("&", ir.Binary(">>", word, base, type=ir.U32), _const((1 << n) - 1))  # type: ignore[assignment]
            return self._cast(e, word)
        table: dict[str, Callable[[], ir.Expr]] = {
            "thread_rank": lambda: self._cast(e, _bin("%", _thread(), _const(n))),
            "size": lambda: self._cast(e, _const(n)),
            "num_threads": lambda: self._cast(e, _const(n)),
            "meta_group_rank": lambda: self._cast(e, _bin("/", _thread(), _const(n))),
            "meta_group_size": lambda: self._cast(
                e, _bin("/", _bin("+", _product("blockDim"), _const(n - 1)), _const(n))
            ),
        }
        return table[method]() if method in table else e

    def _reduce(self, e: ir.Intrinsic) -> ir.Expr:
        n = _tile_size(e.args[0].type)
        op = operation(e.args[2], self.functions)
        if n is None or op is None or not isinstance(e.type, ir.Scalar):
            return e
        return _lib(f"warp_{op}", (e.args[1],), e.type, targs=(n,), span=e.span)

    # ---- cub

    def _cub(self, e: ir.Intrinsic) -> ir.Expr:
        parts = e.name.split("::")
        if len(parts) != 3 or not e.args:
            return e
        cls, method = parts[1], parts[2]
        if cls == "BlockReduce" and method in ("Sum", "Reduce") and len(e.args) >= 2:
            return self._block_reduce(e, method)
        if cls == "WarpReduce" and method in ("Sum", "Reduce") and len(e.args) >= 2:
            op = "sum" if method == "Sum" else operation(e.args[2], self.functions) if len(e.args) > 2 else None
            extra = len(e.args) - (2 if method == "Sum" else 3)
            if op is None or extra or not isinstance(e.type, ir.Scalar):
                return e
            width = next((t for t in e.targs[1:] if isinstance(t, int)), 32)
            return _lib(f"warp_{op}", (e.args[1],), e.type, targs=(width,), span=e.span)
        return e

    def _block_reduce(self, e: ir.Intrinsic, method: str) -> ir.Expr:
        if not isinstance(e.type, ir.Scalar) or isinstance(e.args[1].type, ir.Array):
            return e
        rest = e.args[2:]
        op: str | None = "sum"
        if method == "Reduce":
            op = operation(rest[0], self.functions) if rest else None
            rest = rest[1:]
        if op is None:
            return e
        valid = rest[0] if rest else ir.Cast(_product("blockDim"), type=ir.I32)
        value = e.args[1] if e.args[1].type == e.type else ir.Cast(e.args[1], type=e.type)
        return _lib("block_reduce", (value, self._scratch(e.type), valid), e.type, targs=(op,), span=e.span)

    def own_reductions(self, s: Any) -> bool:
        """True when the statement's own expressions hold a reduction that `_block_reduce` and `_reduce` left."""
        return any(self._is_reduction(n) for n in _own_expressions(s))

    def _is_reduction(self, n: Any) -> bool:
        if not isinstance(n, ir.Intrinsic):
            return False
        if n.name == f"{CG}reduce":
            return len(n.args) == 3 and _tile_size(n.args[0].type) is not None
        return n.name in ("cub::BlockReduce::Reduce", "cub::BlockReduce::Sum")

    def expand_reductions(self, s: Any, out: list[Any]) -> Any:
        """The statement with those reductions replaced by variables; their trees are appended to `out` before it."""

        def one(n: Any) -> Any:
            if not self._is_reduction(n) or len(n.args) < 3 or isinstance(n.args[1].type, ir.Array):
                return n
            apply = combiner(n.args[2], n.type, self.functions)
            if apply is None:
                return n
            width = _tile_size(n.args[0].type)
            if width is not None:
                stmts, var = expand_tile(n.args[1], n.type, apply, _mask(width), width, self.names, s.span)
            else:
                valid = n.args[3] if len(n.args) > 3 else None
                place = self._scratch_place(n.type)
                stmts, var = expand(n.args[1], n.type, apply, valid, self.names, place, s.span)
            out.extend(stmts)
            return var

        if isinstance(s, ir.If):
            return replace(s, cond=ir.rewrite(s.cond, one))
        return ir.rewrite(s, one)

    def _scratch_place(self, t: ir.Type) -> ir.Expr:
        decay = self._scratch(t)
        assert isinstance(decay, ir.Decay)
        return decay.place

    # ---- statements

    def stmt(self, s: ir.ExprStmt) -> list[ir.Stmt]:
        e = s.value
        if not isinstance(e, ir.Intrinsic):
            return [s]
        if e.name.startswith("cub::BlockScan::"):
            return self._scan(s, e)
        if e.name in ("cub::BlockLoad::Load", "cub::BlockStore::Store"):
            return self._block_transfer(s, e)
        if e.name in ("memcpy", "__builtin_memcpy", "std::memcpy") and len(e.args) == 3:
            return self._memcpy(s, e)
        if e.name in ("sincosf", "__sincosf", "sincos") and len(e.args) == 3:
            fast = e.name.startswith("__")
            out: list[ir.Stmt] = []
            for f, p in zip(
                ("__sinf", "__cosf") if fast else ("sinf", "cosf") if e.name == "sincosf" else ("sin", "cos"),
                e.args[1:],
                strict=True,
            ):
                assert isinstance(p.type, ir.Pointer)
                place = simplified_deref(ir.Deref(p, type=p.type.elem, span=s.span))
                out.append(ir.Assign(place, ir.Intrinsic(f, (e.args[0],), type=p.type.elem, span=s.span), span=s.span))
            return out
        return [s]

    def _scan(self, s: ir.ExprStmt, e: ir.Intrinsic) -> list[ir.Stmt]:
        method = e.name.split("::")[-1]
        if method not in ("ExclusiveSum", "InclusiveSum") or len(e.args) not in (3, 4):
            return [s]
        source, target = e.args[1], e.args[2]
        if not isinstance(target.type, ir.Scalar) or not isinstance(source.type, ir.Scalar):
            return [s]
        t = target.type
        value = source if source.type == t else ir.Cast(source, type=t)
        name = self.names.fresh("scan_input")
        var = ir.Var(name, type=t, span=s.span)
        prefix = _lib("block_exclusive_sum", (var, self._scratch(t)), t, span=s.span)
        result = prefix if method == "ExclusiveSum" else ir.Binary("+", prefix, var, type=t, span=s.span)
        out: list[ir.Stmt] = [
            ir.Decl(name, t, value, span=s.span, comment=s.comment),
            ir.Assign(target, result, span=s.span),
        ]
        if len(e.args) == 4:
            out.append(ir.Assign(e.args[3], _lib("block_scan_total", (self._scratch(t),), t, span=s.span), span=s.span))
        return out

    def _block_transfer(self, s: ir.ExprStmt, e: ir.Intrinsic) -> list[ir.Stmt]:
        """Blocked and striped loads and stores of `items` values a thread, with an optional count and fill value."""
        load = e.name.endswith("Load")
        ptr, items = e.args[1], e.args[2]
        rest = e.args[3:]
        algorithm = e.targs[3] if len(e.targs) > 3 and isinstance(e.targs[3], int) else 0
        if (
            not isinstance(items.type, ir.Array)
            or not isinstance(ptr.type, ir.Pointer)
            or not isinstance(items.type.length, int)
        ):
            return [s]
        n, block = items.type.length, e.targs[1] if len(e.targs) > 1 else None
        i = self.names.fresh("item")
        var = ir.Var(i, type=ir.I32, span=s.span)
        tid = ir.Cast(_thread(), type=ir.I32)
        striped = algorithm == 1
        if striped and isinstance(block, int):
            at = _bin("+", tid, _bin("*", var, _const(block, ir.I32)))
        elif striped:
            return [s]
        else:
            at = _bin("+", _bin("*", tid, _const(n, ir.I32)), var)
        memory = ir.Deref(ir.PtrAdd(ptr, at, type=ptr.type), type=ptr.type.elem, span=s.span)
        item = ir.Index(items, var, type=items.type.elem, span=s.span)
        target, source = (item, memory) if load else (memory, item)
        value: ir.Expr = source if source.type == target.type else ir.Cast(source, type=target.type)
        move: ir.Stmt = ir.Assign(target, value, span=s.span)
        if rest:
            orelse: tuple[ir.Stmt, ...] = ()
            if len(rest) > 1 and load:
                fill = rest[1] if rest[1].type == target.type else ir.Cast(rest[1], type=target.type)
                orelse = (ir.Assign(target, fill, span=s.span),)
            limit = rest[0] if rest[0].type == ir.I32 else ir.Cast(rest[0], type=ir.I32)
            move = ir.If(ir.Binary("<", at, limit, type=ir.BOOL), (move,), orelse, span=s.span)
        step = ir.Assign(var, _bin("+", var, _const(1, ir.I32)))
        loop = ir.For(
            (ir.Decl(i, ir.I32, _const(0, ir.I32)),),
            ir.Binary("<", var, _const(n, ir.I32), type=ir.BOOL),
            (step,),
            (move,),
            0,
            span=s.span,
        )
        return [replace(loop, comment=s.comment)]

    def _memcpy(self, s: ir.ExprStmt, e: ir.Intrinsic) -> list[ir.Stmt]:
        size = e.args[2]
        while isinstance(size, ir.Cast):
            size = size.x
        dst, src = (without_pointer_casts(a) for a in e.args[:2])
        if (
            not isinstance(size, ir.Const)
            or not isinstance(dst.type, ir.Pointer)
            or not isinstance(src.type, ir.Pointer)
        ):
            return [s]
        if ir.VOID in (dst.type.elem, src.type.elem):
            return [s]
        align = min(ir.alignof(dst.type.elem), ir.alignof(src.type.elem))
        # an array's own alignment is that of its elements, but nvcc too copies no wider than the types promise
        call = ir.Intrinsic("lib.copy_bytes", (dst, src), (int(size.value), align), type=ir.VOID, span=s.span)
        return [replace(s, value=call)]


def _statements(stmts: tuple[Any, ...], rewriter: Rewriter) -> tuple[Any, ...]:
    out: list[Any] = []
    for s in stmts:
        if isinstance(s, ir.Decl | ir.Assign | ir.ExprStmt | ir.If | ir.Return) and rewriter.own_reductions(s):
            s = rewriter.expand_reductions(s, out)
        if isinstance(s, ir.ExprStmt):
            out.extend(rewriter.stmt(s))
            continue
        out.append(_inside(s, lambda b: _statements(b, rewriter)))
    return tuple(out)


def _inside(s: Any, fn: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    """The statement with fn applied to the statement lists inside it."""
    if isinstance(s, ir.Switch):
        return replace(s, cases=tuple((v, fn(b)) for v, b in s.cases))
    changes = {}
    for name in ("then", "orelse", "body", "init", "step", "pre", "post"):
        v = getattr(s, name, None)
        if isinstance(v, tuple) and v:
            changes[name] = fn(v)
    return replace(s, **changes) if changes else s


def _own_expressions(s: Any) -> list[Any]:
    if isinstance(s, ir.If):
        return list(ir.walk(s.cond))
    return list(ir.walk(s))


def lower_library(kernel: ir.Kernel, names: Names) -> ir.Kernel:
    """The kernel with the methods of library handles rewritten; run before inlining, while types are whole."""
    functions = {}
    for key, fn in kernel.functions.items():
        functions[key] = replace(fn, body=_lower(fn.body, kernel.functions, names))
    return replace(kernel, body=_lower(kernel.body, kernel.functions, names), functions=functions)


def _lower(body: tuple[ir.Stmt, ...], functions: dict[str, ir.Function], names: Names) -> tuple[ir.Stmt, ...]:
    rewriter = Rewriter(functions, names)
    new = _statements(ir.rewrite(body, rewriter.expr), rewriter)
    span = body[0].span if body else ir.NO_SPAN
    return (*(replace(d, span=span) for d in rewriter.scratch.values()), *new)


def drop_handles(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The body without declarations of handles and of their storage; what still uses one is found as a hole later."""
    out: list[Any] = []
    for s in body:
        if isinstance(s, ir.Decl | ir.SharedDecl) and is_opaque(s.type):
            init = s.init if isinstance(s, ir.Decl) else None
            if isinstance(init, ir.Intrinsic) and init.name == "lib.cluster_arrive":  # its token is the barrier's state
                out.append(ir.ExprStmt(init, span=s.span, comment=s.comment))
            continue
        if isinstance(s, ir.Assign) and is_opaque(s.target.type):
            continue
        if isinstance(s, ir.ExprStmt) and is_opaque(s.value.type) and not _has_call(s.value):
            continue
        out.append(_inside(s, drop_handles))
    return tuple(out)


def _has_call(e: ir.Expr) -> bool:
    return any(isinstance(n, ir.Call) for n in ir.walk(e))
