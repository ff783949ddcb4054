"""The variants of a recipe that show what each part contributes, and their runs."""
