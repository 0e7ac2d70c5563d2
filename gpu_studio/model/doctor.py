"""The findings about this PC, kept up to date.

The rules and their tables are imported with the first devices, after the window's first paint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.program_form import OF_ANOTHER_PC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors


class Doctor(QObject):
    """The findings about a PC.

    Signals:
        findings_changed(): the findings changed.

    Attributes:
        findings: the findings, worst first; empty until devices are found.
        system: the system of another PC; empty for this one.
    """

    findings_changed = Signal()

    def __init__(
        self, session: EngineSession, sensors: Sensors, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors = session, sensors
        self.findings: Sequence[Finding] = ()
        self.system = ""
        sensors.inventory_changed.connect(self._update)
        sensors.links_changed.connect(self._update)
        session.engine_described.connect(self._update)

    def _update(self) -> None:
        inventory = self._sensors.inventory
        if inventory is None:
            return
        from gpu_studio.core.devices.findings import find  # 20 ms

        findings = find(
            inventory, self._session.description, links=self._sensors.links,
            system=self.system or None, program=OF_ANOTHER_PC if self.system else None,
        )  # fmt: skip
        if self.system:  # the window installs and restarts nothing there
            findings = tuple(msgspec.structs.replace(one, action=None) for one in findings)
        self.findings = findings
        self.findings_changed.emit()
