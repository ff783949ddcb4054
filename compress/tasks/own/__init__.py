"""A task from a user's own files, without a task file: detected columns, labels and kind. No other room of `tasks` imports this one."""
