"""Finished runs, read and grouped for a report: which are seeds of one another, on which machine, with which answers."""
