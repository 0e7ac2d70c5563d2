"""What a person does and sees in the Race tab."""

from PySide6.QtWidgets import QSlider

from gpu_studio.ui.race.race_lane import RacePicture
from gpu_studio.ui.race.race_tab import RaceTab
from tests.driving.window import click, find, text, wait_until


def run(tab: RaceTab) -> None:
    click(tab, "race.run")
    wait_over(tab)


def wait_over(tab: RaceTab) -> None:
    wait_until(lambda: tab.race.verdict is not None and not tab.race.state.is_busy)


def chips(tab: RaceTab, side: str) -> tuple[str, str]:
    """Return the name and the state below a picture."""
    return text(tab, f"race.{side}.name"), text(tab, f"race.{side}.state")


def gray(tab: RaceTab, side: str) -> float:
    """Return how far the house on a picture is from gray: 0 before it is learned."""
    image = find(tab, f"race.{side}.picture", RacePicture).image
    assert image is not None
    color = image.pixelColor(int(0.2 * image.width()), int(0.8 * image.height()))
    return max(abs(part - 128) for part in (color.red(), color.green(), color.blue()))


def lever(tab: RaceTab) -> QSlider:
    return find(tab, "race.size", QSlider)
