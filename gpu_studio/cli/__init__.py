"""The terminal's side of the program."""
