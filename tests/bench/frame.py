"""What one frame of the live plot costs while a run of a million samples grows in it.

``python -m tests.bench.frame [--samples 1000000] [--frames 200]``

The real Benchmark tab shows a run that a recording in fast motion makes: at each frame another
thousand samples have come. A frame is the plot's look at its series and the painting of the
picture, in the window's thread; all samples in sight, and at several zooms. The thread's own work
leaves out the time in which other programs had the processor. That every spike is in
the picture is tested in tests/core/test_pyramid.py and tests/ui/plots.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication

from gpu_studio.core.messages.run_messages import RunWorkload, SamplesMeasured
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.theme import Theme, styled_application
from tests.bench.ratios import describe_machine, verdict
from tests.driving.window import wait_until
from tests.fakes import scripted_engine
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.run_answers import started
from tests.fakes.scripted_engine import Engines, Pause

_TARGET_MS = 16.0
_PER_FRAME = 1000
_ZOOMS = (1.0, 0.1, 0.01, 0.001)
_SCREENS = ((1280, 800), (1920, 1080))


def recording(count: int) -> np.ndarray:
    """Return invented timings with the spikes that interruptions make, shape (count,)."""
    generator = np.random.default_rng(0)
    samples_s = generator.gamma(20.0, 1e-6, count)
    samples_s[generator.integers(0, count, count // 5000)] *= 20
    return samples_s


def frames_ms(tab: BenchmarkTab, plot: LivePlot, count: int) -> np.ndarray:
    """Return milliseconds on the wall and of the thread's own work, shape (count, 2)."""
    run = tab.benchmark.running
    assert run is not None
    spent_ms = []
    for _ in range(count):
        more = recording(_PER_FRAME).tolist()
        run.apply(
            SamplesMeasured(
                run_id=run.request.run_id, samples_s=tuple(more), calls_per_sample=1, spent_s=1.0
            )
        )
        begun_s, worked_s = time.perf_counter(), time.thread_time()
        plot.refresh()
        plot.plot.viewport().repaint()
        spent_ms.append((time.perf_counter() - begun_s, time.thread_time() - worked_s))
        QApplication.processEvents()
    return 1e3 * np.asarray(spent_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=200)
    options = parser.parse_args()
    application = styled_application(["frame"])
    scripted_engine.LONGEST_PAUSE_S = (
        3600.0  # the run stays under way for as long as this script looks
    )

    def play(_engine, request: RunWorkload):
        yield started(request)
        yield SamplesMeasured(
            run_id=request.run_id, samples_s=tuple(recording(options.samples).tolist()),
            calls_per_sample=1, spent_s=1.0,
        )  # fmt: skip
        yield Pause()

    settings = Settings(None)
    studio = Studio(Engines({RunWorkload: play}), SteadySensors(cpu_only()), settings)
    theme = Theme(settings)
    theme.apply()
    tab = BenchmarkTab(studio, theme)
    plot = tab.findChild(LivePlot, "benchmark.plot")
    tab.show()
    studio.start()
    wait_until(lambda: studio.session.is_free)
    tab._run()
    wait_until(lambda: tab.benchmark.running is not None and len(tab.benchmark.running.series) > 0)
    wait_until(lambda: plot.plot is not None)
    print(describe_machine())
    worst_ms = 0.0
    for width, height in _SCREENS:
        tab.resize(width, height)
        for zoom in _ZOOMS:
            plot.show_all()
            application.processEvents()
            if zoom < 1:
                plot.plot.plotItem.vb.scaleBy(x=zoom, y=1.0)
                plot.plot.plotItem.vb.sigRangeChangedManually.emit([True, True])
            spent_ms = frames_ms(tab, plot, options.frames)
            wall_ms, own_ms = np.percentile(spent_ms, 99, axis=0)
            worst_ms = max(worst_ms, own_ms)
            count = len(tab.benchmark.running.series)
            print(
                f"  {width} × {height}, {zoom:7.1%} of {count:,} samples in sight: median "
                f"{np.median(spent_ms[:, 0]):.1f} ms a frame, 99 of 100 under {wall_ms:.1f} ms "
                f"({own_ms:.1f} ms of own work)"
            )
    print(f"  slowest own work, 99 of 100: {worst_ms:.1f} ms; {verdict(worst_ms, _TARGET_MS)}")
    studio.close()
    tab.close()


if __name__ == "__main__":
    main()
