"""`predict`: its command, and one file for each form of input and output."""
