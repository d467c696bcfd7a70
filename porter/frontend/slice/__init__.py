"""The device side of a file, for a compiler without host headers."""
