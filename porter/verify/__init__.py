"""Every check of a verdict: the one judge of a port."""
