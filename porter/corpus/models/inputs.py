"""How an engine makes the quantised input of a linear layer: by an op of its own, or by the op before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Call = tuple[str, str, dict[str, Any]]  # place, op, arguments by name

_EPS = 1e-10
_E4M3 = 448.0


@dataclass(frozen=True)
class Inputs:
    """Calls that quantise rows of `dtype`, in a scheme of porter.corpus.models.quantised_inputs.

    `fusion`: norms and activations quantise what they give where the corpus has an op for it. Scales of groups of 128
    lie in columns of float32, padded to 4 tokens, as GEMMs read them by TMA; on sm_100 and later alone they are powers
    of two, packed by 4. Scales of 16 and 32 lie in tiles of 128x4.
    """

    dtype: str
    eps: float
    fusion: bool
    arch: str

    def normed(self, place: str, hidden: int, scheme: str, residual: bool) -> Iterator[Call]:
        """A norm over rows of `hidden` elements, after the sum with a residual or not, and its result quantised."""
        x, weight = f"{self.dtype}[T,{hidden}]", f"{self.dtype}[{hidden}]"
        if self.fusion:
            codes, scales = f"e4m3[T,{hidden}]", f"f32[T,{hidden // 128}:1,up(T,4)]"
            both = {"residual": x if residual else None}
            if scheme == "fp8_static":
                op = f"{'fused_add_' if residual else ''}rms_norm_static_fp8_quant"
                given = {"result": codes, "input": x, **(both if residual else {}), "weight": weight}
                yield place, op, {**given, "scale": "f32[1]", "epsilon": self.eps}
                return
            if scheme == "fp8_token":
                given = {"result": codes, "input": x, "weight": weight, "scale": "f32[T,1]"}
                yield place, "rms_norm_dynamic_per_token_quant", {
                    **given, "epsilon": self.eps, "scale_ub": None, **both
                }  # fmt: skip
                return
            if scheme == "fp8_block" and not self._packed and hidden % 128 == 0:
                yield place, "rms_norm_per_block_quant", {
                    "result": codes, "input": x, "weight": weight, "scale": scales, "epsilon": self.eps,
                    "scale_ub": None, **both, "group_size": 128, "is_scale_transposed": True,
                }  # fmt: skip
                return
            if scheme in ("nvfp4", "mxfp8"):
                given = {**_blocks("T", hidden, scheme), "input": x, "weight": weight}
                yield place, f"rms_norm_{scheme}_quant", {
                    **given, **({"input_global_scale": "f32[1]"} if scheme == "nvfp4" else {}), "epsilon": self.eps,
                    **both,
                }  # fmt: skip
                return
        if residual:
            yield place, "fused_add_rms_norm", {"input": x, "residual": x, "weight": weight, "epsilon": self.eps}
        else:
            yield place, "rms_norm", {"result": x, "input": x, "weight": weight, "epsilon": self.eps}
        yield from self.given(f"result of the {place}", x, scheme)

    def gated(self, place: str, rows: str, width: int, op: str, scheme: str) -> Iterator[Call]:
        """The activation `op` of the two halves of rows of 2 * `width` elements, and its result quantised."""
        x = f"{self.dtype}[{rows},{2 * width}]"
        if self.fusion and op == "silu_and_mul":
            codes = f"e4m3[{rows},{width}]"
            if scheme == "fp8_static":
                yield place, "silu_and_mul_quant", {"result": codes, "input": x, "scale": "f32[1]"}
                return
            if scheme == "fp8_block" and not self._packed and width % 128 == 0:
                yield place, "silu_and_mul_per_block_quant", {
                    "out": codes, "input": x, "scales": f"f32[{rows},{width // 128}:1,up({rows},4)]",
                    "group_size": 128, "scale_ub": None, "is_scale_transposed": True,
                }  # fmt: skip
                return
            if scheme in ("nvfp4", "mxfp8"):
                given = {"input_global_scale": "f32[1]"} if scheme == "nvfp4" else {}
                yield place, f"silu_and_mul_{scheme}_quant", {**_blocks(rows, width, scheme), "input": x, **given}
                return
        out = "result" if op == "silu_and_mul" else "out"
        yield place, op, {out: f"{self.dtype}[{rows},{width}]", "input": x}
        yield from self.given(f"result of the {place}", f"{self.dtype}[{rows},{width}]", scheme)

    def given(self, place: str, x: str, scheme: str) -> Iterator[Call]:
        """Rows that are there quantised by an op of their own: `x` is the text of a contiguous (rows, length)."""
        rows, _, length = x.partition("[")[2].rstrip("]").rpartition(",")
        n, codes = int(length), f"e4m3[{rows},{length}]"
        if scheme == "fp8_static":
            yield place, "static_scaled_fp8_quant", {"result": codes, "input": x, "scale": "f32[1]"}
        elif scheme == "fp8_token":
            given = {"result": codes, "input": x, "scale": f"f32[{rows},1]"}
            yield place, "dynamic_per_token_scaled_fp8_quant", given
        elif scheme == "int8_static":
            given = {"result": f"i8[{rows},{length}]", "input": x, "scale": "f32[1]"}
            yield place, "static_scaled_int8_quant", given
        elif scheme == "int8_token":
            given = {"result": f"i8[{rows},{length}]", "input": x, "scale": f"f32[{rows},1]"}
            yield place, "dynamic_scaled_int8_quant", given
        elif scheme == "fp8_block":
            yield place, *self._groups(rows, n, x)
        elif scheme in ("nvfp4", "mxfp8"):
            codes, scales = _blocks(rows, n, scheme).values()
            given = {"output": codes, "input": x, "output_scale": scales}
            if scheme == "nvfp4":
                yield place, "scaled_fp4_quant", {**given, "input_scale": "f32[1]"}
            else:
                yield place, "mxfp8_quantize", given

    def _groups(self, rows: str, length: int, x: str) -> tuple[str, dict[str, Any]]:
        given = {"input": x, "output_q": f"e4m3[{rows},{length}]"}
        last = {"group_size": 128, "eps": _EPS}
        groups = -(-length // 128)
        if self._packed:
            scales = f"i32[{rows},{-(-groups // 4)}:1,up({rows},4)]"
            return "per_token_group_fp8_quant_packed", {
                **given, "output_s_packed": scales, **last, "min_8bit": -_E4M3, "max_8bit": _E4M3
            }  # fmt: skip
        return "per_token_group_fp8_quant", {
            **given, "output_s": f"f32[{rows},{groups}:1,up({rows},4)]", **last, "fp8_min": -_E4M3, "fp8_max": _E4M3,
            "scale_ue8m0": False, "dummy_is_scale_transposed": True, "dummy_is_tma_aligned": True,
        }  # fmt: skip

    @property
    def _packed(self) -> bool:
        return int("".join(c for c in self.arch if c.isdigit())) >= 100


def _blocks(rows: str, length: int, scheme: str) -> dict[str, str]:
    """Codes of 16 or 32 elements a scale, and scales in tiles of 128x4."""
    group, codes = (16, f"u8[{rows},{length // 2}]") if scheme == "nvfp4" else (32, f"e4m3[{rows},{length}]")
    columns = -(-length // (4 * group)) * 4
    return {"result": codes, "result_block_scale": f"u8[up({rows},128),{columns}]"}
