"""Memory of the emulated machine, and every way to access it."""
