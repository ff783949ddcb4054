"""A task's data, read, checked and split: train and tuning splits, separate from the reported ones. Imports no room but `sources`,
`kinds` and `reading`."""
