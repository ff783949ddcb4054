"""Models without some of their heads and neurons: their shape in config.json, and their classes."""
