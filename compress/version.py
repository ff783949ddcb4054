"""The version of this package; pyproject.toml says the same."""

__version__ = "0.1.0"
