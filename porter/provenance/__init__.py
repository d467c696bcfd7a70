"""`<name>.port.json` beside a port: where it came from, what wrote each line, what the verifier said."""
