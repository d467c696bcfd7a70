"""Rewrites of IR, a function each."""
