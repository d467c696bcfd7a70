"""What one `porter verify` is asked to do beside what every verification is (porter.config)."""

from __future__ import annotations

from dataclasses import dataclass

TIMEOUT = 300.0  # seconds a port


@dataclass(frozen=True)
class Settings:
    """`against`: "" compares with the baseline where there is one, "recorded" wants one, "original" compares with none;
    anything else is a git revision. `timeout` in seconds a port."""

    against: str = ""
    update: bool = False
    require: tuple[str, ...] = ()
    timeout: float = TIMEOUT
    fresh: bool = False
    record: bool = True  # False: write nothing into .port.json

    @property
    def revision(self) -> str:
        """The git revision to compare with, or ""."""
        return "" if self.against in ("", "original", "recorded") else self.against
