import pytest

from gpu_studio.ui.plots.live_plot import AxesStyle, LivePlot


@pytest.fixture
def shown(qtbot, theme):
    """Show a plot, wait for its pyqtgraph part."""

    def show(zoomable=False, **style):
        plot = LivePlot(theme, AxesStyle(**style), name="plot", zoomable=zoomable)
        qtbot.addWidget(plot)
        plot.resize(400, 300)
        assert plot.plot is None
        plot.show()
        qtbot.waitUntil(lambda: plot.plot is not None)
        return plot

    return show
