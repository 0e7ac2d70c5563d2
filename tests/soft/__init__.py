"""What PyTorch itself does on soft cards, without the program."""
