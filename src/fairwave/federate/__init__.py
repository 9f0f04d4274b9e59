"""The same policies on real machines: one access point, many devices, messages between them. Runs on Flower."""
