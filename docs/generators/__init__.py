"""What the generated pages are made of: a module for each, each a function of the code or of committed results."""
