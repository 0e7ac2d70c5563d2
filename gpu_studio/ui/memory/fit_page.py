"""Will it fit? From a number, a model's file, or a recorded history."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_studio.core.memory.fit import MOST_BATCH, PLANS
from gpu_studio.core.memory.networks import BITS, NETWORK_NAMES
from gpu_studio.core.memory.replay.replay_call import SETTINGS
from gpu_studio.core.memory.replay.what_if_words import DEFAULT_SETTING, RECORDING_SNIPPET
from gpu_studio.model.memory.fit_model import (
    FILE,
    HISTORY,
    NUMBER,
    OWN,
    FitModel,
)
from gpu_studio.model.pages import FIT
from gpu_studio.ui.memory.tank import verdict_part
from gpu_studio.ui.page import Beside, Box, Columns, Flow, Fold, Page, Stack
from gpu_studio.ui.page_controls import Number, Pick, Switch
from gpu_studio.ui.page_parts import Heading, Press, Rows, Words
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_TITLED: dict[str, Any] = {"is_titled": True, "title_letters": 13}
_WAYS = (
    ("A number", NUMBER), ("A model file", FILE), ("A history", HISTORY),
)  # fmt: skip
_NETWORKS = (*NETWORK_NAMES, "11 million", "124 million", "1 billion", "7 billion", "70 billion")
_FILES = "Models, histories (*.safetensors *.gguf *.index.json *.pickle *.pkl);;All files (*)"
_VIEWER = (
    "To see every tensor over time, drop the file on pytorch.org/memory_viz in a browser. It stays "
    "on your PC."
)


class FitPage(Page):
    """Asks in one of three ways, and answers in one form.

    Args:
        memory: the card that is chosen in the tab.
        theme: for the bars.
        parent: owns it.
    """

    model: FitModel

    def __init__(self, memory: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("memory", FitModel(memory), theme, parent)
        self.setObjectName("memory.fit")
        self.model.setParent(self)

    def parts(self) -> Sequence[Part]:
        side = Box(
            Heading("Start from"),
            Switch(of="way", title="Start from", items=_WAYS, is_radio=True, name="fit.way"),
            *self._questions(),
            Words(lambda: self.model.trouble, name="fit.reason"),
            name="fit.question",
        )
        return (Beside(side, Stack(*self._answers()), side_letters=48),)

    def _in(self, *ways: str) -> Callable[[], bool]:
        return lambda: self.model.choices.way in ways

    # ── the question ─────────────────────────────────────────────────────────────────────────

    def _questions(self) -> Sequence[Part]:
        m, network = self.model, self._in(NUMBER, FILE)
        on_card = self._in(NUMBER, FILE, HISTORY)
        return (
            Flow(
                Press("Open file…", self._ask_file, name="fit.open",
                      tip="A safetensors or GGUF file (with the config.json beside it), or a "
                          "history (.pickle); nothing in it is executed"),
                Press("Record one", self._show_lines, name="what_if.record",
                      shown=self._in(HISTORY), tip="The lines that record your own script"),
                Words(lambda: m.file_words, "muted", wraps=False, name="fit.file"),
            ),
            Flow(
                Pick(of="parameters", title="Parameters", items=_NETWORKS, editable=True,
                     **_TITLED, least_letters=13, wrong=lambda: m.is_network_wrong,
                     name="fit.parameters", shown=self._in(NUMBER),
                     tip="A known network such as GPT-2, or a number such as 7B, 350 M or 1e9"),
                Pick(of="dtype", title="Data type", items=tuple(BITS), **_TITLED,
                     least_letters=10, name="fit.dtype", shown=self._in(NUMBER),
                     tip="16-bit is float16 or bfloat16. 8-bit and 4-bit are GGUF's Q8_0 and Q4_0: "
                         "blocks with a scale."),
                Pick(of="plan", title="Optimizer", items=tuple(PLANS), **_TITLED,
                     least_letters=13, name="fit.optimizer", shown=network,
                     tip="AdamW needs as much as Adam; fused=True needs less memory during a step. "
                         "AMP computes a float32 network in 16 bits."),
                Number(of="batch", title="Texts at once", low=1, high=MOST_BATCH, **_TITLED,
                       name="speed.batch", shown=network),
                Number(of="tokens", title="Tokens each", low=0, high=10_000_000, step=1024,
                       special="usual", **_TITLED, name="speed.context", shown=network),
                Pick(of="card", title="Card", items=lambda: m.cards, **_TITLED,
                     least_letters=13, name="fit.card", shown=on_card),
                Number(of="own_gib", title="Its memory", low=0.25, high=1024, decimals=2,
                       suffix=" GiB", **_TITLED, name="fit.own",
                       shown=lambda: on_card() and m.choices.card == OWN),
                Number(of="others_gib", title="In use", low=0, high=1024, step=0.25, decimals=2,
                       suffix=" GiB", special="as now", **_TITLED, name="fit.others",
                       shown=on_card, tip="What CUDA itself and other programs hold of the card"),
                Pick(of="conf", title="Setting", items=SETTINGS, editable=True, **_TITLED,
                     hint=DEFAULT_SETTING, least_letters=13, wrong=lambda: m.conf_error,
                     name="what_if.conf", shown=self._in(HISTORY),
                     tip="Setting of the allocator, as in PYTORCH_CUDA_ALLOC_CONF"),
                shown=on_card,
            ),
        )  # fmt: skip

    def _ask_file(self) -> None:
        if path := ask_open_path(self.window(), "Open a file", _FILES):
            self.model.open_file(Path(path))

    def _show_lines(self) -> None:
        snippets = self.model.memory.studio.snippets
        snippets.show(RECORDING_SNIPPET, FIT)
        snippets.wanted.emit()

    # ── the answer ───────────────────────────────────────────────────────────────────────────

    def _answers(self) -> Sequence[Part]:
        m, history = self.model, self._in(HISTORY)
        return (
            Columns(
                verdict_part(self.theme, partial(m.verdict, 0), "fit"),
                verdict_part(self.theme, partial(m.verdict, 1), "fit.training"),
                presented=True,
            ),
            Words(lambda: m.answer.sentence, name="fit.sentence", presented=True),
            Rows("What helps", ("What helps, best first", "How", "Enough"),
                 lambda: m.answer.steps, name="fit.steps", shown=lambda: bool(m.answer.steps)),
            Box(
                Words(lambda: m.speed[0], "lead", name="speed.sentence"),
                Press("Measure the bandwidth", m.measure, name="speed.measure",
                      shown=lambda: m.is_unmeasured, enabled=lambda: m.can_measure,
                      tip="Copies memory on the device for some seconds"),
                name="speed", shown=lambda: bool(m.speed[0]),
            ),
            Fold(
                Words(lambda: m.answer.details, "muted", name="fit.details"),
                Words(lambda: m.speed[1], "muted", name="speed.detail"),
                Rows("Lines of code at the peak", ("At the peak, by line of code", "Memory"),
                     lambda: m.lines_at_peak, (1,), name="what_if.lines", shown=history),
                Words(_VIEWER, "muted", name="what_if.viewer", shown=history),
                label="Details", name="fit.more", shown=lambda: bool(m.answer.details),
            ),
        )  # fmt: skip
