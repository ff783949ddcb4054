"""Data files, parsed to columns with line numbers, and texts and labels in every form that files use. Imports no other room of `tasks`."""
