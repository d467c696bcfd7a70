"""Lifts: a port over pointers, made by porter.emit, as a CuTe programmer would have written it, over tensors.

A lift takes the port's own text, a tree of lines with the line map, and rewrites what it recognises; what it does not
recognise stays as it is. None is trusted: the verifier judges the lifted port, and the port over pointers is written
where it does not pass.
"""

from porter.lift.style import lift

__all__ = ["lift"]
