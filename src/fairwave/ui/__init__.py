"""A page that shows runs while they are written."""
