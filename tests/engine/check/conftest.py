"""A check's stages with less to do than on a card."""

import pytest

from gpu_studio.engine.check import compute, known_answers, layouts, link, load


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stages copy and multiply little: the clocks of these tests tick alone."""
    for module, name, value in (
        (load, "_LARGEST_BYTES", 1 << 20), (load, "_SIDE", load._CPU_SIDE),
        (load, "_LARGEST_STEP_SIDE", load._SMALLEST_SIDE), (load, "_COPY_BYTES", 1 << 20),
        (compute, "_FILLING_CPU", 1 << 18), (compute, "_FILLING", (1 << 24) + 4099),
        (layouts, "OPERATIONS", layouts.OPERATIONS[::5]),
        (known_answers, "KNOWN", known_answers.KNOWN[::12]),
        (link, "_CARD_COPY_BYTES", 2 << 20), (link, "_RAM_COPY_BYTES", 1 << 20),
        (link, "_LARGE_COPY_BYTES", 4 << 20),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
