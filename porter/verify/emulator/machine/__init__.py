"""The machine that runs a program: warps, barriers, scheduling."""
