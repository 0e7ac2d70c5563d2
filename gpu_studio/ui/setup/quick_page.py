"""The first number without PyTorch, in the place of the tabs: who is faster, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.wheel_table import download_size
from gpu_studio.model.pages import CHECK, RACE
from gpu_studio.ui.page import Box, Flow, Page
from gpu_studio.ui.page_parts import Bars, Press, ProgressBar, Words
from gpu_studio.ui.parts import GAP, MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.model.builds import Builds
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.quick_look import QuickLook
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_ADDS = (
    "PyTorch adds training steps, the full check of the card, more races and lessons. It downloads "
    "{size}, which takes minutes."
)


class QuickPage(Page):
    """Stands in the place of the tabs.

    Args:
        model: measures.
        builds: the builds of PyTorch that can be installed; None if it is there already.
        theme: for the colors.
        close: leads back.
        set_up: shows the page that installs PyTorch.
        show: shows a page of the tabs for a device.
    """

    model: QuickLook

    def __init__(
        self,
        model: QuickLook,
        builds: Builds | None,
        theme: Theme,
        close: Callable[[], object],
        set_up: Callable[[], object],
        show: Callable[[PageId, str], object],
    ) -> None:
        self._builds, self._close, self._set_up, self._show = builds, close, set_up, show
        super().__init__("quick", model, theme)
        self.setObjectName("quick.page")
        self.setAccessibleName("Measure without PyTorch")
        layout = self.layout()
        assert layout is not None
        layout.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)

    def parts(self) -> Sequence[Part]:
        """Return the verdict with its bars, what is missing, and what PyTorch adds."""
        m = self.model
        return (
            Flow(
                Press("Measure again", m.measure, name="again", primary=True,
                      shown=lambda: not m.is_at_work),
                Press("Race it", lambda: self._show(RACE, m.next_device), name="race", icon="flag",
                      tip="See it and the CPU draw the same picture, in turns",
                      shown=lambda: m.next_device),
                Press("Test its memory", lambda: self._show(CHECK, m.next_device), name="memory",
                      icon="shield", shown=lambda: m.next_device,
                      tip="Patterns in as much memory as the driver gives, and exact work"),
                Press("Stop", m.stop, name="stop", shown=lambda: m.is_at_work),
                Press("Back", self._close, name="close", link=True),
            ),
            Box(
                Words(self._headline, "headline", name="headline"),
                ProgressBar("Progress of the measurement", lambda: m.share, name="progress",
                            shown=lambda: m.is_at_work),
                Bars("Speed of each device", lambda: m.bars, name="bars"),
                Words(lambda: m.second_verdict, name="second"),
                Words(lambda: m.trust.sentence, "muted", name="trust",
                      tip=lambda: m.trust.detail),
                Words(lambda: m.lack, name="lack"),
                name="hero",
            ),
            Box(
                Words(self._adds, name="adds"),
                Flow(Press("Install PyTorch…", self._set_up, name="set_up")),
                shown=lambda: self._adds(), name="pytorch",
            ),
        )  # fmt: skip

    def _headline(self) -> object:
        m = self.model
        return m.verdict if m.verdict.sentence else m.doing

    def _adds(self) -> str:
        builds = self._builds
        if builds is None or builds.has_engine or not builds.planned:
            return ""
        return _ADDS.format(size=" and ".join(map(download_size, builds.planned)))
