"""Draw resources/app/gpu-studio.svg as gpu-studio.png (256 × 256), gpu-studio.ico and side.bmp.

    .venv/bin/python packaging/draw_icon.py

The images are kept in the repository: packages are built without Qt. packaging/windows/side.bmp is
the picture at the side of the setup's last page, 164 × 314 pixels as NSIS wants it.
"""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QLinearGradient, QPainter
from PySide6.QtSvg import QSvgRenderer

_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "app"
_SIDE = _FOLDER.parents[1] / "packaging" / "windows" / "side.bmp"
_SIDE_WIDTH, _SIDE_HEIGHT, _SIDE_ICON = 164, 314, 128
_TOP, _BOTTOM = (
    QColor(32, 40, 52),
    QColor(20, 26, 34),
)  # the icon's dark, lighter above
_ICO_SIZES = (16, 20, 24, 32, 40, 48, 64, 256)


def png(renderer: QSvgRenderer, size: int) -> bytes:
    """Return the drawing as a square PNG, `size` pixels a side."""
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data().data())


def ico(drawings: dict[int, bytes]) -> bytes:
    """Return a Windows icon file: a header, a 16-byte entry for each PNG, then the PNGs."""
    offset = 6 + 16 * len(drawings)
    rows, content = b"", b""
    for size, drawing in drawings.items():
        side = size % 256  # 0 stands for 256
        position = offset + len(content)
        rows += struct.pack("<4B2H2I", side, side, 0, 0, 1, 32, len(drawing), position)
        content += drawing
    return struct.pack("<3H", 0, 1, len(drawings)) + rows + content


def side_picture(renderer: QSvgRenderer) -> QImage:
    """Return the drawing in the middle of a dark ground, without transparency."""
    image = QImage(_SIDE_WIDTH, _SIDE_HEIGHT, QImage.Format.Format_RGB888)
    ground = QLinearGradient(0, 0, 0, _SIDE_HEIGHT)
    ground.setColorAt(0, _TOP)
    ground.setColorAt(1, _BOTTOM)
    left, top = (_SIDE_WIDTH - _SIDE_ICON) / 2, (_SIDE_HEIGHT - _SIDE_ICON) / 2
    painter = QPainter(image)
    painter.fillRect(image.rect(), ground)
    renderer.render(painter, QRectF(left, top, _SIDE_ICON, _SIDE_ICON))
    painter.end()
    return image


def main() -> None:
    """Write the files next to the SVG, and the setup's."""
    application = QGuiApplication(["draw_icon", "-platform", "offscreen"])
    renderer = QSvgRenderer(str(_FOLDER / "gpu-studio.svg"))
    (_FOLDER / "gpu-studio.png").write_bytes(png(renderer, 256))
    drawings = {size: png(renderer, size) for size in _ICO_SIZES}
    (_FOLDER / "gpu-studio.ico").write_bytes(ico(drawings))
    side_picture(renderer).save(str(_SIDE), "BMP")
    application.quit()


if __name__ == "__main__":
    main()
