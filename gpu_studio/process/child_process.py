"""A child process that communicates in JSON lines: the window's engine or its sensor reader.

The child reads requests from its standard input and writes events to the pipe that was its
standard output. First it moves both away from the descriptors of native libraries
(`child_streams`). It ends when its standard input closes, so a child never outlives the window,
however the window ends.

Processes that a child starts (torchrun, its workers, a pitfall's script) end with it. Only this
module ends processes, a whole family at a time.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gpu_studio.process.family_folder import FamilyFolder, remove_left_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

if sys.platform == "linux":
    import resource

LONGEST_LINE = 64 << 20
_FAMILY = "GPU_STUDIO_FAMILY"
_LAUNCHER = "__PYVENV_LAUNCHER__"  # Python reads it at its start, and takes it away
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_LONGEST_KILL_S = 0.2  # what runs after it is inside a driver, and is left behind
_LONGEST_SWEEP_S = 0.5
_SWEEP_PAUSE_S = 0.01
_MOST_CPUS = 2  # of a child with little memory: a library's threads have a stack each
# "python -m" imports from the current folder first: in the user's folder, a script named torch.py
# or random.py would replace the library.
_HOME_OF_THE_PACKAGE = Path(__file__).resolve().parents[2]


def interpreter(executable: str = "", system: str = sys.platform) -> str:
    """Return the Python for child processes: on Windows, never ``pythonw.exe``.

    On Windows, a child of a program without a console gets its standard streams only if they are
    named explicitly, and torchrun does not name those of its workers. A hidden console
    (``CREATE_NO_WINDOW``) also keeps grandchildren from opening a visible one.

    Args:
        executable: an interpreter; empty means this process's.
        system: a value of `sys.platform`.
    """
    executable = executable or sys.executable
    if system != "win32" or not executable.lower().endswith("pythonw.exe"):
        return executable
    beside = Path(executable).with_name("python.exe")
    return str(beside) if beside.exists() else executable


def direct_start(
    executable: str = "", base: str = "", system: str = sys.platform
) -> tuple[str, dict[str, str]]:
    """Return the program that is Python for a child, and the environment that it needs.

    On Windows, the ``python.exe`` of an environment only starts the real one. If it is killed at
    that moment, the real one stays behind. On a busy PC it has started the real one before it is in
    the job of its family, and what the real one starts stays behind. So the real one is started
    here, as `multiprocessing` does, and told its environment.

    Args:
        executable: an interpreter; empty means this process's.
        base: the interpreter from which its environment was made; empty means this process's.
        system: a value of `sys.platform`.
    """
    python = interpreter(executable, system)
    real = interpreter(base or getattr(sys, "_base_executable", ""), system)
    if system != "win32" or os.path.normcase(real) == os.path.normcase(python):
        return python, {}
    return real, {_LAUNCHER: python}


class _Family:
    """A child and all its descendants: they end together, and their temporary files are removed.

    On Windows, they are in a job object; the system ends them even if this process is killed.
    Elsewhere, they are a process group. Some leave it (torchrun starts a session for each of its
    processes), so on Linux an environment variable that they inherit also identifies them.

    Args:
        memory_bytes: as for `ChildProcess`.
    """

    def __init__(self, memory_bytes: int | None = None) -> None:
        self._memory_bytes = memory_bytes
        outer = os.environ.get(_FAMILY, "")
        self.is_outermost = not outer
        self._name = f"{outer}/{os.urandom(8).hex()}"  # the module secrets loads OpenSSL
        self._folder: FamilyFolder | None = None
        if sys.platform == "win32":
            self._job = _Job(memory_bytes)
        self._leader: subprocess.Popen[bytes] | None = None
        if self.is_outermost:
            remove_left_over()
            with contextlib.suppress(OSError):  # the system's temporary folder works as well
                self._folder = FamilyFolder()

    def environment(self) -> dict[str, str]:
        """Return the variables that a child inherits from the family."""
        temporary = dict.fromkeys(_TEMPORARY, str(self._folder.path)) if self._folder else {}
        return {_FAMILY: self._name, **temporary}

    def lead(self, process: subprocess.Popen[bytes]) -> None:
        """Make a newly started process the ancestor of the family."""
        self._leader = process
        if sys.platform == "win32":
            self._job.add(process)
        elif sys.platform == "linux" and self._memory_bytes is not None:
            with contextlib.suppress(OSError, ValueError):  # it has ended, or its limits are lower
                _limit(process.pid, self._memory_bytes)

    def kill(self) -> None:
        """Kill the whole family now, except processes that have left its group."""
        leader = self._leader
        if leader is None:
            return
        if sys.platform == "win32":
            self._job.end()
        # After a wait, the process id may already belong to another process.
        elif self.is_outermost and leader.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(leader.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            leader.kill()

    def close(self) -> None:
        """End the rest of the family, in any group, and remove its temporary files."""
        if sys.platform == "win32":
            self._job.end()
            self._job.close()
        elif sys.platform == "linux":
            deadline_s = time.monotonic() + _LONGEST_SWEEP_S
            while any(found := self._members()):
                for pid in found[0]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                if time.monotonic() >= deadline_s:
                    break
                time.sleep(_SWEEP_PAUSE_S)
        if self._folder is not None:
            self._folder.close()

    def _members(self) -> tuple[list[int], list[int]]:
        """Return the living processes that inherited the family's name, and those that may have.

        A program that is being started has no variables yet: on a busy PC for some milliseconds
        after its parent knows that it runs.
        """
        name = f"{_FAMILY}={self._name}".encode()
        members, starting = [], []
        for folder in os.scandir("/proc"):
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                with contextlib.suppress(OSError):  # another user's, or gone
                    variables = Path(folder.path, "environ").read_bytes().split(b"\0")
                    if any(one == name or one.startswith(name + b"/") for one in variables):
                        members.append(int(folder.name))
                    elif variables == [b""] and _is_being_started(Path(folder.path)):
                        starting.append(int(folder.name))
        return members, starting


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    # JobObjectExtendedLimitInformation, and the limits PROCESS_MEMORY, DIE_ON_UNHANDLED_EXCEPTION
    # and KILL_ON_JOB_CLOSE of winnt.h.
    _EXTENDED_LIMITS = 9
    _PROCESS_MEMORY, _DIE_QUIETLY, _KILL_ON_CLOSE = 0x100, 0x400, 0x2000
    _SAME_ACCESS = 2  # DUPLICATE_SAME_ACCESS

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time", wintypes.LARGE_INTEGER),
            ("per_job_user_time", wintypes.LARGE_INTEGER),
            ("limit_flags", wintypes.DWORD),
            ("least_working_set", ctypes.c_size_t),
            ("largest_working_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class _Limits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io", ctypes.c_ulonglong * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process_memory", ctypes.c_size_t),
            ("peak_job_memory", ctypes.c_size_t),
        )

    class _Job:
        """A job object whose processes the system ends when its last handle is closed.

        If the system refuses a job object, only the child itself is ended.

        Args:
            memory_bytes: the most memory of each process; None for no limit.
        """

        def __init__(self, memory_bytes: int | None = None) -> None:
            self._is_limited = memory_bytes is not None
            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = wintypes.HANDLE
            kernel.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
            kernel.SetInformationJobObject.argtypes = (
                wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD,
            )  # fmt: skip
            kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
            kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
            kernel.GetCurrentProcess.restype = wintypes.HANDLE
            kernel.DuplicateHandle.argtypes = (
                wintypes.HANDLE, wintypes.HANDLE, wintypes.HANDLE,
                ctypes.POINTER(wintypes.HANDLE), wintypes.DWORD, wintypes.BOOL, wintypes.DWORD,
            )  # fmt: skip
            kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
            self._kernel = kernel
            self._lock = threading.Lock()
            self._handle = kernel.CreateJobObjectW(None, None)
            limits = _Limits()
            limits.basic.limit_flags = _KILL_ON_CLOSE
            if memory_bytes is not None:
                limits.basic.limit_flags |= _PROCESS_MEMORY | _DIE_QUIETLY
                limits.process_memory = memory_bytes
            if self._handle:
                kernel.SetInformationJobObject(
                    self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
                )

        def add(self, process: subprocess.Popen[bytes]) -> None:
            """Put a process into the job; its descendants belong to it as well.

            The process holds the job as well: if this one is killed, it sees its standard input
            end, removes its files and ends, and only then the job ends what it has started. One
            with a limit cannot be trusted to look at its input: it ends at once.
            """
            if self._handle:
                handle = int(process._handle)  # type: ignore[attr-defined]
                self._kernel.AssignProcessToJobObject(self._handle, handle)
                if self._is_limited:
                    return
                self._kernel.DuplicateHandle(
                    self._kernel.GetCurrentProcess(), self._handle, handle,
                    ctypes.byref(wintypes.HANDLE()), 0, False, _SAME_ACCESS,
                )  # fmt: skip

        def end(self) -> None:
            """End all processes of the job."""
            with self._lock:
                if self._handle:
                    self._kernel.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            """Close the job's handle."""
            with self._lock:
                if self._handle:
                    self._kernel.CloseHandle(self._handle)
                    self._handle = None


def _is_being_started(process: Path) -> bool:
    """Return whether a process that showed no variables may have some. proc_pid_stat(5).

    The system's own threads have no memory, and a program without variables an empty place for
    them. The place of a program that is being started is at 0, or filled by now.
    """
    fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
    memory_bytes, start, end = int(fields[20]), int(fields[47]), int(fields[48])
    return memory_bytes > 0 and (end == 0 or start != end)


if sys.platform == "linux":

    def _limit(pid: int, memory_bytes: int) -> None:
        """Limit what a process allocates, with the stacks of its threads; it dumps no core.

        Not its addresses: libraries take more of those than memory. getrlimit(2).
        """
        resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        os.sched_setaffinity(pid, sorted(os.sched_getaffinity(pid))[-_MOST_CPUS:])


def _opened_log(path: Path) -> IO[bytes] | None:
    """Return a log to append to; None for one that cannot be opened: the child works as well.

    A pipe in its place would wait for a reader, so only an ordinary file is a log.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "ab")


def _command(module: str | Path | tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Return the words that start a child, and the variables that its Python needs."""
    if isinstance(module, tuple):
        return [*module], {}
    python, launched = direct_start()
    program = [str(module)] if isinstance(module, Path) else ["-m", module]
    return [python, *program], launched


class ChildProcess:
    """One ``python -m module`` and its two pipes. Any thread may call `send` and `end`.

    Args:
        module: the module to run, as for ``python -m``, the path of a script, or the words of
            another program's command.
        arguments: its arguments.
        environment: environment variables in addition to the inherited ones.
        inherited: the environment variables of this process that the child gets; None for all.
        log_path: the file for its standard error; None inherits this process's, and so does a
            file that cannot be opened.
        memory_bytes: the most memory that it may allocate, on Linux and Windows; None for no limit.
        keeps_errors: whether its standard error is `errors` instead.

    Attributes:
        errors: its standard error, if it keeps it.
    """

    def __init__(
        self,
        module: str | Path | tuple[str, ...],
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        inherited: Mapping[str, str] | None = None,
        log_path: Path | None = None,
        memory_bytes: int | None = None,
        keeps_errors: bool = False,
    ) -> None:
        self._family = _Family(memory_bytes)
        log = _opened_log(log_path) if log_path else None
        command, launched = _command(module)
        try:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if keeps_errors else log,
                env={
                    **(os.environ if inherited is None else inherited),
                    **launched,
                    **self._family.environment(),
                    **(environment or {}),
                },
                cwd=_HOME_OF_THE_PACKAGE,
                start_new_session=self._family.is_outermost,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError:
            self._family.close()
            raise
        finally:
            if log is not None:
                log.close()
        self._family.lead(self._process)
        self.errors = self._process.stderr
        self._sending = threading.Lock()
        self._reading = threading.Lock()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the child still lives."""
        return self._process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Whether a signal holds the child up (SIGSTOP); False where the system does not say."""
        if sys.platform == "linux":
            flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            with contextlib.suppress(OSError):  # it has ended
                return os.waitid(os.P_PID, self.pid, flags) is not None
        return False

    def send(self, line: bytes) -> bool:
        """Write one line; return False if the child is gone."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._sending:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError):  # a broken pipe, or closed by `end`
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """Yield the child's lines until it closes its pipe. One thread reads at a time."""
        stdout = self._process.stdout
        assert stdout is not None
        while True:
            try:
                with self._reading:
                    line = stdout.readline(LONGEST_LINE)
            except ValueError:  # closed by `end`
                return
            if not line:
                return
            yield line

    def read(self, count: int) -> bytes:
        """Return the child's next bytes; fewer than ``count`` only at the end of its pipe."""
        stdout = self._process.stdout
        assert stdout is not None
        try:
            with self._reading:
                return stdout.read(count)
        except ValueError:  # closed by `end`
            return b""

    def read_some(self, most: int) -> bytes:
        """Return the child's next bytes, as soon as there are any; none at the end of its pipe."""
        stdout = self._process.stdout
        assert isinstance(stdout, io.BufferedReader)
        try:
            with self._reading:
                return stdout.read1(most)
        except ValueError:  # closed by `end`
            return b""

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code, negative for a signal; None if it still runs after the timeout."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the child and its descendants now.

        A child in a hanging driver call may survive; it is abandoned.
        """
        self._family.kill()

    def close_input(self) -> None:
        """Close the child's input, which asks it to end; wait for nothing."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, ValueError):
            stdin.close()

    def end(self, timeout_s: float = 2.0) -> int | None:
        """Close the child's input, wait, kill it if necessary; its descendants end as well.

        A child that a hanging driver call protects from the kill costs at most a second more than
        ``timeout_s``.

        Returns:
            Its exit code, negative for a signal; None if it had to be killed.
        """
        self.close_input()
        exit_code = self.wait(timeout_s)
        if exit_code is None:
            self.kill()
            self.wait(_LONGEST_KILL_S)
        self._family.close()
        # Asked once more, so that a child that was just killed leaves no zombie.
        is_left_behind = self.is_running
        # A reader in another thread sees the end first, unless the child hangs.
        if self._reading.acquire(timeout=_LONGEST_KILL_S if is_left_behind else timeout_s):
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._reading.release()
        return exit_code
