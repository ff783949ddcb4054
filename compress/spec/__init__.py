"""What recipes, cards and task files may say: read and validated, every mistake reported at its line."""
