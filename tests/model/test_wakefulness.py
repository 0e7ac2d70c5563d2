"""The PC stays awake as long as any work needs it."""

from __future__ import annotations

from gpu_studio.model.pages import CHECK, RACE, Wakefulness


class Blocker:
    def __init__(self, *, is_allowed: bool = True) -> None:
        self.is_held = False
        self._is_allowed = is_allowed
        self.calls: list[str] = []

    def hold(self) -> None:
        self.calls.append("hold")
        self.is_held = self._is_allowed

    def release(self) -> None:
        self.calls.append("release")
        self.is_held = False


def test_two_works_keep_it_awake_once() -> None:
    blocker = Blocker()
    awake = Wakefulness(blocker)
    awake.need(CHECK, needed=True)
    awake.need(RACE, needed=True)
    awake.need(CHECK, needed=False)
    assert awake.is_kept
    awake.need(RACE, needed=False)
    awake.need(RACE, needed=False)
    assert not awake.is_kept
    assert blocker.calls == ["hold", "release"]


def test_it_is_not_claimed_where_the_system_refuses() -> None:
    for blocker in (None, Blocker(is_allowed=False)):
        awake = Wakefulness(blocker)
        awake.need(CHECK, needed=True)
        assert not awake.is_kept
