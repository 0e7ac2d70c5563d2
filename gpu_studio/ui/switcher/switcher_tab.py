"""The Switcher tab: switch to a device, and lessons about devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.pages import START, SWITCHER
from gpu_studio.model.switcher.lessons_model import LessonsModel
from gpu_studio.model.switcher.start_model import StartModel
from gpu_studio.model.switcher.switch_model import SwitchModel
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.switcher.switch_page import SwitchPage
from gpu_studio.ui.tabs import PagedTab, tab_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_START = "gpu_studio.ui.switcher.start_page:StartPage"
_LESSONS = "gpu_studio.ui.switcher.lessons_page:LessonsPage"


class SwitcherTab(PagedTab):
    """The pages Switch, Start a program and Lessons; all but the first are made on first use."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(tab_of(SWITCHER), studio, theme, parent)
        self.switch = SwitchModel(studio, self)
        self.start = StartModel(studio, self)
        self.lessons = LessonsModel(studio, self)
        self.add(
            SwitchPage(self.switch, theme),
            LazyPage(_START, self.start, theme, parent=self),
            LazyPage(_LESSONS, self.lessons, theme, parent=self),
        )

    def go_to(self, destination: Destination) -> None:
        """Bring a page in front, and choose a lesson or the device to start a program on."""
        super().go_to(destination)
        if destination.page == START and destination.device:
            self.start.choose(card=destination.device)
        if destination.lesson:
            self.lessons.choose(lesson=destination.lesson)
