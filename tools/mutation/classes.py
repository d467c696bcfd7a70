"""All classes of mistakes: importing a module of classes fills the table."""

from tools.mutation import arithmetic, bounds, integers, memory, threads
from tools.mutation.registry import CLASSES, MutantClass

__all__ = ["CLASSES", "MutantClass", "arithmetic", "bounds", "integers", "memory", "threads"]
