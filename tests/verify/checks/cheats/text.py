"""Where things are in an emitted port, for cheats that are put into it. Every edit keeps the port valid Python."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Port:
    """An emitted port's text."""

    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {n.name: n for n in self.tree.body if isinstance(n, ast.FunctionDef)}

    @cached_property
    def kernel(self) -> ast.FunctionDef:
        return next(f for f in self.functions.values() if any("kernel" in ast.unparse(d) for d in f.decorator_list))

    @cached_property
    def launcher(self) -> ast.FunctionDef:
        return next(f for n, f in self.functions.items() if n.startswith("_launch_"))

    @cached_property
    def wrapper(self) -> ast.FunctionDef:
        """The torch-facing function: the one that launches KERNEL."""
        return next(f for f in self.functions.values() if "KERNEL.launch" in ast.unparse(f))

    @cached_property
    def pointers(self) -> list[str]:
        """Pointer parameters of the kernel, in order."""
        return [a.arg for a in self.kernel.args.args if a.annotation and "Pointer" in ast.unparse(a.annotation)]

    @cached_property
    def numbers(self) -> list[str]:
        """Integer parameters of the kernel, in order."""
        return [
            a.arg for a in self.kernel.args.args if a.annotation and ast.unparse(a.annotation) in ("Int32", "Int64")
        ]

    @cached_property
    def elements(self) -> dict[str, str]:
        """Pointer to the type of its elements, as the Kernel's parameters have it."""
        return dict(re.findall(r'runtime\.Ptr\("(\w+)", "(\w+)"', self.text))

    def with_import(self, *lines: str) -> Port:
        anchor = "import cutlass\n"
        assert anchor in self.text
        return Port(self.text.replace(anchor, "".join(f"{line}\n" for line in lines) + anchor, 1))

    def with_top(self, *lines: str) -> Port:
        """Statements before KERNEL."""
        return Port(self.text.replace("KERNEL = ", "".join(f"{line}\n" for line in lines) + "\nKERNEL = ", 1))

    def in_wrapper(self, *lines: str) -> Port:
        """Statements before the launch."""
        anchor = "    KERNEL.launch("
        assert anchor in self.text
        return Port(self.text.replace(anchor, "".join(f"    {line}\n" for line in lines) + anchor, 1))

    def after_launch(self, *lines: str) -> Port:
        found = re.search(r"    KERNEL\.launch\(.*\)\n?", self.text)
        assert found
        return Port(self.text[: found.end()].rstrip("\n") + "\n" + "".join(f"    {line}\n" for line in lines))

    def replaced(self, old: str, new: str, count: int = 1) -> Port | None:
        return Port(self.text.replace(old, new, count)) if old in self.text else None

    def kernel_lines(self) -> tuple[int, int]:
        """First and last line (from 1) of the kernel's body."""
        return self.kernel.body[0].lineno, self.kernel.end_lineno or 0

    def with_kernel_body(self, lines: list[str]) -> Port:
        """Another body of the kernel."""
        first, last = self.kernel_lines()
        all_lines = self.text.splitlines()
        return Port("\n".join([*all_lines[: first - 1], *("    " + line for line in lines), *all_lines[last:]]) + "\n")

    def kernel_body(self) -> list[str]:
        first, last = self.kernel_lines()
        return [line[4:] for line in self.text.splitlines()[first - 1 : last]]

    def at_kernel_start(self, *lines: str) -> Port:
        return self.with_kernel_body([*lines, *self.kernel_body()])
