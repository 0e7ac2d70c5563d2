"""A PC on the Devices page: its heading where there are several, and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QMessageBox

from gpu_studio.core.notice import Notice, Tone, action_label
from gpu_studio.model.pc import RemotePc
from gpu_studio.ui.devices.device_button import DeviceButton
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Columns, Each, Own, Stack
from gpu_studio.ui.page_parts import Press, Words

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.devices.devices import DevicesModel
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.page import Page, Part
    from gpu_studio.ui.theme import Theme

_SIGNS = {  # (icon, its color)
    Tone.GOOD: ("check", "good"),
    Tone.AMBER: ("warning", "amber"),
    Tone.FAILURE: ("warning", "failure_ink"),
    Tone.QUIET: ("clock", "muted"),
    Tone.PLAIN: ("info", "muted"),
}
STACKED = 1000  # letters: no page is so wide
_REMOVE_QUESTION = (
    "Remove {name} from Devices? Its results stay. To use it again, add it with its host."
)


class ToneSign(QLabel):
    """The picture of a tone, as high as some lines of text."""

    def __init__(self, theme: Theme, lines: float = 1.0) -> None:
        super().__init__()
        self._theme, self._lines, self._tone = theme, lines, Tone.PLAIN
        theme.changed.connect(self._paint)

    def show_tone(self, tone: Tone) -> None:
        """Show another tone's picture."""
        self._tone = tone
        self._paint()

    def _paint(self) -> None:
        side = round(self._lines * self.fontMetrics().height())
        self.setFixedWidth(side)
        name, role = _SIGNS[self._tone]
        sign = icon(name, self._theme, role)
        self.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))


def agrees(parent: QWidget, question: str, answer: str, *, name: str) -> bool:
    """Ask before something is lost; return whether the user pressed the answer."""
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    does_it = box.addButton(answer, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    return box.clickedButton() is does_it


def pc_part(pc: Pc, model: DevicesModel, pcs: Pcs, page: Page) -> Part:
    """Return a PC's devices, as far as they are known; with other PCs, below its heading.

    The heading has the answer about the PC; that of another one, what its line can do as well.
    """
    heading = f"pc.{pc.name}.heading" if pc.name else "pc"

    def answer() -> Notice:
        return model.answer_of(pc)

    def identities() -> list[str]:
        # The first device of this PC comes after the first paint, into its room.
        return [one.identity for one in model.devices_of(pc)] or ([] if pc.name else [""])

    def device(identity: str) -> Part:
        def make() -> DeviceButton:
            made = DeviceButton(page.theme)
            made.clicked.connect(lambda: model.select(identity))
            return made

        def show(button: DeviceButton) -> None:
            row = next((one for one in model.devices_of(pc) if one.identity == identity), None)
            if row is not None:
                is_selected = row == model.row
                summary, is_choice = model.summary_of(row), model.is_choice
                button.show_device(row, summary, is_selected=is_selected, is_choice=is_choice)

        return Own(make, show, name=f"device.{identity}", presented=True)

    return Stack(
        Stack(
            Columns(
                Words(f"{pc.name} · over SSH" if pc.name else "This PC", "title",
                      cut=lambda: True, name=f"{heading}.name", stretch=1),
                *(_offers(pc, pcs, page) if isinstance(pc, RemotePc) else ()),
            ),
            Columns(
                Own(lambda: ToneSign(page.theme), lambda sign: sign.show_tone(answer().tone)),
                Stack(
                    Words(answer, name=f"{heading}.answer.sentence"),
                    Words(lambda: answer().next_step, "muted", name=f"{heading}.answer.below"),
                    stretch=1,
                ),
                shown=lambda: answer().sentence,
            ),
            name=heading, shown=lambda: pcs.others,
        ),
        Each(identities, device, share_letters=STACKED,
             name=f"pc.{pc.name}.table" if pc.name else "table"),
        presented=True,
    )  # fmt: skip


def _offers(pc: RemotePc, pcs: Pcs, page: Page) -> tuple[Part, ...]:
    """Return the buttons of another PC, which an audience does not see."""

    def connect_or_not() -> None:
        if pc.notice.action is not None:
            pcs.open(pc)
        else:
            pcs.shut(pc)

    def remove() -> None:
        question = _REMOVE_QUESTION.format(name=pc.name)
        if agrees(page, question, "Remove", name="devices.pc.question"):
            pcs.remove(pc)

    def shown() -> bool:
        return not page.is_presented

    return (
        Press(lambda: action_label(pc.notice.action) or "Disconnect", connect_or_not,
              name=f"pc.{pc.name}.connect", shown=shown),
        Press("Remove…", remove, name=f"pc.{pc.name}.remove", shown=shown),
    )  # fmt: skip
