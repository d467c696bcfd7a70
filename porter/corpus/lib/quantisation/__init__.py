"""Codes of narrow formats and their scales: of tokens, of groups, for fp8 and int8."""
