"""Starting the user's own program on one card: what is set, and whether it uses the card."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.program_start import (
    CHOOSING,
    KeptStart,
    StartTarget,
    drawing_variables,
    shell_lines,
    shortcut,
    split_command,
    start_variables,
    targets,
    vulkan_devices,
)
from gpu_studio.core.switcher.start_watch import StartWatch
from gpu_studio.core.texts import file_name
from gpu_studio.model.latest import Latest
from gpu_studio.model.page_model import PageModel
from gpu_studio.process.child_call import call_child
from gpu_studio.process.started_program import StartFailedError, leave, start_program

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Reading
    from gpu_studio.core.failure import Failure
    from gpu_studio.model.studio import Studio

_MOST_KEPT = 8
_LOOK_MS = 1000
_NAME = "start"


class StartChoices(msgspec.Struct, frozen=True):
    """The command as it is typed, and what names the card."""

    command: str = ""
    card: str = ""


class _Plan(NamedTuple):
    """What a start needs."""

    words: list[str]
    target: StartTarget
    variables: dict[str, str]


class StartModel(PageModel):
    """Starts programs on this PC's cards and watches the last one.

    Signals:
        line_made(str): the line to copy.
        shortcut_made(Shortcut): a shortcut to save.
    """

    line_made = Signal(str)
    shortcut_made = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(StartChoices(), parent)
        self._studio, self._sensors = studio, studio.sensors
        kept = self.kept
        if kept:
            self.choices = StartChoices(command=kept[0].command, card=kept[0].card)
        self._failure = Notice()
        self._plan: _Plan | None = None
        self._then: Callable[[_Plan], None] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._watch: StartWatch | None = None
        self._began_s = 0.0
        self._plans = Latest(self)
        self._plans.succeeded.connect(self._on_planned)
        self._plans.failed.connect(self._on_failed)
        self._clock = QTimer(self, interval=_LOOK_MS)
        self._clock.timeout.connect(self._on_tick)
        self.follow_seen(self._on_followed, self._sensors.inventory_changed)
        studio.closing.connect(self._on_closing)

    # ── what is chosen ───────────────────────────────────────────────────────────────────────

    @property
    def offered(self) -> list[StartTarget]:
        """Where a program can be started: this PC's cards and its CPU."""
        inventory = self._sensors.inventory
        return targets(inventory.cards) if inventory is not None else []

    @property
    def cards(self) -> list[tuple[str, str]]:
        """The same to choose from, with what names each."""
        return [(f"On the {one.title}", one.key) for one in self.offered]

    @property
    def kept(self) -> tuple[KeptStart, ...]:
        """The last programs that were started, the newest first."""
        return self._studio.settings.choices.starts

    @property
    def commands(self) -> list[str]:
        """Their commands, to choose from."""
        return list(dict.fromkeys(one.command for one in self.kept))

    @property
    def target(self) -> StartTarget | None:
        """The chosen place; None before the devices are known."""
        found = (one for one in self.offered if one.key == self.choices.card)
        return next(found, next(iter(self.offered), None))

    @property
    def can_start(self) -> bool:
        return bool(self.choices.command.strip()) and self.target is not None and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether a start is being prepared."""
        return self._plans.is_busy

    def suited(self, choices: StartChoices) -> StartChoices:
        """Return the choices with the card on which a kept command was started."""
        if choices.command == self.choices.command:
            return choices
        before = (one.card for one in self.kept if one.command == choices.command)
        return msgspec.structs.replace(choices, card=next(before, choices.card))

    def on_chosen(self) -> None:
        """Drop what went wrong with the choices before."""
        self._failure = Notice()

    def choose_program(self, path: str) -> None:
        """Put the path of a program into the command."""
        self.choose(command=f'"{path}"' if " " in path else path)

    # ── what happens ─────────────────────────────────────────────────────────────────────────

    @property
    def notice(self) -> Notice:
        """Whether the started program uses its card, or why it did not start."""
        if self._failure.sentence:
            return self._failure
        if self.is_busy:
            return Notice("Asking Vulkan for its devices…", Tone.QUIET)
        return self._watch.notice if self._watch is not None else Notice()

    @property
    def started(self) -> str:
        """What was started where."""
        plan = self._plan
        if plan is None or self._child is None:
            return ""
        return f"{file_name(Path(plan.words[0]))} on the {plan.target.title}"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The variables that are set, with their values."""
        return [*self._plan.variables.items()] if self._plan is not None else []

    def start(self) -> None:
        """Start the program; what was started before goes on, but is watched no longer."""
        self._prepare(self._start)

    def copy_line(self, shell: str) -> None:
        """Make the line that starts it in a shell: a key of `shell_lines`."""
        self._prepare(
            lambda plan: self.line_made.emit(shell_lines(plan.variables, plan.words)[shell])
        )

    def make_shortcut(self) -> None:
        """Make a shortcut that starts it so."""
        self._prepare(
            lambda plan: self.shortcut_made.emit(
                shortcut(plan.variables, plan.words, plan.target.title)
            )
        )

    def see(self, *, is_seen: bool) -> None:
        """Read the programs while somebody looks, or until it is told whether it uses a card."""
        super().see(is_seen=is_seen)
        self._want()

    def _prepare(self, then: Callable[[_Plan], None]) -> None:
        target, inventory = self.target, self._sensors.inventory
        if not self.can_start or target is None or inventory is None:
            return
        self._failure = Notice()
        try:
            words = split_command(self.choices.command)
        except ValueError as error:
            self._failure = Notice(f"The command cannot be read: {error}.", Tone.FAILURE)
            self.changed.emit()
            return
        self._then = then
        cards = inventory.cards

        def plan(is_over: Callable[[], bool]) -> _Plan:
            order = vulkan_devices(call_child, drawing_variables(target, cards), is_over)
            return _Plan(words, target, start_variables(target, cards, order))

        self._plans.ask(plan)
        self.changed.emit()

    def _on_planned(self, plan: _Plan) -> None:
        self._plan = plan
        then, self._then = self._then, None
        if then is not None:
            then(plan)
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self._failure = Notice(failure.message, Tone.FAILURE)
        self.changed.emit()

    def _start(self, plan: _Plan) -> None:
        self._leave()
        try:
            self._child = start_program(plan.words, plan.variables, CHOOSING, is_apart=True)
        except StartFailedError as error:
            self._failure = Notice(str(error), Tone.FAILURE)
            return
        inventory = self._sensors.inventory
        assert inventory is not None
        self._watch = StartWatch(
            plan.target, self._child.pid, inventory.cards, is_wsl=inventory.is_wsl
        )
        self._began_s = time.monotonic()
        self._sensors.reading_taken.connect(self._on_reading)
        self._clock.start()
        self._want()
        new = KeptStart(command=self.choices.command.strip(), card=plan.target.key)
        others = [one for one in self.kept if one.command != new.command]
        self._studio.settings.change(starts=(new, *others)[:_MOST_KEPT])

    def _on_reading(self, reading: Reading) -> None:
        if self._watch is not None:
            self._watch.look(reading, time.monotonic() - self._began_s)
            self._want()
            self.changed.emit()

    def _on_tick(self) -> None:
        code = self._child.poll() if self._child is not None else None
        if code is not None and self._watch is not None:
            self._watch.end(code, time.monotonic() - self._began_s)
            self._stop_watching()
        self.changed.emit()

    def _want(self) -> None:
        """Read the programs while it is watched: until there is an answer, or somebody looks."""
        watch = self._watch if self._clock.isActive() else None
        is_open = watch is not None and (self.is_seen or not watch.is_settled)
        self._sensors.want_programs(_NAME, is_open)

    def _stop_watching(self) -> None:
        self._clock.stop()
        with suppress(RuntimeError, TypeError):
            self._sensors.reading_taken.disconnect(self._on_reading)
        self._want()

    def _leave(self) -> None:
        if self._clock.isActive():
            self._stop_watching()
        if self._child is not None:
            leave(self._child)
        self._child, self._watch = None, None

    def _on_closing(self) -> None:
        self._leave()
        self._plans.close()
