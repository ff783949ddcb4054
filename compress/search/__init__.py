"""Search for a model within limits of time, size and score: what to try, in which order, and which trial to choose."""
