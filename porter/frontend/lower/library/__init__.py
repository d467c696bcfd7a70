"""Lowering of what CUDA and the C++ libraries provide."""
