"""The status bar: engine, current device and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from gpu_studio.core.devices.devices import short_name
from gpu_studio.model.engine_session import EngineState
from gpu_studio.ui.parts import Text, letters

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio


_RELEASED = "waiting for other work"
_STARTING = "starting and loading PyTorch"  # it takes seconds: longer than any other state
_MISSING = "not installed"
_AWAKE = "this PC stays awake until it is done"
_OPENING_LETTERS = 40


class StatusLine(Text):
    """Shows the engine's state, the current device, and the versions of torch and driver."""

    def __init__(self, studio: Studio) -> None:
        super().__init__("", "muted", name="status")
        self._studio = studio
        self._opening = ""
        studio.session.state_changed.connect(self._update)
        studio.session.engine_described.connect(self._update)
        studio.board.changed.connect(self._update)
        studio.sensors.inventory_changed.connect(self._update)
        studio.wakefulness.changed.connect(self._update)
        studio.runs.marks_changed.connect(self._update)
        self._update()

    def show_opening(self, sentence: str) -> None:
        """Show first which file is being opened; nothing of it without a sentence."""
        room = letters(self, _OPENING_LETTERS)
        self._opening = self.fontMetrics().elidedText(sentence, Qt.TextElideMode.ElideMiddle, room)
        self._update()

    def _update(self) -> None:
        state = self._studio.session.state
        doing = _STARTING if state is EngineState.STARTING else state.value
        if self._studio.session.is_released:
            doing = _RELEASED
        elif state is EngineState.ABSENT and self._studio.session.absence:
            doing = _MISSING
        elif title := self._studio.runs.running_title:
            doing = f"running {title}"
        awake = _AWAKE if self._studio.wakefulness.is_kept else ""
        parts = [self._opening, f"PyTorch: {doing}", awake, self._device(), *self._versions()]
        self.setText("  ·  ".join(part for part in parts if part))

    def _device(self) -> str:
        description = self._studio.session.description
        inventory = self._studio.sensors.inventory
        if description is None or inventory is None:
            return ""
        current = self._studio.board.current
        shown = f"{current.number} {short_name(current.name)}"
        # The device in use on the Switch page may be another one.
        return shown if current.is_cpu else f"card {shown}"

    def _versions(self) -> list[str]:
        description = self._studio.session.description
        inventory = self._studio.sensors.inventory
        if self._studio.session.state is EngineState.ABSENT or description is None:
            return []
        versions = [f"PyTorch {description.torch_version}"]
        if description.recording:
            versions.append(f"recording: {description.recording}")
        if inventory is not None:
            driver = inventory.driver.version
            others = [card for card in inventory.cards if not card.is_cudas]
            if driver and len(others) < len(inventory.cards):
                versions.append(f"driver {driver}")
            elif not others:
                versions.append("no NVIDIA driver")
        return versions
