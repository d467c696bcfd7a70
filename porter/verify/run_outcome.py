"""What running original and port on made-up arguments can show, in the words that reports use."""

from __future__ import annotations

from dataclasses import dataclass

EQUAL = "equal"  # both clean, and what they wrote is equal within the verifier's bounds
DIFFERS = "differs"  # another result, or the port does what it must not
FAULTS = "original faults"  # on every attempt: the arguments are to blame, or the original
NOT_RUN = "not run"


@dataclass(frozen=True)
class Outcome:
    """What came of one instance. `how` is the attempt, `detail` the first difference or why it was not run."""

    instance: str
    outcome: str
    how: str = ""
    detail: str = ""
    reached: float = 0.0  # share of the original's instructions that the launch reached
