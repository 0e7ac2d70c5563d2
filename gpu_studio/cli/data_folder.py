"""The user's data folder, which the window shares."""

from __future__ import annotations

from pathlib import Path


def data_folder() -> Path:
    """Return the folder for results and engines; it may be missing."""
    import platformdirs

    return Path(platformdirs.user_data_path("gpu-studio", appauthor=False))
