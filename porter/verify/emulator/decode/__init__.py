"""PTX text to a program of steps."""
