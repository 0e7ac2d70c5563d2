import numpy as np
import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor, QImage, QImageReader
from PySide6.QtWidgets import QLabel

from gpu_studio.core.notice import Tone
from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.picture_file import CHUNK
from gpu_studio.core.race.stage_view import LaneView, PaintOrder, StageView
from gpu_studio.process.child_call import ChildCall
from gpu_studio.ui.race.painter import LARGEST_BYTES, painted_file
from gpu_studio.ui.race.race_stage import StagePage, painted

LIME = PackedFrame(pack_rows(b"\0\xff\0" * 160 * 90), 160, 90)
LANE = LaneView(
    "CPU, 4 threads", "cpu", LIME, clock="7.0\u202fs", pace="412 steps/s",
    steps="2,400 of 2,400", achieved="34.3\u202fdB · 113\u202fW · 658\u202fJ a picture",
    state="Was still running", share=0.5,
)  # fmt: skip
VIEW = StageView(
    "2.0\u202f× faster", (LANE, LANE._replace(role="cuda:0")),
    detail="Your GT 1030 beat all 4 CPU threads: 2.0\u202f× faster, 50 against 25 steps a second.",
    foot="GPU Studio · Swarm in two streams · 100,000 bodies · float32 · in turns, each alone",
    trust="Checked", trust_tone=Tone.GOOD,
)  # fmt: skip


def pixels(image: QImage) -> np.ndarray:
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)


@pytest.mark.parametrize("size", [(1080, 1920), (1024, 768), (1920, 1080), (1200, 630)])
def test_on_every_screen_two_pictures_fill_the_stage_and_no_word_is_cut(theme, qtbot, size):
    theme.apply()
    view = VIEW._replace(lanes=(LANE, LANE))
    (image,) = painted([view], size, theme)
    green = (pixels(image)[:, :, :3] == (0, 255, 0)).all(axis=2)
    across, down = green.any(axis=0), green.any(axis=1)
    pictures = 2 if size[1] > size[0] else 1
    assert np.count_nonzero(np.diff(down.astype(int)) == 1) == pictures
    assert np.count_nonzero(np.diff(across.astype(int)) == 1) == 3 - pictures
    assert across.mean() > 0.9

    page = StagePage(theme)
    qtbot.addWidget(page)
    page.fit(*size)
    page.show()
    page.show_view(view)
    page.layout().activate()
    for label in page.findChildren(QLabel):
        if not label.wordWrap():
            assert label.width() >= label.sizeHint().width(), label.objectName()


def test_a_long_headline_is_smaller_and_whole(theme, qtbot):
    theme.apply()
    page = StagePage(theme)
    qtbot.addWidget(page)
    page.fit(1280, 720)
    for headline in ("A tie", "NVIDIA GeForce RTX 3060, float16 is 12.0 × faster so far"):
        page.show_view(VIEW._replace(headline=headline))
        label = page.findChild(QLabel, "race.stage.headline")
        label.ensurePolished()
        assert label.sizeHint().width() <= page.width()


def test_a_picture_has_the_size_for_a_preview_and_the_race_inside():
    order = PaintOrder(moments=((VIEW, 0),), size=(1200, 630), text="the race")
    call = ChildCall("gpu_studio.ui.race.painter")
    answer = call.run(order.encode(), longest_s=60.0, most_bytes=1 << 24)
    image = QImage.fromData(answer.content)
    assert (image.width(), image.height()) == (1200, 630)
    assert image.text(CHUNK) == "the race"
    shown = pixels(image)[:, :, :3]
    for color in ("#00FF00", "#E69F00", "#56B4E9"):  # the pictures, the CPU and the card
        wanted = QColor(color)
        assert (shown == (wanted.blue(), wanted.green(), wanted.red())).all(axis=2).any(), color


def test_an_animation_shows_each_moment_for_its_time(theme, tmp_path):
    theme.apply()
    moments = tuple((VIEW._replace(headline=str(number)), 100) for number in range(3))
    content = painted_file(PaintOrder(moments=(*moments, (VIEW, 3500))), theme)
    assert len(content) <= LARGEST_BYTES
    path = tmp_path / "race.webp"
    path.write_bytes(content)
    film = QImageReader(str(path), QByteArray(b"webp"))
    assert film.supportsAnimation()
    frames, shown_ms = [], []
    while film.canRead():
        frames.append(film.read())
        shown_ms.append(film.nextImageDelay())
    assert shown_ms == [100, 100, 100, 3500]
    assert frames[0] != frames[-1]
    assert frames[0].width() == 960
