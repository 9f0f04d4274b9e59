"""Misbehaviours of devices: one small file each, listed in `fairwave.extensions`."""
