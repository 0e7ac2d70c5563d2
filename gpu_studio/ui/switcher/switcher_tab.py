"""The Switcher tab: switch to a device, and lessons about devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.pages import SWITCHER
from gpu_studio.model.switcher.lessons_model import LessonsModel
from gpu_studio.model.switcher.switch_model import SwitchModel
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.switcher.switch_page import SwitchPage
from gpu_studio.ui.tabs import PagedTab, tab_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_LESSONS = "gpu_studio.ui.switcher.lessons_page:LessonsPage"


class SwitcherTab(PagedTab):
    """The pages Switch and Lessons; the second one is made on first use."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(tab_of(SWITCHER), studio, theme, parent)
        self.switch = SwitchModel(studio, self)
        self.lessons = LessonsModel(studio, self)
        self.add(
            SwitchPage(self.switch, theme),
            LazyPage(_LESSONS, self.lessons, theme, parent=self),
        )
