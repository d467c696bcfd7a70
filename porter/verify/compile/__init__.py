"""Ports are imported and compiled in fenced child processes."""
