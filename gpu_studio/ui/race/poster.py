"""The poster of a race's picture: what it will become, as seen before it is run."""

from __future__ import annotations

import functools
import logging

from PySide6.QtGui import QImage

from gpu_studio.core.resources import MissingResourceError, resource_path

_log = logging.getLogger(__name__)


@functools.cache
def poster(picture: str) -> QImage | None:
    """Return the poster of a picture, drawn by `packaging/draw_posters.py`.

    It is decoded with the first look at it: 2 ms.

    Args:
        picture: the workload's name.

    Returns:
        The poster; None if the program's file cannot be read: the place for it is plain then.
    """
    try:
        image = QImage(str(resource_path(f"posters/{picture}.jpg")))
    except MissingResourceError as error:
        _log.warning("%s", error)
        return None
    return None if image.isNull() else image
