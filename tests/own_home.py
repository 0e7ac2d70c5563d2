"""A home of its own for a process of the program: it keeps its files there on every system."""

from pathlib import Path

# On Windows, platformdirs asks the system and not the environment, except for its own variables.
_PLACES = (
    "HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "WIN_PD_OVERRIDE_LOCAL_APPDATA",
    "WIN_PD_OVERRIDE_APPDATA",
)  # fmt: skip
_BELOW_HOME = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def own_home(folder: Path) -> dict[str, str]:
    """Return the variables that make a folder the home, and the place for all of its files."""
    return dict.fromkeys(_PLACES, str(folder)) | dict.fromkeys(_BELOW_HOME, "")
