"""The fence around a process that runs the Python of a port: what it may touch, and for how long.

Four layers, the first three by the kernel of the system, none of which can be taken down again: resource limits,
Landlock (files, TCP), seccomp (sockets, processes, signals), and an audit hook of Python that refuses the same with a
message at the port's line. docs/fence.md says which system has which. Nothing here knows what a port is.
"""

from porter.verify.compile.fence.raising import Fence, available_layers, raise_fence

__all__ = ["Fence", "available_layers", "raise_fence"]
