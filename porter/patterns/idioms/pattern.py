"""What the catalogue says of a rewrite: its kernel, and what it takes for granted and on what ground."""

from __future__ import annotations

from dataclasses import dataclass

from porter.model import Assumption

__all__ = ["Assumption", "Pattern"]


@dataclass(frozen=True)
class Pattern:
    """`before` is a whole CUDA kernel; its port must contain every text of `shows`, on lines that name the pattern.

    `case` is the kernel's case where the pattern is one of `--style tensor`.
    """

    name: str
    title: str
    module: str  # where the rewrite lives, below porter/
    before: str
    shows: tuple[str, ...]
    assumes: tuple[Assumption, ...] = ()
    instances: tuple[str, ...] = ()
    case: str = ""

    @property
    def promise(self) -> str:
        """ "exact" where everything is proved, else what is assumed."""
        open_ = [a.text for a in self.assumes if a.basis != "proved"]
        return f"assumes {' and '.join(open_)}" if open_ else "exact"
