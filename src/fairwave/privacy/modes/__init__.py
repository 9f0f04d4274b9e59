"""Privacy modes, each in a file of its own: what it proves, enforces, charges, refuses and says."""
