"""Numbers that judge an outcome; none of them is the paper's."""
