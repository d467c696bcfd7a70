"""Softmax and top-k."""
