"""Plans for whole fleets: policy without training."""
