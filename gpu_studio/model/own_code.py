"""The user's own code: whether it may run, what it prints, and its own engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.own_code import AllowedCode, question, read_own_code
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCodeOpened,
    OwnCodePrinted,
    WorkloadDescription,
)
from gpu_studio.model.engine_session import EngineSession, EngineState, Reply
from gpu_studio.model.latest import Latest

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import OwnCode
    from gpu_studio.model.studio import Studio

_UNOPENED = WorkloadDescription(
    name="", title="", sentence="Your own code, as it is.", dtypes=("float32",), sizes=(1,),
    throughput_unit="", size_title="Run it once, and its sizes are known",
)  # fmt: skip


class OwnCodeModel(QObject):
    """One code at a time, in an engine of its own that ends with each plan.

    Args:
        studio: its engines, and the folder of what is allowed.
        parent: owns it.

    Signals:
        read(): a file's code is chosen.
        opened(): it ran once, so that its sizes are known.
        changed(): anything else of it is new.

    Attributes:
        code: the chosen code; None before.
        workload: it as a workload; what is not known yet is as usual.
        printed: what it printed since it was chosen.
        failure: why it does not run, as a sentence; empty if it does, or is not known.
        least_s: the time of a run that it needs.
    """

    read = Signal()
    opened = Signal()
    changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._allowed = AllowedCode(studio.data_folder)
        self.session = EngineSession(studio.pcs.here.engine_factory, self, describes=False)
        self.session.request_submitted.connect(self._on_submitted)
        self._reading = Latest(self)
        self._reading.succeeded.connect(self.choose)
        self._reading.failed.connect(self._on_not_read)
        self._reply: Reply | None = None
        self.code: OwnCode | None = None
        self.workload = _UNOPENED
        self.printed = self.failure = ""
        self.least_s = 0.0
        studio.closing.connect(self._reading.close)
        studio.closing.connect(self.session.close)

    @property
    def is_opened(self) -> bool:
        """Whether its sizes are known."""
        return self.workload.throughput_unit != ""

    @property
    def is_opening(self) -> bool:
        """Whether it runs for the first time."""
        return self._reply is not None

    @property
    def may_run(self) -> bool:
        """Whether this very code was allowed before."""
        return self.code is not None and self._allowed.has(self.code)

    @property
    def question(self) -> str:
        """What is asked before it runs; Run is the answer. Empty if it was allowed before."""
        return "" if self.code is None or self.may_run else question(self.code)

    def open_file(self, path: Path) -> None:
        """Choose the code in a file."""
        self._reading.ask(lambda is_over: read_own_code(path, is_over))

    def choose(self, code: OwnCode) -> None:
        """Choose a code; nothing of it runs."""
        self.end()
        self.code = code
        self.workload = msgspec.structs.replace(_UNOPENED, name=code.name, title=code.name)
        self.printed = self.failure = ""
        self.read.emit()

    def choose_opened(self, code: OwnCode, workload: WorkloadDescription) -> None:
        """Choose a code that another page has run, as the workload that it is."""
        self.end()
        self.code, self.workload = code, workload
        self.printed = self.failure = ""

    def open(self) -> None:
        """Run it once on the CPU; the user wants it."""
        if self.code is None or self.is_opening:
            return
        self._allowed.add(self.code)
        self.printed = self.failure = ""
        self.start_engine()
        self._reply = self.session.submit(OpenOwnCode(code=self.code))
        self._reply.finished.connect(self._on_opened)
        self.changed.emit()

    def give_up(self) -> None:
        """Stop its first run, and end its engine."""
        self.end()
        self.changed.emit()

    def start_engine(self) -> None:
        """Let an engine begin, with the cards of the usual one; does nothing if there is one."""
        if self.session.state in (EngineState.ABSENT, EngineState.FAILED):
            self.session.restart(self._studio.session.environment)

    def end(self) -> None:
        """End its engine and all that it left there."""
        self._reply = None
        self.session.end()

    def _on_submitted(self, reply: Reply) -> None:
        reply.event_received.connect(self._on_event)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, OwnCodePrinted):
            self.printed += event.text
            self.changed.emit()

    def _on_opened(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None or self.sender() is not reply:
            return
        match reply.last:
            case OwnCodeOpened() as event:
                self.workload, self.least_s = event.workload, event.least_s
                self.opened.emit()
            case RequestFailed(failure=failure):
                self._fail(failure.message)
            case EngineEnded(stopped=False, exit_code=code):
                self._fail(describe_exit(code))
            case _:
                self._fail("")

    def _on_not_read(self, failure: Failure) -> None:
        self._studio.headlines.notify(failure.message)

    def _fail(self, sentence: str) -> None:
        self.end()
        self.failure = sentence
        self.changed.emit()
