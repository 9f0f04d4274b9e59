"""Data sets, and who holds what."""
