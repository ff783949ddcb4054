"""Numbers, words and cells as text: what every part of a report is written with."""
