"""Questions that take many runs: who runs what, in parallel, and what the answers are measured by."""
