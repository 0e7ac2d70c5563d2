"""What the PC says of itself."""
