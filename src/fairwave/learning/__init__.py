"""Training: models, the local problem, aggregation. No wireless, no policy."""
