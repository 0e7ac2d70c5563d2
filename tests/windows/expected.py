"""A plugin of pytest: the tests that fail where Wine, and not the program, is at fault.

The list is exact: a test in it that passes is a failure, so that it leaves the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

# A test without its parameters → why Wine makes it fail.
EXPECTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "tests/hardware/test_process_names.py::test_this_process_has_a_name_and_a_user",
            "tests/hardware/test_process_names.py::test_windows_puts_the_pc_before_the_user",
            "tests/hardware/test_process_names.py::test_a_process_that_ended_is_not_remembered",
        ),
        "psutil asks NtQuerySystemInformation for a process's name, which Wine refuses (error 87)",
    ),
}
# A test without its parameters → why Wine makes it crash: it is not run, since the process that
# runs the tests would end there.
CRASHING: dict[str, str] = {
    "tests/engine/pitfalls/test_real_errors.py"
    "::test_mixed_devices_is_a_real_error_that_names_both": (
        "the exception of PyTorch's kernel for meta tensors faults in Wine's ntdll as it unwinds"
    ),
}


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is expected to fail."""
    for item in items:
        name = item.nodeid.partition("[")[0]
        reason = EXPECTED.get(name)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", strict=True))
        elif (reason := CRASHING.get(name)) is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", run=False))
