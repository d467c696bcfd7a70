"""IR to the text of a port: a plan over all instances, then one generic body, with its line map."""
