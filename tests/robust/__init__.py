"""Inputs that nobody means well with: porter answers each with one message and leaves nothing behind."""
