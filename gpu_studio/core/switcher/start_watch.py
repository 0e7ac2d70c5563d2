"""Whether a program that was started on a card uses it, from what the drivers list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices.card_programs import CardState, program_notice
from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device, GpuProcess, Reading
    from gpu_studio.core.switcher.program_start import StartTarget

WATCHED_S = 30.0
_SOON_OVER_S = 10.0
_UNUSED = (
    "It started, and does not use any card: most often its own settings or a build of it for the "
    "CPU are the reason, or it has not begun to compute."
)


class StartWatch:
    """Follows a program and all that it starts.

    Args:
        target: where it was started.
        pid: the started process.
        cards: of this PC.
        is_wsl: whether this is Linux inside Windows, where no driver lists programs.
    """

    def __init__(
        self, target: StartTarget, pid: int, cards: Sequence[Device], *, is_wsl: bool = False
    ) -> None:
        self.target = target
        self._cards, self._is_wsl = cards, is_wsl
        self._family = {pid}
        self._uses: list[tuple[Device, list[GpuProcess]]] = []
        self._elapsed_s = 0.0
        self._exit_code: int | None = None

    def look(self, reading: Reading, elapsed_s: float) -> None:
        """Take a reading.

        Args:
            reading: of the sensors.
            elapsed_s: the time since the start.
        """
        self._elapsed_s = elapsed_s
        found = []
        for card in self._cards:
            now = reading.card(card)
            here = now.processes or () if now is not None else ()
            own = [one for one in here if one.pid in self._family or self._family & {*one.family}]
            self._family |= {one.pid for one in own}
            if own:
                found.append((card, own))
        self._uses = found

    def end(self, exit_code: int, elapsed_s: float) -> None:
        """Note that it has ended."""
        self._exit_code, self._elapsed_s = exit_code, elapsed_s

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer that will stay."""
        is_long = self._elapsed_s >= WATCHED_S or self._exit_code is not None
        return is_long or self.notice.tone is Tone.GOOD or not self._can_see

    @property
    def notice(self) -> Notice:
        """The answer, as far as there is one."""
        if self._exit_code is not None:
            return self._ended
        computing = [use for use in self._uses if any(one.kind != "graphics" for one in use[1])]
        for card, own in self._uses:
            if card is self.target.card:
                return Notice(f"It uses the card. {self._used(card, own)}", Tone.GOOD)
        if computing:
            chosen = "no card" if self.target.is_cpu else f"the {self.target.title}"
            why = "It chooses the card itself: look into its settings."
            words = f"{self._used(*computing[0])} You chose {chosen}. {why}"
            return Notice(words, Tone.AMBER)
        drawing = f" It draws on the {self._uses[0][0].short_name}." if self._uses else ""
        if not self._can_see:
            return Notice(f"It runs. {self._why_unseen}", Tone.QUIET)
        if self._elapsed_s < WATCHED_S:
            left = f"{WATCHED_S - self._elapsed_s:.0f} s"
            return Notice(
                f"It runs and uses no card yet.{drawing} Watched for {left} more.", Tone.QUIET
            )
        if self.target.is_cpu:
            return Notice(f"It computes on no card, as you chose.{drawing}", Tone.GOOD)
        return Notice(f"{_UNUSED}{drawing}", Tone.AMBER)

    @property
    def _can_see(self) -> bool:
        return self.target.vulkan is None and not self._is_wsl

    @property
    def _why_unseen(self) -> str:
        who = "WSL" if self._is_wsl else f"The driver of {self.target.title}"
        return f"{who} does not list programs, so it cannot be told whether it uses the card."

    def _used(self, card: Device, own: Sequence[GpuProcess]) -> str:
        state = CardState(total_bytes=card.memory_total_bytes)
        return program_notice("It", own, state, is_mine=True, on=card.short_name).sentence

    @property
    def _ended(self) -> Notice:
        code, after = self._exit_code or 0, f"after {self._elapsed_s:.0f} s"
        if code:
            return Notice(f"It ended {after} with status {code}.", Tone.AMBER)
        handed = self._elapsed_s < _SOON_OVER_S and not self.target.is_cpu
        more = (
            " If a copy of it was already running, end that first: it took over." if handed else ""
        )
        return Notice(f"It ended {after}.{more}")
