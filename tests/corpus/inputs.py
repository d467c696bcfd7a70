"""Arguments of every distribution, and guarded outputs, on any device."""

from __future__ import annotations

from typing import Any

import torch

KINDS = ("normal", "small", "large", "outlier", "denormal", "zeros", "special")
E4M3 = torch.float8_e4m3fn
CODES = (E4M3, torch.int8)
_GUARD = 256  # bytes
_POISON = 0xA5
_SPECIAL = (0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, -1e-40, 3e38, -3e38, -88.0, -89.0, 88.5)


class Inputs:
    """The tensors of one case; the same seed makes the same ones again. On "meta" they have no memory."""

    def __init__(self, seed: int, dtype: torch.dtype, kind: str = "normal", device: str = "cpu"):
        self.dtype, self.kind, self.device, self._buffers = dtype, kind, device, list[torch.Tensor]()
        self._generator = None if device == "meta" else torch.Generator(device).manual_seed(seed)

    def __call__(self, *shape: int, dtype: torch.dtype | None = None, kind: str | None = None, pad: int = 0) -> Any:
        """Numbers of the case's kind; with `pad` the rows are that many elements further apart."""
        dtype, kind = dtype or self.dtype, kind or self.kind
        x = self._normal(*shape[:-1], shape[-1] + pad)
        if x.numel() and self.device != "meta":
            x = self._of_kind(x, kind, dtype)
        return x.to(dtype)[..., : shape[-1]]

    def weight(self, length: int, dtype: torch.dtype | None = None) -> Any:
        """Normal numbers whatever the kind."""
        return self(length, dtype=dtype, kind="normal")

    def _normal(self, *shape: int) -> torch.Tensor:
        if self.device == "meta":
            return torch.empty(shape, device="meta")
        return torch.randn(shape, generator=self._generator, device=self.device)

    def _of_kind(self, x: torch.Tensor, kind: str, dtype: torch.dtype) -> torch.Tensor:
        if kind == "outlier":
            x[..., x.shape[-1] // 3] *= 1000
        elif kind == "special":
            row = x.view(-1, x.shape[-1])[0]
            values = torch.tensor(_SPECIAL, device=x.device)[: row.numel()]
            row[: len(values)] = values
        return x * {"small": 1e-4, "large": 1e4, "zeros": 0.0,
                    "denormal": 3e-6 if dtype == torch.float16 else 1e-39}.get(kind, 1.0)  # fmt: skip

    def whole(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Any:
        """Whole numbers, low <= n < high."""
        if self.device == "meta":
            return torch.empty(shape, dtype=dtype, device="meta")
        return torch.randint(low, high, shape, generator=self._generator, device=self.device).to(dtype)

    def angles(self, positions: int, rot: int, dtype: torch.dtype) -> Any:
        """A table (positions, rot): cosines, then sines."""
        turn = self._normal(positions, rot // 2) * 3
        return torch.cat([turn.cos(), turn.sin()], -1).to(dtype)

    def number(self, value: float) -> Any:
        return torch.full((1,), value, device=self.device)

    def out(self, *shape: int, dtype: torch.dtype | None = None) -> Any:
        """Memory to write to: poisoned, with guards on both sides."""
        dtype = dtype or self.dtype
        count = 1
        for n in shape:
            count *= n
        nbytes = count * dtype.itemsize
        buffer = torch.full((_GUARD + -(-nbytes // 16) * 16 + _GUARD,), _POISON, dtype=torch.uint8, device=self.device)
        self._buffers.append(buffer)
        return buffer[_GUARD : _GUARD + nbytes].view(dtype).view(shape)

    def touched(self) -> torch.Tensor:
        """How many guard bytes were written, a number on the device."""
        guards = [part for b in self._buffers for part in (b[:_GUARD], b[-_GUARD:])]
        if not guards:
            return torch.zeros((), dtype=torch.int64, device=self.device)
        return (torch.cat(guards) != _POISON).sum()
