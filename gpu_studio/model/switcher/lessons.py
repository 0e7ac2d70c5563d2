"""The experiments among the lessons: ways of a workload that are compared."""

from __future__ import annotations

from gpu_studio.core.messages.pitfall_messages import PitfallDescription

SEVERAL_CARDS = "data_parallel"

EXPERIMENTS = (
    PitfallDescription(
        name="dataloader", title="Feeding the card", shows="ways to copy",
        sentence="Compare the ways in which a batch comes to the card.",
        why="Your data is in the PC's memory, but a card computes in its own. Each way of copying "
        "a batch takes another time and other memory.",
    ),
    PitfallDescription(
        name="train_step", title="AMP", shows="mixed precision",
        sentence="Train with and without automatic mixed precision.",
        why="Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It "
        "helps on cards with hardware support. The loss should take the same course.",
    ),
    PitfallDescription(
        name="conv2d", title="Same numbers twice", shows="what it costs",
        sentence="Compare the ways in which cuDNN chooses its algorithm.",
        why="cuDNN has several algorithms for a convolution. “benchmark” times them first and uses "
        "the fastest. “deterministic” uses only algorithms with bit-for-bit reproducible results.",
    ),
    PitfallDescription(
        name=SEVERAL_CARDS, title="Several cards", shows="a split batch",
        sentence="Split one batch over several cards.",
        why="Each card learns from a part of the batch, and their gradients are combined. It helps "
        "if computing takes longer than combining the results.",
    ),
)  # fmt: skip
WAYS = {
    SEVERAL_CARDS: (
        {"way": "DataParallel", "processes": "1"},
        {"way": "DataParallel", "processes": "2"},
        {"way": "DistributedDataParallel", "processes": "2"},
    )
}
"""The options of each way, by workload; of the others, every value of the first option."""
