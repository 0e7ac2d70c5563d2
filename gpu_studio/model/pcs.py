"""This PC and the ones that the user added, each with its engine and its sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import pc_of
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.model.pc import RemotePc

if TYPE_CHECKING:
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.adapters_here import AdaptersHere
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.pc import Pc, PcPort
    from gpu_studio.model.settings import Settings

MOST_OTHERS = 16


class Pcs(QObject):
    """The PCs whose devices the window has.

    A PC that the user added stays in the settings until it is removed. It is connected when the
    window starts, unless the user disconnected it.

    Signals:
        changed(): a PC was added or removed, or its connection changed.
        added(RemotePc): another PC is there; nothing of it is known yet.
        removed(RemotePc): it is gone, with its devices.
        session_changed(): the state of an engine of another PC changed.
        engine_described(): a new engine of another PC is ready.
        reading_taken(): the sensors of another PC were read.

    Attributes:
        here: this PC.
        adapters: what computes here without PyTorch, at an engine of its own.
        others: the PCs that the user added, in their order.
        is_supported: whether there is a way to another PC at all.
    """

    changed = Signal()
    added = Signal(object)
    removed = Signal(object)
    session_changed = Signal()
    engine_described = Signal()
    reading_taken = Signal()

    def __init__(
        self,
        here: Pc,
        adapters: AdaptersHere,
        settings: Settings,
        port: PcPort | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.here, self.adapters = here, adapters
        self.others: tuple[RemotePc, ...] = ()
        self._settings, self._port = settings, port
        self.is_supported = port is not None
        if port is not None:
            for address in settings.choices.pcs:
                self._join(RemotePc(address, port, self))

    @property
    def all(self) -> tuple[Pc, ...]:
        """All PCs, this one first."""
        return (self.here, *self.others)

    def of(self, address: str) -> Pc:
        """Return the PC of a device by its name or its identity; this one if it is gone."""
        name = pc_of(address)
        if not name and is_adapter(address):
            return self.adapters
        return next((one for one in self.others if one.name == name), self.here)

    def session_of(self, address: str) -> EngineSession:
        """Return the conversation with the engine that has a device."""
        return self.of(address).session

    def start(self) -> None:
        """Connect the PCs that the user did not disconnect."""
        left = self._settings.choices.disconnected_pcs
        for pc in self.others:
            if pc.name not in left:
                pc.open()

    def new(self, address: OtherPc) -> RemotePc:
        """Return a PC that is not added yet: it can be asked whether it answers.

        Raises:
            ValueError: another one has its name, or there are too many; the text is a sentence.
        """
        if self._port is None or len(self.others) >= MOST_OTHERS:
            raise ValueError(f"There are {MOST_OTHERS} other PCs already. Remove one first.")
        if any(one.name.casefold() == address.name.casefold() for one in self.others):
            name = address.name
            raise ValueError(f"There is a PC named “{name}” already. Choose another name.")
        return RemotePc(address, self._port, self)

    def add(self, pc: RemotePc) -> None:
        """Add a new PC, keep it in the settings, and connect it."""
        self._join(pc)
        self._keep()
        pc.open()

    def remove(self, pc: RemotePc) -> None:
        """Disconnect a PC and forget it; its results stay."""
        if pc not in self.others:
            return
        pc.shut()
        self.others = tuple(one for one in self.others if one is not pc)
        self._keep()
        pc.close()
        self.removed.emit(pc)
        self.changed.emit()
        pc.deleteLater()

    def open(self, pc: RemotePc) -> None:
        """Connect a PC, now and at each start."""
        self._remember(pc, connects=True)
        pc.open()

    def shut(self, pc: RemotePc) -> None:
        """Disconnect a PC until the user connects it again."""
        self._remember(pc, connects=False)
        pc.shut()

    def close(self) -> None:
        """End everything on all PCs."""
        for pc in (*self.findChildren(RemotePc), self.here, self.adapters):
            pc.close()

    def _join(self, pc: RemotePc) -> None:
        pc.changed.connect(self.changed)
        pc.session.state_changed.connect(self.session_changed)
        pc.lab.state_changed.connect(self.session_changed)
        pc.session.engine_described.connect(self.engine_described)
        pc.sensors.reading_taken.connect(self.reading_taken)
        self.others = (*self.others, pc)
        self.added.emit(pc)
        self.changed.emit()

    def _keep(self) -> None:
        self._settings.change(pcs=tuple(one.address for one in self.others))

    def _remember(self, pc: RemotePc, *, connects: bool) -> None:
        left = [one for one in self._settings.choices.disconnected_pcs if one != pc.name]
        self._settings.change(disconnected_pcs=tuple(left if connects else [*left, pc.name]))
