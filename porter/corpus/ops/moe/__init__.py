"""Mixture-of-experts routing, layout of routed rows, and their combination."""
