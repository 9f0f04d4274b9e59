"""Programs that follow a run while it trains."""
