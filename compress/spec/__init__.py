"""Recipes, cards and task files: read and validated, with every mistake reported at its line."""
