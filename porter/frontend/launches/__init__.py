"""Launches in host code."""
