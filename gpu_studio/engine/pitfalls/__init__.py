"""The pitfalls of the lab: one file each."""
