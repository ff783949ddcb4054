"""A classifier that computes in floats what its int8 graph will, so that it can be trained."""
