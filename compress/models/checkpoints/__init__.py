"""Checkpoint folders: locate them, check them, read their configs, tokenizers and weights, and save them."""
