"""The stage `prune` and what its budgets and widths need."""
