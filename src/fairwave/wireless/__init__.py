"""Physics of one device's link and processor."""
