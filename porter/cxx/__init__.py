"""C++ types and integer expressions as sources spell them."""
