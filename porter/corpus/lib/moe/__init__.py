"""Device functions of mixture-of-experts kernels."""
