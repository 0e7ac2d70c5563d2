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
    **dict.fromkeys(
        (
            "tests/model/race/test_file_opening.py"
            "::test_a_picture_that_takes_all_memory_is_refused",
            "tests/process/test_child_call.py::test_a_child_gets_no_more_memory_than_its_limit",
        ),
        "a job object of Wine limits no memory",
    ),
}
_GROUP = "gloo's init_process_group does not return, in two processes of PyTorch alone either"
_SLOW_TORCH = "PyTorch takes 20 s and more to be imported under Wine, longer than a PC there has"
_GROUPS = "tests/engine/workloads/data_parallel/"
# A test, with or without its parameters → why Wine makes it crash or hang. It is not run: the
# process that runs the tests would end with it.
NOT_RUN: dict[str, str] = {
    **dict.fromkeys(
        (
            f"{_GROUPS}test_group_call.py::test_a_run_checks_and_times_the_same_processes",
            f"{_GROUPS}test_group_call.py::test_a_group_that_waits_is_for_the_same_call_alone",
            f"{_GROUPS}test_group_call.py::test_an_unused_group_ends_by_itself",
            f"{_GROUPS}test_replica_group.py::test_a_group_learns_what_one_process_would",
            f"{_GROUPS}test_replica_group.py::test_a_group_times_its_steps_and_some_of_it_may_work",
            f"{_GROUPS}test_replica_group.py::test_a_group_can_be_reached_from_this_pc_alone",
            f"{_GROUPS}test_replica_group.py::test_a_process_that_dies_ends_the_group_with_a_sentence",
            f"{_GROUPS}test_replica_group.py::test_processes_end_with_torchrun",
            f"{_GROUPS}test_replica_group.py::test_processes_end_with_a_killed_engine",
            "tests/engine/workloads/test_share_on_windows.py"
            "::test_the_snippet_of_processes_runs_without_libuv",
            f"{_GROUPS}test_snippet.py::test_the_snippet_of_processes_runs_as_its_first_line_says",
            "tests/line/test_together.py::test_two_pcs_train_together_and_nothing_of_them_is_left",
            "tests/line/test_together.py::test_a_pc_that_dies_in_a_run_is_a_sentence_and_leaves_nothing",
            "tests/test_whole_program.py::test_closing_in_any_state_leaves_no_process_and_no_file[replicas]",
        ),
        _GROUP,
    ),
    **dict.fromkeys(
        (
            "tests/line/test_together.py"
            "::test_a_pc_that_does_not_take_part_is_named_within_the_patience",
            "tests/line/test_together.py::test_a_port_that_cannot_be_is_refused",
        ),
        _SLOW_TORCH,
    ),
}


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is expected to fail."""
    for item in items:
        name = item.nodeid.partition("[")[0]
        reason = EXPECTED.get(name)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", strict=True))
        elif (reason := NOT_RUN.get(item.nodeid, NOT_RUN.get(name))) is not None:
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", run=False))
