"""The paper's contribution: what a device chooses, and what the access point gives it back."""
