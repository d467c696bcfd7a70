"""Template instances of kernels: read from text, reached by launches, guessed, instantiated."""
