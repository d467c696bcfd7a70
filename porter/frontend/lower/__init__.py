"""Instantiated bodies to porter's IR, a module for each kind of construct."""
