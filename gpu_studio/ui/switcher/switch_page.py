"""The Switch page: the devices, what to move, and what a switch did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QHeaderView, QStyledItemDelegate

from gpu_studio.model.switcher.placement_table import DEVICE_ROLE, NAME
from gpu_studio.model.switcher.switch_model import MATRICES, SIZES, TYPES
from gpu_studio.ui.page import Beside, Box, Flow, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, Press, Words
from gpu_studio.ui.parts import show_whole_rows, table
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.switcher.device_cards import DeviceCards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QModelIndex, QPersistentModelIndex
    from PySide6.QtWidgets import QStyleOptionViewItem, QTableView, QWidget

    from gpu_studio.model.switcher.switch_model import SwitchModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_FILES = "Tensors (*.pt *.pth *.bin *.ckpt);;All files (*)"
_ONLY = "“Only this card” starts PyTorch anew: its models and memory are lost."


class SwitchPage(Page):
    """Devices and what to move at the left; what the switch did at the right, in place."""

    model: SwitchModel

    def __init__(self, model: SwitchModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("switcher", model, theme, parent)
        self.setObjectName("switcher.switch")

    def parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Beside(
                Stack(
                    Own(lambda: DeviceCards(self.theme, m.use, m.show_only),
                        lambda cards: cards.show_devices(m.devices), name="cards"),
                    Press(lambda: m.show_all_label, m.show_all, name="show_all",
                          enabled=lambda: m.can_show_all),
                    Words(_ONLY, "muted", name="explained", shown=lambda: m.has_several_cards),
                    Box(
                        Heading("What to move"),
                        Flow(
                            Pick(of="thing", title="Model to move", name="model",
                                 items=lambda: m.things, enabled=lambda: m.can_choose),
                            Pick(of="size", title="Matrix size", name="tensors.size", items=SIZES,
                                 shown=lambda: m.thing == MATRICES),
                            Pick(of="dtype", title="Convert to", name="dtype", items=TYPES,
                                 tip="Convert the floating-point tensors to this type"),
                            Press("Open file…", self._open, name="open", icon="file",
                                  enabled=lambda: m.can_choose,
                                  tip="Open a state dict or another torch.save file that maps "
                                      "names to tensors"),
                            Press(lambda: m.move_label, m.move, name="move", primary=True,
                                  key="run", enabled=lambda: m.can_move, icon="move",
                                  tip=lambda: m.used.reason if m.used else ""),
                        ),
                        Words(lambda: m.about, "muted", name="about_model"),
                        name="what_card",
                    ),
                ),
                Stack(Box(
                    Words(lambda: m.said, "title", name="said"),
                    Words(lambda: m.proof, "muted", name="proof"),
                    Own(self._make_table, show_whole_rows, name="placement",
                        shown=lambda: m.table.row_count),
                    Words(lambda: m.why, "muted", name="why"),
                    tone=lambda: m.tone, name="result_card", presented=True,
                )),
                side_letters=44,
            ),
        )  # fmt: skip

    def head_parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Press("Copy as code", self._copy, name="copy", icon="copy", enabled=lambda: m.code,
                  tip="Copy the lines that use this device in your own script"),
        )  # fmt: skip

    def _make_table(self) -> QTableView:
        view = table(
            self.model.table,
            name="switcher.placement",
            accessible_name="Tensors with their device before and after",
        )
        view.setItemDelegate(_DeviceInk(self.theme, view))
        view.horizontalHeader().setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        return view

    def _open(self) -> None:
        self.model.open_file(ask_open_path(self, "Open a torch.save file", _FILES))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.model.code)


class _DeviceInk(QStyledItemDelegate):
    """Draws cells that name a device in that device's color."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        address = index.data(DEVICE_ROLE)
        if address:
            ink = QColor(self._theme.colour(f"{self._theme.device_role(address)}_ink"))
            for role in (QPalette.ColorRole.Text, QPalette.ColorRole.HighlightedText):
                option.palette.setColor(role, ink)
