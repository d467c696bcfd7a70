"""One-to-one equivalents, a row each."""
