"""The agent: fills holes, repairs and optimises ports inside a transaction that the verifier decides.

Layers inside: messages < prices, settings < budgets, providers < record < tools < loop. Only `providers/` knows an SDK.
"""
