"""`porter review`: read ports beside their CUDA, and decide region by region."""
