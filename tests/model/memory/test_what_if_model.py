"""Which question about a history is asked when, with a child that answers when it is let."""

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredWhatIf,
    AskWhatIf,
    OpenedHistory,
    OpenHistory,
)
from gpu_studio.core.memory.replay.what_if import WhatIf
from gpu_studio.model.memory import what_if_model
from gpu_studio.model.memory.what_if_model import WhatIfModel

GIB = 1 << 30
FITS = WhatIf(
    card_bytes=2 * GIB, other_bytes=0, conf="", peak_allocated_bytes=GIB, peak_reserved_bytes=GIB,
    unused_at_peak_bytes=0,
)  # fmt: skip
ON_CARD = AnsweredWhatIf(FITS)


class Asked(QObject):
    """Stands in for `Latest`: notes the questions, and answers when the test does."""

    succeeded = Signal(object)
    failed = Signal(object)
    delayed = Signal()

    def __init__(self, parent: QObject, **_pause: int) -> None:
        super().__init__(parent)
        self.questions: list[object] = []
        self.is_busy = False

    def ask(self, work: partial[object]) -> None:
        self.questions.append(work.args[0])
        self.is_busy = True

    def answer(self, answer: object) -> None:
        self.is_busy = False
        (self.failed if isinstance(answer, Failure) else self.succeeded).emit(answer)

    def drop(self) -> None:
        self.is_busy = False

    close = drop


@pytest.fixture
def model(monkeypatch, qapp):
    monkeypatch.setattr(what_if_model, "Latest", Asked)
    return WhatIfModel()


@pytest.fixture
def opening(model):
    """What opens files."""
    return model.findChildren(Asked)[0]


@pytest.fixture
def asking(model):
    """What is asked about the open history."""
    return model.findChildren(Asked)[1]


def history(content: bytes) -> OpenedHistory:
    return OpenedHistory(
        history=content, device_index=0, conf="", entry_count=0, allocations=0,
        ooms=0, modelled=FITS, peak_reserved_bytes=0, at_peak=(), was_full=False,
        has_private_pool=False,
    )  # fmt: skip


def opened(model: WhatIfModel, opening: Asked, content: bytes) -> None:
    model.open(Path(f"{content.decode()}.pickle"))
    assert isinstance(opening.questions[-1], OpenHistory)
    opening.answer(history(content))
    choose(model)


def choose(model: WhatIfModel, card_bytes: int = 2 * GIB) -> None:
    model.ask(card_bytes=card_bytes, other_bytes=0, conf="")


FIT = "✔ It fits on 2\u202fGiB"


def shown(model: WhatIfModel) -> str:
    return model.answer.verdicts[0].notice.sentence


def test_an_opened_history_is_asked_about_the_card(model, opening, asking):
    opened(model, opening, b"one")
    assert [type(one) for one in asking.questions] == [AskWhatIf]
    assert asking.questions[0].history == b"one"
    assert shown(model) == "Replaying…"
    asking.answer(ON_CARD)
    assert shown(model) == FIT
    assert not asking.is_busy


def test_another_history_is_asked_the_same_anew(model, opening, asking):
    opened(model, opening, b"one")
    opened(model, opening, b"two")
    assert [one.history for one in asking.questions] == [b"one", b"two"]
    asking.answer(ON_CARD)
    opened(model, opening, b"three")
    assert shown(model) == "Replaying…"
    assert asking.questions[-1].history == b"three"


def test_the_same_card_is_not_asked_about_again(model, opening, asking):
    opened(model, opening, b"one")
    asking.answer(Failure(FailureKind.FILE_REFUSED, "It takes too long."))
    choose(model)
    assert shown(model) == "No answer"
    assert model.answer.sentence == "It takes too long."
    assert not asking.is_busy
    choose(model, 4 * GIB)
    assert shown(model) == "Replaying…"
    assert len(asking.questions) == 2
