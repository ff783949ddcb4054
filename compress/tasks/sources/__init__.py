"""The source of a task and of its data, GLUE, hub, files or a generator, and its unchecked rows. Of `tasks` imports `reading`,
`synthetic` and `data` alone."""
