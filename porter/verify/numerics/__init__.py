"""Is what the port wrote what the original wrote? Comparison, tolerances, float64 references."""
