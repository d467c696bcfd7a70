"""The case of a kernel, `<name>.case.toml`: the contract that a port is verified against."""
