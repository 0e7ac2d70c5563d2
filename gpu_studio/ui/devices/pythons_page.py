"""PyTorch on this PC: what other programs have, and the line that mends it, to copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.pythons.kernel import kernel_command
from gpu_studio.core.pythons.verdict import PythonVerdict, cover_words
from gpu_studio.model.devices.pythons_model import MOST_SHOWN, PythonsModel
from gpu_studio.ui.devices.pc_part import STACKED, ToneSign
from gpu_studio.ui.page import Box, Columns, Each, Flow, Own, Page, Stack
from gpu_studio.ui.page_parts import Press, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.pythons.verdict import Judged
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_TONES = {
    PythonVerdict.WRONG: Tone.AMBER,
    PythonVerdict.UNSURE: Tone.PLAIN,
    PythonVerdict.RIGHT: Tone.GOOD,
}
_RUN_TIP = "Starts this Python and lets its PyTorch compute on each card; takes up to 90 s"


class PythonsPage(Page):
    """The answer, then each Python: those that cannot use the card first, with their line."""

    model: PythonsModel

    def __init__(self, studio: Studio, theme: Theme) -> None:
        model = PythonsModel(studio)
        model.follow(studio.sensors.inventory_changed)
        self._sensors = studio.sensors
        super().__init__("pythons", model, theme)
        model.setParent(self)

    def head_parts(self) -> Sequence[Part]:
        """Return what starts and ends the search."""
        m = self.model
        return (
            Press(lambda: "Look again" if m.has_looked else "Look for PyTorch", lambda: m.look(),
                  name="look", icon="refresh", primary=lambda: not m.has_looked,
                  enabled=self._can_look),
            Press("Add folder…", self._ask_folder, name="folder", icon="file",
                  enabled=self._can_look,
                  tip="Look in one program's folder; you can also drop it on the window"),
            Press("Stop", m.stop, name="stop", key="stop", enabled=lambda: m.is_busy),
        )  # fmt: skip

    def parts(self) -> Sequence[Part]:
        """Return the answer and the Pythons."""
        m = self.model
        return (
            Box(
                Words(lambda: m.sentence, "title", name="sentence"),
                Words(lambda: m.about, "muted", name="about"),
                name="hero",
            ),
            Box(
                Each(lambda: range(min(len(m.verdicts), MOST_SHOWN)), self._python,
                     share_letters=STACKED),
                name="list", shown=lambda: m.verdicts,
            ),
            Words(lambda: m.left_out, "muted", name="left_out"),
        )  # fmt: skip

    def _python(self, at: int) -> Part:
        """Return a Python: what it is in a row, and its line below."""
        m, name = self.model, f"{at}"

        def now() -> Judged:
            return m.verdicts[at]

        def facts() -> str:
            torch = now().environment.torch
            version = torch.version.partition("+")[0] or "unknown"
            return f"PyTorch {version} · {now().build}"

        def state() -> Notice:
            one = now()
            if m.tried == one.environment.site:
                return Notice("A small kernel runs…", Tone.QUIET)
            words = one.reason or cover_words(one)
            return Notice(words, _TONES[one.verdict] if one.line.text else Tone.PLAIN)

        def more() -> str:
            return "\n".join(filter(None, (now().line.why_none, now().line.note)))

        return Stack(
            Columns(
                Own(lambda: ToneSign(self.theme),
                    lambda sign: sign.show_tone(_TONES[now().verdict])),
                Words(lambda: now().environment.program, "value", name=f"{name}.program",
                      cut=lambda: True, stretch=4),
                Words(lambda: now().environment.folder, "muted", name=f"{name}.folder",
                      cut=lambda: True, stretch=4),
                Words(facts, name=f"{name}.facts", stretch=3),
                Words(state, name=f"{name}.state", stretch=5),
                Press("Run a kernel", lambda: m.try_kernel(at), name=f"{name}.run", link=True,
                      enabled=lambda: not m.is_busy and kernel_command(now().environment),
                      tip=_RUN_TIP),
            ),
            Columns(
                Words(lambda: now().line.text, "muted", name=f"{name}.line", stretch=1),
                Flow(
                    Press(lambda: "Copy for PowerShell" if now().line.cmd else "Copy",
                          lambda: _copy(now().line.text), name=f"{name}.copy", icon="copy"),
                    Press(lambda: "Copy for cmd" if now().line.cmd else "",
                          lambda: _copy(now().line.cmd), name=f"{name}.copy_cmd"),
                ),
                name=f"{name}.mend", shown=lambda: now().line.text,
            ),
            Words(more, "muted", name=f"{name}.more"),
            name=name,
        )  # fmt: skip

    def _can_look(self) -> bool:
        return self._sensors.inventory is not None and not self.model.is_busy

    def _ask_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Look for PyTorch in a folder")
        if chosen:
            self.model.look(Path(chosen))


def _copy(line: str) -> None:
    QGuiApplication.clipboard().setText(line)
