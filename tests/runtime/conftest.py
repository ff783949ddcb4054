"""The toy folder and the cache of `runtime_fixtures`."""

from runtime_fixtures import cache, folder

__all__ = ["cache", "folder"]
