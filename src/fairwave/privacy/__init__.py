"""Mechanisms and what they may claim."""
