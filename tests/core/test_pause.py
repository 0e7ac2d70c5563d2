import pytest

from gpu_studio.core.pause import PauseWatch
from tests.patience import limit


@pytest.mark.parametrize(
    ("between_s", "pause_s"),
    [(0.0, 0.0), (1.0, 0.0), (5.9, 0.0), (21.0, 20.0), (81.0, 80.0), (3601.0, 3600.0)],
)
def test_a_late_tick_is_a_pause_and_counts_once(
    monkeypatch: pytest.MonkeyPatch, between_s: float, pause_s: float
) -> None:
    limit(monkeypatch, pause_s=5.0)
    times = iter([100.0, 100.0 + between_s, 101.0 + between_s])
    watch = PauseWatch(lambda: next(times))
    assert watch.tick() == pause_s
    assert watch.tick() == 0.0
