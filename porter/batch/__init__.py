"""Several files at once, each in a child process."""
