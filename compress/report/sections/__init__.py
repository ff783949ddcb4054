"""The sections of a report, a file each: its tables, sentences and picture, from grouped runs."""
