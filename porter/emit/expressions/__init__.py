"""One IR expression to one CuTeDSL expression, places, conversions, ranges."""
