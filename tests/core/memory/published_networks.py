"""The tensors of real networks, in the order in which PyTorch makes them."""

from __future__ import annotations

from itertools import pairwise

from torch import nn


def _counts(*layers: nn.Module) -> list[int]:
    return [parameter.numel() for layer in layers for parameter in layer.parameters()]


def _convolution(wide: int, out: int, side: int = 3) -> list[int]:
    """Return a convolution without bias and its batch normalization."""
    return _counts(nn.Conv2d(wide, out, side, bias=False), nn.BatchNorm2d(out))


def resnet_18() -> list[int]:
    """He et al. 2016, table 1; the shapes of torchvision 0.20, 11,689,512 parameters."""
    counts = _convolution(3, 64, 7)
    for before, wide in pairwise((64, 64, 128, 256, 512)):
        counts += _convolution(before, wide) + _convolution(wide, wide)
        if before != wide:
            counts += _convolution(before, wide, 1)
        counts += _convolution(wide, wide) * 2
    return counts + _counts(nn.Linear(512, 1000))


def gpt_2_small() -> list[int]:
    """Radford et al. 2019; 12 layers of 768, 50,257 tokens, output tied: 124,439,808."""
    counts = [50257 * 768, 1024 * 768]
    for _ in range(12):
        counts += _counts(
            nn.LayerNorm(768), nn.Linear(768, 2304), nn.Linear(768, 768),
            nn.LayerNorm(768), nn.Linear(768, 3072), nn.Linear(3072, 768),
        )  # fmt: skip
    return counts + _counts(nn.LayerNorm(768))


def vit_b_16() -> list[int]:
    """Dosovitskiy et al. 2021, ViT-Base with patches of 16 × 16: 86,567,656."""
    counts = [768, *_counts(nn.Conv2d(3, 768, 16)), 197 * 768]
    for _ in range(12):
        counts += _counts(
            nn.LayerNorm(768), nn.MultiheadAttention(768, 12),
            nn.LayerNorm(768), nn.Linear(768, 3072), nn.Linear(3072, 768),
        )  # fmt: skip
    return counts + _counts(nn.LayerNorm(768), nn.Linear(768, 1000))


def unet() -> list[int]:
    """Ronneberger et al. 2015, figure 1, with batch normalization; 31 million parameters."""
    counts: list[int] = []
    for before, wide in pairwise((3, 64, 128, 256, 512, 1024)):
        counts += _convolution(before, wide) + _convolution(wide, wide)
    for before, wide in pairwise((1024, 512, 256, 128, 64)):
        counts += _counts(nn.ConvTranspose2d(before, wide, 2))
        counts += _convolution(before, wide) + _convolution(wide, wide)
    return counts + _counts(nn.Conv2d(64, 2, 1))


def lstm() -> list[int]:
    """Zaremba et al. 2014, the medium network: 2 layers of 650, 10,000 words: 19.8 million."""
    return _counts(nn.Embedding(10000, 650), nn.LSTM(650, 650, 2), nn.Linear(650, 10000))


def small_mlp() -> list[int]:
    """PyTorch's quickstart: 784, 512, 512, 10; 669,706 parameters."""
    return _counts(nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10))


def embedding_heavy() -> list[int]:
    """A recommender as in Naumov et al. 2019: 8 tables of 16 numbers and two small MLPs."""
    tables = [rows * 16 for rows in (1_460_000, 583, 900_000, 305, 24, 12_517, 633, 350_000)]
    return tables + _counts(nn.Linear(13, 512), nn.Linear(512, 256), nn.Linear(256, 16))


def many_tiny_tensors() -> list[int]:
    """Return the vectors of a thousand layers of 64 channels."""
    return [64] * 4000


def one_huge_tensor() -> list[int]:
    """Return a single matrix."""
    return [50_000_000]


def convolutions_only() -> list[int]:
    """Springenberg et al. 2015, All-CNN-C."""
    shapes = ((3, 96), (96, 96), (96, 96), (96, 192), (192, 192), (192, 192), (192, 192))
    counts = _counts(*(nn.Conv2d(wide, out, 3) for wide, out in shapes))
    return counts + _counts(nn.Conv2d(192, 192, 1), nn.Conv2d(192, 10, 1))


def lora() -> list[int]:
    """Hu et al. 2021: rank 8 beside the four 4096 × 4096 of 32 layers."""
    return [8 * 4096] * (2 * 4 * 32)


def mixture_of_experts() -> list[int]:
    """Muennighoff et al. 2024 (OLMoE): 64 experts of 2048 × 1024; 4 of its 16 layers."""
    counts = [50304 * 2048]
    for _ in range(4):
        counts += [2048] * 2 + [2048 * 2048] * 4 + [2048 * 64] + [2048 * 1024] * 3 * 64
    return [*counts, 2048]


def thirds() -> list[int]:
    """Return matrices of just over a third of the 20 MiB that PyTorch asks the driver for."""
    return [1328 * 1328] * 40


PUBLISHED = (unet, lstm, resnet_18, gpt_2_small, vit_b_16, small_mlp)
FURTHER = (
    embedding_heavy, many_tiny_tensors, one_huge_tensor, convolutions_only, lora,
    mixture_of_experts, thirds,
)  # fmt: skip
