"""`porter verify` as a regression tool: ports against their originals, their baselines and earlier revisions."""
