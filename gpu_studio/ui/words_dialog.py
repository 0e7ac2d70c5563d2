"""Help: what the words mean, and how a time is measured."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.ui.parts import GAP, Card, Text, resize_on_screen, section

_SIZE = (760, 620)


GLOSSARY = (
    ("Allocated", "Graphics memory that tensors fill now."),
    ("AMP", "Automatic mixed precision: part of a network is computed in 16 bits, to save time and "
     "memory."),
    ("Bandwidth", "How many bytes a second can be read or written, in GB/s. It limits simple work "
     "on much data."),
    ("Batch", "How many examples a network works on at once. A larger one needs more memory."),
    ("Checked", "The result was compared with one computed in another way, and agreed."),
    ("Compute capability", "The generation of an NVIDIA chip, such as 6.1. A build of PyTorch has "
     "code for some of them."),
    ("Crossover", "The size of work from which on the card is faster than the processor."),
    ("CUDA", "NVIDIA's way to compute on a graphics card. PyTorch uses it through the driver."),
    ("Driver", "The program of the card's maker between the system and the card."),
    ("float32, float16", "How a number is stored: in 32 or in 16 bits. Fewer bits are less precise "
     "and often faster."),
    ("Fragmented", "Memory that is free, but in pieces that are too small."),
    ("GFLOP/s", "Billions of additions and multiplications a second."),
    ("GiB, MiB", "1,073,741,824 and 1,048,576 bytes. GB and MB are 1,000,000,000 and 1,000,000."),
    ("Interval", "Where the true median lies in 95 of 100 measurements such as this one."),
    ("Median", "The time in the middle: half of the measured times are longer."),
    ("Out of memory", "A tensor was wanted for which the card has no room left."),
    ("Reserved", "Graphics memory that PyTorch holds for tensors, filled or empty. Empty cache "
     "gives the empty part back."),
    ("Tensor", "A table of numbers in any number of dimensions: what PyTorch computes with."),
    ("VRAM", "The memory on a graphics card. That of the PC is RAM."),
    ("Warm-up", "Work before the timing begins, until the device is at its speed."),
)  # fmt: skip
"""Pairs of a word and what it means, in the order of the alphabet."""

HOW_A_TIME_IS_MEASURED = (
    "Memory is made ready and the result is checked before the timing begins. After a warm-up, the "
    "work is repeated, and each time counts; none is left out. On a card, the card's own clock is "
    "read when the work is done, not when it was handed over. Devices that are compared take "
    "turns, so that what else the PC does meets all of them. The result is the median with its "
    "interval. "
    "If the two overlap, or other programs kept the PC too busy, no device is called faster."
)


class WordsDialog(QDialog):
    """Explains the words, then the method."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("words")
        self.setWindowTitle("Words and how a time is measured")
        resize_on_screen(self, _SIZE)
        page = QWidget()
        page.setProperty("page", True)
        column = QVBoxLayout(page)
        column.setSpacing(GAP)
        method = Card()
        method.column.addWidget(section("How a time is measured"))
        method.column.addWidget(Text(HOW_A_TIME_IS_MEASURED, name="words.method", wraps=True))
        column.addWidget(method)
        words = Card()
        column.addWidget(words)
        words.column.addWidget(section("Words"))
        grid = QGridLayout()
        words.column.addLayout(grid)
        grid.setHorizontalSpacing(2 * GAP)
        grid.setColumnStretch(1, 1)
        for row, (word, meaning) in enumerate(GLOSSARY):
            grid.addWidget(Text(word, "value"), row, 0)
            grid.addWidget(Text(meaning, wraps=True), row, 1)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        outer = QVBoxLayout(self)
        outer.addWidget(scroll, 1)
        outer.addWidget(buttons)
