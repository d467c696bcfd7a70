"""Source text to a parsed unit, with porter's own headers in place of a toolkit."""
