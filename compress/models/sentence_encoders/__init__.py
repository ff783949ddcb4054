"""Sentence encoders: what their folders say, which layers a vector is made of, and how it is pooled."""
