"""The experiments among the lessons: ways of a workload that are compared."""

from __future__ import annotations

from gpu_studio.core.messages.pitfall_messages import PitfallDescription

SEVERAL_CARDS = "data_parallel"


def _experiment(
    workload: str, title: str, shows: str, sentence: str, why: str
) -> PitfallDescription:
    return PitfallDescription(
        name=workload, title=title, shows=shows, sentence=sentence, why=why, remedy=""
    )


EXPERIMENTS = (
    _experiment(
        "dataloader", "Feeding the card", "batches, pinned, the whole set",
        "Compare the ways in which a batch comes to the card.",
        "Your data is in the PC's memory, but a card computes in its own. Each way of copying a "
        "batch takes another time and other memory.",
    ),
    _experiment(
        "train_step", "AMP", "mixed precision, on and off",
        "Train with and without automatic mixed precision.",
        "Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It "
        "helps on cards with hardware support. The loss should take the same course.",
    ),
    _experiment(
        "conv2d", "Same numbers twice", "what repeatable costs",
        "Compare the ways in which cuDNN chooses its algorithm.",
        "cuDNN has several algorithms for a convolution. “benchmark” times them first and uses the "
        "fastest. “deterministic” uses only algorithms with bit-for-bit reproducible results.",
    ),
    _experiment(
        SEVERAL_CARDS, "Several cards", "one batch, split",
        "Split one batch over several cards.",
        "Each card learns from a part of the batch, and their gradients are combined. It helps if "
        "computing takes longer than combining the results.",
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
