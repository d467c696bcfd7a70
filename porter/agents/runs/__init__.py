"""The agent between translator and verifier: one run, several candidates, a batch, a score."""
