"""One module per subcommand: `add(subparsers)` declares it, `run(args)` does it and returns the exit code."""
