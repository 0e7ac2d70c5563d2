"""A plugin of pytest: the tests that fail where Wine, and not the program, is at fault.

The list is exact: a test in it that passes is a failure, so that it leaves the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

# A test without its parameters → why Wine makes it fail.
EXPECTED: dict[str, str] = {}


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is expected to fail."""
    for item in items:
        reason = EXPECTED.get(item.nodeid.partition("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", strict=True))
