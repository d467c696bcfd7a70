"""Statements: loops, declarations, assignments and control flow as lines of CuTeDSL."""
