"""A plugin of pytest: the tests that fail where Wine, and not the program, is at fault.

The list is exact: a test in it that passes is a failure, so that it leaves the list.
"""

from collections.abc import Iterable

import pytest

# A test without its parameters → why Wine makes it fail.
EXPECTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "tests/hardware/test_reader.py::test_this_process_has_a_name_and_a_user",
            "tests/hardware/test_reader.py::test_windows_puts_the_pc_before_the_user",
            "tests/hardware/test_reader.py::test_a_process_that_ended_is_not_remembered",
        ),
        "psutil asks NtQuerySystemInformation for a process's name, which Wine refuses (error 87)",
    ),
    **dict.fromkeys(
        (
            "tests/model/race/test_race_files.py::test_a_picture_that_takes_all_memory_is_refused",
            "tests/process/test_child_call.py::test_a_child_gets_no_more_memory_than_its_limit",
        ),
        "a job object of Wine limits no memory",
    ),
    **dict.fromkeys(
        (
            "tests/engine/workloads/test_data_parallel.py"
            "::test_a_group_can_be_reached_from_this_pc_alone",
        ),
        "Wine does not say which process listens at a port: psutil finds none of its own",
    ),
}


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    for item in items:
        reason = EXPECTED.get(item.nodeid.partition("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", strict=True))
