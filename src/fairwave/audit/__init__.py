"""Attacks on the release code itself, to see whether it keeps what it claims. Passing proves nothing; failing does."""
