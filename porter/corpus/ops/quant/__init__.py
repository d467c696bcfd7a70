"""Quantisation to fp8 and int8 codes as engines call it, each family with its reference and workloads beside it."""
