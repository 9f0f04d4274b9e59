"""One round of a scheme, and then a sequence of rounds. No files, no printing."""
