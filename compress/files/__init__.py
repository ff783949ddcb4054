"""Files: paths as users write them, safe reading and writing, arrays on disk, and the format of tables."""
