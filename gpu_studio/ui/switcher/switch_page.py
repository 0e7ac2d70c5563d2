"""The Switch page: the devices, what to move, and what a switch did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPalette
from PySide6.QtWidgets import QHeaderView, QStyledItemDelegate, QWidget

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.switch_model import TYPES
from gpu_studio.model.text_rows import DEVICE_ROLE, TextRows, plain_tip
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Beside, Box, Columns, Each, Flow, Fold, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, Press, Words
from gpu_studio.ui.parts import show_whole_rows, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QModelIndex, QPersistentModelIndex
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QStyleOptionViewItem, QTableView

    from gpu_studio.model.switcher.device_words import DeviceWords
    from gpu_studio.model.switcher.switch_model import SwitchModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_CARD_LETTERS = 30
_TENSOR_HEAD = ("Tensor", "Shape", "Type", "Bytes", "Before", "After")
_NUMBERS = (3,)
_SWATCH, _ICON = 34, 20
_ONLY = "“Only this card” unloads all models."


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
                    Each(lambda: [one.identity for one in m.devices], self._device,
                         share_letters=_CARD_LETTERS, name="cards"),
                    Press(lambda: m.show_all_label, m.show_all, name="show_all",
                          enabled=lambda: m.can_show_all),
                    Press(lambda: m.start_label, m.go_to_start, name="start", link=True),
                    Words(_ONLY, "muted", name="explained", shown=lambda: m.has_several_cards),
                    Box(
                        Heading("What to move"),
                        Flow(
                            Pick(of="thing", title="Model to move", name="model",
                                 items=lambda: m.things, enabled=lambda: m.can_choose),
                            Pick(of="dtype", title="Convert to", name="dtype", items=TYPES,
                                 tip="Convert the floating-point tensors to this type"),
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
                    Words(lambda: m.proof if m.proof.tone is not Tone.PLAIN else "",
                          name="trouble"),
                    Own(self._make_table, self._show_table, name="placement",
                        shown=lambda: m.moved),
                    Fold(Words(lambda: m.proof, "muted", name="proof"), label="What the move took",
                         name="proof", shown=lambda: m.proof.sentence and not m.is_moving
                         and m.proof.tone is Tone.PLAIN),
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

    def _device(self, identity: str) -> Part:
        """Return the card of a device, with the mark of the one in use."""
        m = self.model

        def now() -> DeviceWords:
            return next(one for one in m.devices if one.identity == identity)

        return Box(
            Columns(
                Own(lambda: _Swatch(self.theme),
                    lambda swatch: swatch.show_device(identity, now().address)),
                Stack(
                    Words(lambda: now().name, "value"),
                    Words(lambda: now().facts, "muted", name=f"facts.{identity}"),
                    stretch=1,
                ),
            ),
            Words(lambda: now().warning, "amber"),
            Flow(
                Words("✔ in use", "good", wraps=False, name=f"mark.{identity}",
                      shown=lambda: now().is_used),
                Press(lambda: now().use, lambda: m.use(identity), name=f"activate.{identity}",
                      enabled=lambda: now().can_use,
                      tip=lambda: f"New tensors go to {now().number} {now().name}"),
                Press(lambda: now().only, lambda: m.show_only(identity),
                      name=f"visible_only.{identity}", enabled=lambda: now().can_show_only,
                      tip="Starts PyTorch anew with CUDA_VISIBLE_DEVICES; your results stay"),
            ),
            name=f"card.{identity}", tone=lambda: Tone.GOOD if now().is_used else Tone.PLAIN,
        )  # fmt: skip

    def _make_table(self) -> QTableView:
        view = table(
            TextRows(_TENSOR_HEAD, _NUMBERS, self, tip=plain_tip),
            name="switcher.placement",
            accessible_name="Tensors with their device before and after",
        )
        view.setItemDelegate(_DeviceInk(self.theme, view))
        view.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        return view

    def _show_table(self, view: QTableView) -> None:
        rows = view.model()
        assert isinstance(rows, TextRows)
        rows.set_rows(self.model.placed)
        show_whole_rows(view)

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


class _Swatch(QWidget):
    """The icon of a device in its color of every curve and table; hollow if it has none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[str, str | None] = ("", None)
        self.setFixedSize(QSize(_SWATCH, _SWATCH))
        theme.changed.connect(self.update)

    def show_device(self, identity: str, address: str | None) -> None:
        if self._shown != (identity, address):
            self._shown = identity, address
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        identity, address = self._shown
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        role = self._theme.device_role(address) if address else "other"
        color = QColor(self._theme.colour(role))
        painter.setPen(color)
        if address:
            painter.setBrush(color)
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)
        ink = "on_device" if address else "muted"
        picture = icon("cpu" if is_cpu(identity) else "card", self._theme, ink)
        place = QRect(0, 0, _ICON, _ICON)
        place.moveCenter(self.rect().center())
        picture.paint(painter, place)
