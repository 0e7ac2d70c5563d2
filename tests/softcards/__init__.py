"""Soft cards: the unchanged CUDA build of PyTorch on a PC without a GPU. See README.md."""
