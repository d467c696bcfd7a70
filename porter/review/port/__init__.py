"""A port under review, without a terminal: regions, decisions, evidence."""
