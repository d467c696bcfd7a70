"""Ports that cheat, made of true ports, and which check has to say so."""
