"""Draw resources/app/gpu-studio.svg as gpu-studio.png (256 × 256) and gpu-studio.ico.

    .venv/bin/python packaging/draw_icon.py

The images are kept in the repository because a shortcut is made before Qt is known to work.
"""

from __future__ import annotations

import struct
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "app"
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


def main() -> None:
    """Write both files next to the SVG."""
    application = QGuiApplication(["draw_icon", "-platform", "offscreen"])
    renderer = QSvgRenderer(str(_FOLDER / "gpu-studio.svg"))
    (_FOLDER / "gpu-studio.png").write_bytes(png(renderer, 256))
    drawings = {size: png(renderer, size) for size in _ICO_SIZES}
    (_FOLDER / "gpu-studio.ico").write_bytes(ico(drawings))
    application.quit()


if __name__ == "__main__":
    main()
