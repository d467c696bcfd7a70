"""The catalogue of rewrites: each with a kernel that shows it."""
