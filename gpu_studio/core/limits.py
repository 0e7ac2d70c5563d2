"""How long the window and the terminal wait for others: an engine, a driver, a disk, a thread.

What stands here decides when something counts as late, silent or lost. It is read where it is
needed as ``limits.current``, so whoever replaces the record changes all of them. How long a
measurement lasts, and how often something is looked at, stands beside the code that does it.
"""

from __future__ import annotations

from typing import NamedTuple


class TimeLimits(NamedTuple):
    """The limits, in seconds, or in milliseconds where a timer of Qt's counts them.

    Attributes:
        stop_ms: From a stop of an engine to its end: a stop takes effect in 200 ms.
        stop_over_line_ms: The same over a line: a round trip of a bad mobile line, with what waits
            in it.
        stop_check_ms: The same of a check, a step of which takes a second at most, on a slow card
            some more.
        engine_silence_ms: Until an engine counts as silent: it gives a sign of life each second.
        engine_start_ms: Until a start is reported as slow: from a slow disk, PyTorch takes half a
            minute to load; a driver that hangs blocks it forever.
        engine_end_s: For the end of an engine: a crashed process closes its pipe before the driver
            has reclaimed its memory.
        engine_kill_s: For the end of an engine that was killed.
        succession_s: How long the next engine waits for a call of the old one.
        handover_ms: From the end of a run until another PyTorch: the runs of a plan follow each
            other within milliseconds.
        quick_look_ms: For the answer of a driver that the measurement without PyTorch asks.
        check_start_s: For the start of a check's engine: PyTorch and CUDA, on an old PC.
        check_step_s: For a step of a check, which takes a second at most: a card that is silent
            this long hangs.
        sensors_start_ms: For the first reading: without persistence mode, a driver takes seconds
            to start its cards.
        sensors_silence_ms: For each other reading.
        sensors_restart_ms: Until a reader that ended is started again.
        sensors_end_s: For the end of a reader.
        greeting_s: For the greeting of another PC: ssh connects within 10 s; then Python starts on
            a slow disk.
        child_end_s: For the end of any other child.
        served_end_s: For the end of a child that serves another PC.
        thread_end_ms: For a thread: a call in this process may take longer; it ends with the
            process.
        idle_thread_end_ms: For a thread without further work.
        queue_end_ms: For the files that a closing window still writes.
        install_end_ms: For the installer of a closing window.
        pause_s: A tick that comes so much later than it should was held up by a pause.
        disk_silence_s: For a drive: a sleeping disk of a network drive takes seconds to start.
        painting_s: For a child that paints a picture or a record.
        terminal_load_s: In a terminal, for PyTorch to load.
        terminal_driver_s: After that, for a driver: CUDA starts within seconds, and a hanging
            driver never answers.
        terminal_slow_s: Until a slow start is reported in a terminal.
        terminal_stop_s: From Ctrl-C to the end of an engine.
        terminal_stop_check_s: The same of a check: a stop waits for its step.
        terminal_farewell_s: For the end of a check's engine, which a hung driver may keep alive.
        terminal_sensors_s: In a terminal, for the first reading.
        terminal_line_s: The same over a line: a connection, then the start of two programs on what
            may be an old PC.
    """

    stop_ms: int = 150
    stop_over_line_ms: int = 2000
    stop_check_ms: int = 10_000
    engine_silence_ms: int = 10_000
    engine_start_ms: int = 45_000
    engine_end_s: float = 5.0
    engine_kill_s: float = 0.5
    succession_s: float = 5.0
    handover_ms: int = 1500
    quick_look_ms: int = 15_000
    check_start_s: float = 120.0
    check_step_s: float = 60.0
    sensors_start_ms: int = 16_000
    sensors_silence_ms: int = 6000
    sensors_restart_ms: int = 2000
    sensors_end_s: float = 0.5
    greeting_s: float = 40.0
    child_end_s: float = 2.0
    served_end_s: float = 1.0
    thread_end_ms: int = 1500
    idle_thread_end_ms: int = 100
    queue_end_ms: int = 10_000
    install_end_ms: int = 5000
    pause_s: float = 5.0
    disk_silence_s: float = 10.0
    painting_s: float = 120.0
    terminal_load_s: float = 90.0
    terminal_driver_s: float = 30.0
    terminal_slow_s: float = 15.0
    terminal_stop_s: float = 1.0
    terminal_stop_check_s: float = 5.0
    terminal_farewell_s: float = 10.0
    terminal_sensors_s: float = 15.0
    terminal_line_s: float = 45.0


current = TimeLimits()
"""The limits in use."""
