"""What each part of a recipe brings: its variants, and their runs."""
