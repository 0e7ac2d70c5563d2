"""The setup's progress in a small window, for a double-click without a terminal."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from studio_setup.console import SetupError

if TYPE_CHECKING:
    import tkinter
    from collections.abc import Callable

    from studio_setup.console import Console

    _Queue = queue.SimpleQueue[tuple[str, str, float | None]]

_POLL_MS = 50


class WindowConsole:
    """Sends progress to a window, and ends the work if that window is closed.

    Args:
        messages: gets (kind, text, fraction) of each message.
    """

    def __init__(self, messages: _Queue) -> None:
        self.messages = messages
        self._closed = threading.Event()
        self._stop: Callable[[], None] | None = None

    def step(self, number: int, count: int, text: str) -> None:
        """Start one of the setup's steps."""
        self._send("step", f"{number}/{count} {text}", (number - 1) / count)

    def note(self, text: str) -> None:
        """Print a sentence."""
        self._send("note", text.strip(), None)

    def detail(self, text: str, fraction: float | None) -> None:
        """Show the current action."""
        share = "" if fraction is None else f" {100 * fraction:.0f} %"
        self._send("detail", f"{text[:70]}{share}", None)

    def stops_with(self, stop: Callable[[], None]) -> None:
        """Set the function that ends the current action."""
        self._stop = stop
        if self._closed.is_set():
            stop()

    def close(self) -> None:
        """End the work at once: pip may be silent for minutes."""
        self._closed.set()
        if self._stop is not None:
            self._stop()

    def _send(self, kind: str, text: str, fraction: float | None) -> None:
        if self._closed.is_set():
            raise SetupError("Stopped. The next start continues from here.")
        self.messages.put((kind, text, fraction))


class _ProgressWindow:
    """The title, the progress bar, the current action, and the messages so far."""

    def __init__(self, root: tkinter.Tk, messages: _Queue) -> None:
        from tkinter import ttk

        self._root, self._messages = root, messages
        root.title("GPU Studio")
        root.minsize(520, 220)
        self._step = ttk.Label(root, text="Setting up GPU Studio…", font=("", 12, "bold"))
        self._bar = ttk.Progressbar(root, maximum=1.0)
        self._detail = ttk.Label(root, text="")
        self._notes = ttk.Label(root, text="", wraplength=480, justify="left")
        self._close = ttk.Button(root, text="Stop", command=root.destroy)
        for widget in (self._step, self._bar, self._detail, self._notes):
            widget.pack(fill="x", padx=16, pady=6)
        self._close.pack(anchor="e", padx=16, pady=12)
        root.after(_POLL_MS, self._poll)

    def _poll(self) -> None:
        while not self._messages.empty():
            kind, text, fraction = self._messages.get()
            if kind == "done":
                self._root.destroy()
                return
            self._show(kind, text, fraction)
        self._root.after(_POLL_MS, self._poll)

    def _show(self, kind: str, text: str, fraction: float | None) -> None:
        if kind == "step":
            self._step.configure(text=text)
        elif kind == "failed":
            self._step.configure(text="The setup stopped")
            self._close.configure(text="Close")
        if fraction is not None:
            self._bar.configure(value=fraction)
        if kind == "detail":
            self._detail.configure(text=text)
        elif kind in ("note", "failed"):
            self._notes.configure(text=text)


def show_progress(work: Callable[[Console], None]) -> bool | None:
    """Do the work on a thread while a window shows its progress.

    Returns:
        Whether the work succeeded; None if the window cannot open (no tkinter or no display),
        and then no work was started.
    """
    try:
        import tkinter

        root = tkinter.Tk()
    except ImportError:
        return None
    except tkinter.TclError:
        return None
    messages: _Queue = queue.SimpleQueue()
    console = WindowConsole(messages)
    outcome: list[bool] = []

    def do_work() -> None:
        try:
            work(console)
        except (SetupError, OSError) as error:
            messages.put(("failed", str(error), None))
        except BaseException:
            # Otherwise the window would wait forever; the traceback goes to stderr.
            messages.put(("failed", "The setup crashed: start it in a terminal.", None))
            raise
        else:
            outcome.append(True)
            messages.put(("done", "", None))

    _ProgressWindow(root, messages)
    thread = threading.Thread(target=do_work, name="set-up")
    thread.start()
    root.mainloop()
    console.close()
    thread.join()
    return bool(outcome)
