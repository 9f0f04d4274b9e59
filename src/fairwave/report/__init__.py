"""Tables and figures, from results alone."""
