"""Token ids of a split, batches of them, and outputs back to words, answers and queries. Reads no files of data: of `tasks` imports
`data`, `ensembles` and `kinds` alone."""
