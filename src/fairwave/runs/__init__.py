"""Runs of several schemes and seeds, and their results."""
