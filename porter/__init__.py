"""porter ports CUDA kernels to CuTeDSL and verifies the result."""

__version__ = "0.1.0"
