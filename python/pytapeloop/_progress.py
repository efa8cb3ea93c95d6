"""Progress of a run: a line in a terminal or a notebook."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Progress"]

# Seconds until the first line. Short runs show none.
AFTER = 1.0


class Display(Protocol):
    """Where lines are shown, and the least seconds between two of them."""

    every: float

    def show(self, text: str) -> None: ...

    def hide(self) -> bool:
        """Makes room for the caller's own output. Returns whether a line went."""
        ...

    def end(self, text: str) -> None: ...


class Terminal:
    """A line of a terminal, which the next one replaces."""

    every = 0.1

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, text: str) -> None:
        # A longer line would break, and its first part would stay.
        columns = shutil.get_terminal_size().columns
        self._write(f"\r{text[: columns - 1]}\x1b[K")
        self._is_shown = True

    def hide(self) -> bool:
        was_shown, self._is_shown = self._is_shown, False
        if was_shown:
            self._write("\r\x1b[K")
        return was_shown

    def end(self, text: str) -> None:
        self.hide()

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class Lines:
    """A line of text now and then, for a log."""

    every = 5.0

    def show(self, text: str) -> None:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)

    def hide(self) -> bool:
        return False

    def end(self, text: str) -> None:
        """The caller knows that it ended."""


class Notebook:
    """An output of the notebook's cell, which is updated and stays."""

    every = 0.5

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._output: Any = None

    def show(self, text: str) -> None:
        bundle = {"text/plain": text}
        if self._output is None:
            self._output = self._display(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)

    def hide(self) -> bool:
        return False

    def end(self, text: str) -> None:
        if self._output is not None:
            self.show(text)


def _display(progress: bool | None) -> Display | None:
    if progress is False:
        return None
    ipython: Any = sys.modules.get("IPython")
    get_ipython = getattr(ipython, "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    # IPython in a terminal has no kernel.
    if getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        return Notebook(display)
    if sys.stderr is not None and sys.stderr.isatty():
        return Terminal()
    return Lines() if progress else None


class Progress:
    """Shows the counts of a run, which may consist of several streams.

    Args:
        progress: Whether it is shown; None for where standard error is a terminal, and in notebooks.
        total: The number of inputs, if it is known.
    """

    def __init__(self, progress: bool | None, total: int | None = None) -> None:
        if progress not in (None, True, False):
            raise ValueError(f"progress is {progress!r}; take True, False or None")
        self._display = _display(progress)
        self._total = total
        self._started = time.monotonic()
        self._next = self._started + AFTER
        # Structures, residues and rejected inputs of the streams before, and of this one.
        self._before = [0, 0, 0]
        self._now = [0, 0, 0]
        self._inputs = 0

    @property
    def show(self) -> Callable[..., None] | None:
        """Takes the counts of the stream, as ``_native.Stream.next`` has them; None if nothing is
        shown."""
        return self._show if self._display is not None else None

    def _show(
        self, total: int | None, inputs: int, structures: int, residues: int, rejected: int
    ) -> None:
        self._now = [structures, residues, rejected]
        # A stream has 0 until its first result.
        self._inputs = max(self._inputs, inputs)
        self._total = self._total if total is None else total
        now = time.monotonic()
        if self._display is not None and now >= self._next:
            self._next = now + self._display.every
            self._display.show(self._text())

    def next_stream(self) -> None:
        """The next stream counts structures, residues and rejected inputs from 0."""
        self._before, self._now = self._sums(), [0, 0, 0]

    def hide(self) -> None:
        """Clears the line of a terminal before the caller gets rows. The next counts show it again."""
        if self._display is not None and self._display.hide():
            self._next = 0.0

    def _sums(self) -> list[int]:
        return [before + now for before, now in zip(self._before, self._now)]

    def _text(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-3)
        inputs, total = self._inputs, self._total
        structures, residues, rejected = self._sums()
        of = "" if total is None else f" of {total:,}"
        some_rejected = f", {rejected:,} rejected" if rejected else ""
        remaining = ""
        if total is not None and 0 < inputs < total:
            remaining = f", ETA {seconds * (total - inputs) / inputs:.0f} s"
        return (
            f"{seconds:.0f} s: {inputs:,}{of} inputs, {structures / seconds:,.0f} structures/s, "
            f"{residues / seconds:,.0f} residues/s{some_rejected}{remaining}"
        )

    def end(self) -> None:
        """Clears the line of a terminal, and leaves the last counts in a notebook."""
        if self._display is not None:
            self._display.end(self._text())
