"""Wrong ports made on purpose, to test the verifier: where a class of mistake applies, found in a port's syntax tree."""
