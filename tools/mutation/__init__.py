"""Wrong ports made on purpose, to test the verifier. A class of mistake is looked for in a port's syntax tree."""
