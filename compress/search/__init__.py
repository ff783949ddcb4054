"""The model that meets limits of time, size and score: what is tried, in which order, and which of the tried is taken."""
