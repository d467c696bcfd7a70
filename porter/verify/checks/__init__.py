"""The checks beside numerics: honesty, names, resources, performance, divergence."""
