import pytest
from PySide6.QtGui import Qt, QTextDocument

from gpu_studio.model.text_rows import plain_tip, rich_tip


def shown(tip: str) -> str:
    """What a tool tip shows of a text, as QToolTip's label decides by itself."""
    if not Qt.mightBeRichText(tip):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA GeForce GT 1030\nidle",
        "<b>card</b>",
        "a\n<img src='file:///etc/hostname'>\nb",
        "&lt;b&gt; & <br>",
        "&lt;b&gt; alone",
        "layer.0 & layer.1",
    ],
)
def test_a_tip_shows_every_text_as_it_is(text: str) -> None:
    assert shown(plain_tip(text)) == text


def test_what_is_no_html_stays_as_it_is() -> None:
    assert plain_tip("a & b\nc > d") == "a & b\nc > d"


def test_lines_stay_lines() -> None:
    assert shown(rich_tip(["<a>", "b"])) == "<a>\nb"
