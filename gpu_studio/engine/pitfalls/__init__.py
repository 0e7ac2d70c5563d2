"""The pitfalls: one file each."""
