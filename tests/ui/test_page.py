from collections.abc import Sequence

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QTableView,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from gpu_studio.model.page_model import PageModel
from gpu_studio.ui.page import Beside, Box, Fold, Later, Page, Part, Stack, Turning
from gpu_studio.ui.page_controls import ChosenRows, Line, Number, Pick, Slide, Switch, Tick
from gpu_studio.ui.page_parts import Press, ProgressBar, Rows, Words
from gpu_studio.ui.theme import Theme

AXES = (
    ("Time", "time"), ("Size", "sizes"),
    ("Every device in an order of its own", "devices"), ("Nothing at all, as in a table", "none"),
)  # fmt: skip


class Choices(msgspec.Struct, frozen=True):
    size: int = 4
    dtype: str = "float32"
    name: str = ""
    is_cold: bool = False
    count: int | None = None
    view: str = "time"
    rows: tuple[str, ...] = ()


class Model(PageModel):
    def __init__(self) -> None:
        super().__init__(Choices())
        self.asked = 0
        self.pressed = 0
        self.listed = ["a", "b", "c", "d"]

    @property
    def sentence(self) -> str:
        self.asked += 1
        chosen = self.choices
        return f"{chosen.size} of {chosen.dtype}" if chosen.size else ""

    def suited(self, choices: Choices) -> Choices:
        if choices.is_cold and choices.dtype == "float32":
            return msgspec.structs.replace(choices, dtype="float16")
        return choices

    def press(self) -> None:
        self.pressed += 1


class SizePage(Page):
    model: Model

    def parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Beside(
                Box(
                    Turning(
                        Press("First", m.press, name="first"),
                        Press("Second", m.press, name="second"),
                    ),
                    Number(of="size", title="Size", name="size", low=0, high=100),
                    Pick(of="dtype", title="Type", name="dtype", items=("float32", "float16")),
                    Line(of="name", title="Name", name="name", entered=m.press),
                    Tick(of="is_cold", title="Cold", name="cold"),
                    Switch(of="view", title="Axis", name="axis", items=AXES, is_radio=True),
                    Slide(
                        of="count", title="Count", name="count",
                        items=(("1", 1), ("2", 2), ("until it fails", None)),
                    ),
                    name="choices",
                ),
                Stack(
                    Words(lambda: m.sentence, name="sentence", presented=True),
                    Switch(of="view", title="View", name="view", items=AXES[:2]),
                    Press(lambda: m.choices.name, m.press, name="named"),
                    Press(
                        "Run", m.press, name="run", enabled=lambda: m.choices.size > 1,
                        primary=lambda: not m.choices.is_cold,
                        tip=lambda: "" if m.choices.size > 1 else "One is too few",
                    ),
                    Later(
                        lambda: (ProgressBar("Done", lambda: m.choices.size / 100, name="done"),),
                        name="later", shown=lambda: m.choices.size > 50,
                    ),
                    ChosenRows(
                        of="rows", title="Rows", name="rows", head=("Row", "Text"), wide=1,
                        rows=lambda: {key: (key, key * 9) for key in m.listed},
                        deleted=m.press,
                    ),
                    Fold(
                        Rows("All", ("Size",), lambda: [(str(m.choices.size),)], name="table"),
                        label="Why?", name="why", note=Words("Because.", name="note"),
                    ),
                ),
            ),
        )  # fmt: skip


@pytest.fixture
def page(qtbot: QtBot, theme: Theme) -> SizePage:
    made = SizePage("test", Model(), theme)
    qtbot.addWidget(made)
    made.show()
    return made


def found(page: SizePage, kind: type[QWidget], name: str) -> QWidget:
    widget = page.findChild(kind, f"test.{name}")
    assert widget is not None
    return widget


def test_controls_write_the_choices_and_words_follow(page: SizePage) -> None:
    size = found(page, QSpinBox, "size")
    assert isinstance(size, QSpinBox)
    size.setValue(9)
    line = found(page, QLineEdit, "name")
    QTest.keyClicks(line, "mine")
    QTest.mouseClick(found(page, QPushButton, "view.sizes"), Qt.MouseButton.LeftButton)
    assert page.model.choices == Choices(size=9, name="mine", view="sizes")
    sentence = found(page, QLabel, "sentence")
    assert isinstance(sentence, QLabel)
    assert sentence.text() == "9 of float32"


def test_radio_buttons_write_a_choice_and_break_their_line(page: SizePage) -> None:
    page.resize(1800, 600)
    none, time = found(page, QRadioButton, "axis.none"), found(page, QRadioButton, "axis.time")
    assert isinstance(time, QRadioButton)
    assert time.isChecked()
    QTest.mouseClick(none, Qt.MouseButton.LeftButton)
    assert page.model.choices.view == "none"
    assert not time.isChecked()
    assert none.y() > time.y()
    choices = found(page, QWidget, "choices")
    assert choices.width() < 400  # the column is no wider than its letters


def test_a_slider_chooses_one_of_its_items_and_says_which(page: SizePage) -> None:
    slider = found(page, QSlider, "count")
    row = found(page, QWidget, "count.row")
    assert "until it fails" in [label.text() for label in row.findChildren(QLabel)]
    QTest.keyClick(slider, Qt.Key.Key_Left)
    assert page.model.choices.count == 2
    assert slider.accessibleDescription().startswith("2")
    page.model.choose(count=1)
    assert isinstance(slider, QSlider)
    assert slider.value() == 0


def test_choices_that_do_not_suit_are_changed_in_their_controls(page: SizePage) -> None:
    cold, dtype = found(page, QCheckBox, "cold"), found(page, QComboBox, "dtype")
    assert isinstance(cold, QCheckBox)
    assert isinstance(dtype, QComboBox)
    cold.setChecked(True)
    assert dtype.currentText() == "float16"


def test_selected_rows_are_chosen_by_their_keys_and_stay_so_as_rows_come(page: SizePage) -> None:
    view = found(page, QTableView, "rows")
    assert isinstance(view, QTableView)

    def click(row: int, key: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        place = view.visualRect(view.model().index(row, 0)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, key, place)

    click(0)
    click(2, Qt.KeyboardModifier.ControlModifier)
    assert page.model.choices.rows == ("a", "c")
    height = view.height()
    page.model.listed = ["new", "a", "b", "c"]  # as many as before
    page.model.changed.emit()
    rows = {index.row() for index in view.selectionModel().selectedRows()}
    assert (rows, page.model.choices.rows) == ({1, 3}, ("a", "c"))
    page.model.choose(rows=("b",))
    assert [index.row() for index in view.selectionModel().selectedRows()] == [2]
    page.model.listed = [str(number) for number in range(50)]
    page.model.choose(rows=())
    assert view.height() < 3 * height, "many of them scroll"
    click(0)
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert page.model.pressed == 1


def test_empty_words_are_hidden_and_a_button_follows_its_condition(page: SizePage) -> None:
    page.model.choose(size=0)
    assert not found(page, QLabel, "sentence").isVisible()
    assert not found(page, QPushButton, "run").isEnabled()
    page.model.choose(size=2)
    QTest.mouseClick(found(page, QPushButton, "run"), Qt.MouseButton.LeftButton)
    assert page.model.pressed == 1
    assert found(page, QLabel, "sentence").isVisible()


def test_a_button_says_why_it_is_gray_and_may_be_second_to_another(page: SizePage) -> None:
    run = found(page, QPushButton, "run")
    assert (run.toolTip(), run.property("primary")) == ("", True)
    page.model.choose(size=1, is_cold=True)
    assert run.toolTip() == run.accessibleDescription() == "One is too few"
    assert run.property("primary") is False


def test_what_is_for_later_is_made_when_it_is_first_shown(page: SizePage) -> None:
    assert page.findChild(QProgressBar) is None
    page.model.choose(size=60)
    done = found(page, QProgressBar, "done")
    assert isinstance(done, QProgressBar)
    assert (done.isVisible(), done.value()) == (True, 600)
    page.model.choose(size=70)
    assert done.value() == 700
    page.model.choose(size=2)
    assert not done.isVisible()


def test_a_fold_opens_by_its_button(page: SizePage) -> None:
    view = found(page, QTableView, "table")
    assert not view.isVisible()
    assert found(page, QLabel, "note").isVisible()
    QTest.mouseClick(found(page, QToolButton, "why.more"), Qt.MouseButton.LeftButton)
    assert view.isVisible()


def test_an_audience_sees_the_parts_for_it_alone(page: SizePage) -> None:
    page.present(is_presented=True)
    assert found(page, QLabel, "sentence").isVisible()
    assert not found(page, QPushButton, "run").isVisible()
    assert not found(page, QSpinBox, "size").isVisible()
    page.present(is_presented=False)
    assert found(page, QPushButton, "run").isVisible()


@pytest.mark.parametrize(("width", "is_above"), [(800, True), (1800, False)])
def test_the_choices_are_above_the_rest_of_a_narrow_page(
    page: SizePage, qtbot: QtBot, width: int, is_above: bool
) -> None:
    page.resize(width, 600)
    choices, sentence = found(page, QWidget, "choices"), found(page, QLabel, "sentence")

    def is_choice_above() -> bool:
        bottom = choices.mapTo(page, choices.rect().bottomLeft()).y()
        return bottom < sentence.mapTo(page, sentence.rect().topLeft()).y()

    qtbot.waitUntil(lambda: is_choice_above() is is_above)
    first, second = (found(page, QPushButton, name) for name in ("first", "second"))
    assert page.is_narrow is is_above
    qtbot.waitUntil(lambda: (first.y() == second.y()) is is_above)


def test_a_bar_keeps_the_focus_as_it_turns_and_enter_in_a_line_acts(page: SizePage) -> None:
    second = found(page, QPushButton, "second")
    page.window().activateWindow()
    second.setFocus()
    for width in (800, 1800):
        page.resize(width, 600)
        assert page.focusWidget() is second
    QTest.keyClick(found(page, QLineEdit, "name"), Qt.Key.Key_Return)
    assert page.model.pressed == 1
