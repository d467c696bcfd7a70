"""Launch sites of host code: <<<>>>, cudaLaunchKernelEx and cudaLaunchCooperativeKernel as porter.model.Launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.model import Launch

if TYPE_CHECKING:
    from porter.frontend.parse import ParsedUnit


def find_launches(unit: ParsedUnit) -> tuple[Launch, ...]:
    return ()
