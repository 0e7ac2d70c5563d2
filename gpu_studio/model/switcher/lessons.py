"""The lessons: mistakes that the engine describes, and experiments with workloads."""

from __future__ import annotations

import msgspec

SEVERAL_CARDS = "data_parallel"


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake of the engine's or an experiment with a workload.

    Attributes:
        name: of the pitfall or of the workload.
        shows: what you see, in a few words.
        is_experiment: whether ways of a workload are compared.
        ways: of an experiment, the options of each; by default every value of the first option.
    """

    name: str
    title: str
    shows: str
    sentence: str
    why: str
    remark: str = ""
    remedy: str = ""
    source: str = ""
    otherwise: str = ""
    is_experiment: bool = False
    ways: tuple[dict[str, str], ...] = ()


EXPERIMENTS = (
    Lesson(
        name="dataloader", title="Feeding the card", shows="batches, pinned, the whole set",
        is_experiment=True,
        sentence="Compare the ways in which a batch comes to the card.",
        why=(
            "Your data is in the PC's memory, but a card computes in its own. Each way of copying "
            "a batch takes another time and other memory."
        ),
    ),
    Lesson(
        name="train_step", title="AMP", shows="mixed precision, on and off",
        is_experiment=True,
        sentence="Train with and without automatic mixed precision.",
        why=(
            "Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It "
            "helps on cards with hardware support. The loss should take the same course."
        ),
    ),
    Lesson(
        name="conv2d", title="Same numbers twice", shows="what repeatable costs",
        is_experiment=True,
        sentence="Compare the ways in which cuDNN chooses its algorithm.",
        why=(
            "cuDNN has several algorithms for a convolution. “benchmark” times them first and uses "
            "the fastest. “deterministic” uses only algorithms with bit-for-bit reproducible "
            "results."
        ),
    ),
    Lesson(
        name=SEVERAL_CARDS, title="Several cards", shows="one batch, split",
        is_experiment=True,
        ways=(
            {"way": "DataParallel", "processes": "1"},
            {"way": "DataParallel", "processes": "2"},
            {"way": "DistributedDataParallel", "processes": "2"},
        ),
        sentence="Split one batch over several cards.",
        why=(
            "Each card learns from a part of the batch, and their gradients are combined. It helps "
            "if computing takes longer than combining the results."
        ),
    ),
)  # fmt: skip
