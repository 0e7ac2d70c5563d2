import pytest
from PySide6.QtCore import Qt

from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from tests.soft.window.conftest import SitDownAt
from tests.soft.window.person import Person
from tests.softcards.cards import Card
from tests.softcards.catalogue import GTX_1650

LIVE = "benchmark.plot"
RESULTS = "benchmark.results"


def stamps(person: Person) -> list[str]:
    """Return the stamp of every size, oldest first."""
    return person.column(RESULTS, "Trust")


def counts(person: Person) -> list[int]:
    tab = person.window.findChild(BenchmarkTab)
    return [len(run.series) for run in tab.benchmark.runs]


def drawn(person: Person, device: str) -> int:
    return len(person.curve(LIVE, device)[1])


def see_it_grow(person: Person, device: str) -> None:
    """Wait until a device's curve has grown twice while its run is being timed."""
    for _ in range(3):
        before = drawn(person, device)
        person.until(lambda before=before: drawn(person, device) > before)
    assert stamps(person)[-1] == "… timing"


def test_cpu_and_card_draw_every_sample_and_a_wrong_card_ends_in_failure(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(GTX_1650)
    person.open_tab("Benchmark")
    person.click("benchmark.run")
    person.until(lambda: "Done: 2 of 2 runs finished." in person.text("benchmark.progress.text"))
    medians = [person.column(RESULTS, device) for device in ("CPU", "GTX 1650")]
    assert ["–"] not in medians
    tab = person.window.findChild(BenchmarkTab)
    samples = [len(run.series) for run in tab.benchmark.runs]
    person.until(lambda: [drawn(person, "cpu"), drawn(person, "cuda:0")] == samples)
    assert [run.result.verified for run in tab.benchmark.runs] == [True, False]
    assert stamps(person)[0].startswith("▲ wrong result")
    assert person.column(RESULTS, "Faster") == ["wrong results"]
    assert person.text("benchmark.hero.headline") == "Wrong results"
    assert "At 256" in person.property_of("benchmark.trust", "accessibleName")
    assert person.property_of("benchmark.trust", "tone") == "failure"
    assert pc.use_of(person.engine.pid).cards[0].launches > 14 * samples[1]


def test_a_cards_result_is_explained_with_its_parts_and_both_stopwatches(
    sit_down_at: SitDownAt,
) -> None:
    slow = Card("NVIDIA GeForce GTX 1650", "7.5", mib=3903, sms=14, kernel_ms=1.0)
    _, person = sit_down_at(slow, budget_s=0.5, modes=("transfers", "naive"))
    person.open_tab("Benchmark")
    person.click("benchmark.devices.cpu")
    person.click("benchmark.run")
    person.until(lambda: "Done: 2 of 2 runs finished." in person.text("benchmark.progress.text"))
    medians = [person.column(RESULTS, name) for name in ("GTX 1650", "GTX 1650 + copies")]
    assert ["–"] not in medians
    person.click("benchmark.why.more")
    assert set(person.column("benchmark.parts.table", "Part")) == {
        "copy in", "launch", "compute", "copy out",
    }  # fmt: skip
    # The card works a millisecond for each of its kernels: the naive script did not wait.
    assert "without waiting for the card" in person.text("benchmark.naive.sentence")
    person.open_page("History", "benchmark.pages")
    person.until(lambda: len(person.table("benchmark.history.table")) == 2)


@pytest.mark.parametrize(("device", "other"), [("cpu", "cuda:0"), ("cuda:0", "cpu")])
def test_a_curve_grows_and_a_stop_keeps_the_samples_and_the_engine(
    sit_down_at: SitDownAt, device: str, other: str
) -> None:
    _, person = sit_down_at(GTX_1650, sizes="16", budget_s=60.0)
    engine = person.engine
    person.open_tab("Benchmark")
    person.click(f"benchmark.devices.{other}")
    person.click("benchmark.run")
    see_it_grow(person, device)
    person.click("benchmark.stop")
    person.until(lambda: stamps(person) == ["■ stopped"])
    stopped = "Stopped: 0 of 1 run finished."
    person.until(lambda: stopped in person.text("benchmark.progress.text"))
    (samples,) = counts(person)
    person.until(lambda: drawn(person, device) == samples > 0)
    assert person.engine == engine


@pytest.mark.parametrize(
    ("aborts", "words"),
    [
        pytest.param(False, "illegal memory access", id="sticky"),
        pytest.param(True, "crashed (signal 6)", id="abort"),
    ],
)
def test_an_engine_that_dies_is_replaced_and_the_results_stay(
    sit_down_at: SitDownAt, aborts: bool, words: str
) -> None:
    pc, person = sit_down_at(GTX_1650, sizes="64")
    engine = person.engine
    person.open_tab("Benchmark")
    person.click("benchmark.devices.cpu")
    person.click("benchmark.run")
    person.until(lambda: "Done: 1 of 1 run finished." in person.text("benchmark.progress.text"))
    person.click("benchmark.options.more")
    person.write("benchmark.sizes", "128, 256")
    person.press("benchmark.budget", Qt.Key.Key_End)  # a minute: the second is begun, not the third
    person.click("benchmark.run")
    person.until(lambda: len(stamps(person)) == 2 and stamps(person)[1] == "… timing")
    saved = person.table(RESULTS)[0]
    person.until(lambda: drawn(person, "cuda:0") > 0)
    pc.fault("launch", 700, after=50, sticky=True, set_device=aborts)
    person.until(lambda: words in person.text("banner.sentence"))
    assert "Your results are still here." in person.text("banner.sentence")
    person.until_another_engine(engine)
    # The third was not begun: what ended one engine may end the next one, too.
    assert len(person.table(RESULTS)) == 2
    assert person.table(RESULTS)[0] == saved
    assert stamps(person)[1].startswith("✖")
    assert counts(person)[1] > 0
    assert "Press Run" in person.text("benchmark.hero.work")
    pc.clear_faults()
    person.press("benchmark.budget", Qt.Key.Key_Home)
    person.click("benchmark.run")
    person.until(lambda: "Done: 2 of 2 runs finished." in person.text("benchmark.progress.text"))
    assert len(person.table(RESULTS)) == 4
