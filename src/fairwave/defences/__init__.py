"""Defences of the access point: one small file each, listed in `fairwave.extensions`."""
