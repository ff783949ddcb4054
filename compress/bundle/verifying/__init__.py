"""Verify a bundle: that it is whole, safe to open, and answers and scores here as it did where it was made."""
