"""The fast backend: a Program as LLVM IR, compiled by llvmlite and cached. Agrees with the interpreter bit for bit.

It runs what is well-behaved and gives up (Refused, or a bail-out while running) on anything else: the caller then uses
the numpy interpreter, which also does all the reporting.
"""
