"""The torch-facing function of a port, called where there is no GPU: with stand-ins for tensors, in the fence.

`check_entry` (check.py) decides; situations.py says what it is called with, expected.py what it has to launch then,
judge.py whether it did. child.py, record.py, standins.py and torch_standins.py run in the child that imports the port.
"""

from porter.verify.checks.entry.check import check_entry

__all__ = ["check_entry"]
