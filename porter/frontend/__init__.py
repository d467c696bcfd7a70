"""CUDA text to IR. libclang is imported in this package only."""
