"""Files that are written from a template."""

from __future__ import annotations

import re

from studio_build.console import BuildError


def filled(template: str, values: dict[str, str]) -> str:
    """Return a template with its values in the place of their ``@NAMES@``.

    Raises:
        BuildError: there is no value of a name.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise BuildError(f"A template wants @{match[1]}@, which nothing gives.")
        return values[match[1]]

    return re.sub(r"@([A-Z0-9_]+)@", value, template)
