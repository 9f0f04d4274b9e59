"""Schemes under comparison: one small file each, listed in `fairwave.extensions`."""
