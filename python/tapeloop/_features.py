"""Features of structures as tables in memory."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from . import _native
from ._inputs import grouped, structures_in
from ._program import program
from ._progress import Progress

OnReject = Literal["warn", "raise", "ignore"]

TABLES = ("residues", "chains", "structures")


class RejectedWarning(UserWarning):
    """Inputs were rejected: they have no rows."""


class Features:
    """An engine that computes features, kept for several calls.

    Args:
        features: Names of features and presets, such as ``["sasa", "torsions"]``; the command
            ``tapeloop features`` lists them. None for the default of the config file.
        on_reject: What happens after a call if inputs were rejected: a ``RejectedWarning``, a
            ``TapeloopError``, or nothing.
        settings: Keys of the config file except ``input`` and ``output``. Keys in tables are nested
            or dotted: ``sasa={"points": 256}`` or ``**{"sasa.points": 256}``.

    Raises:
        ConfigError: A setting is wrong; the message lists all that are.
        TapeloopError: The device cannot be used, or memory does not suffice.
    """

    def __init__(
        self,
        features: str | Sequence[str] | None = None,
        *,
        on_reject: OnReject = "warn",
        **settings: Any,
    ) -> None:
        if on_reject not in ("warn", "raise", "ignore"):
            raise ValueError(f"on_reject is {on_reject!r}; take warn, raise or ignore")
        if features is not None:
            settings["features"] = [features] if isinstance(features, str) else list(features)
        if settings.get("supervise") and "worker" not in settings:
            settings["worker"] = program()
        self._on_reject = on_reject
        try:
            text = json.dumps(settings, default=os.fspath, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _native.ConfigError(f"settings: {error}") from None
        self._engine = _native.Engine(text)

    def stream(
        self, inputs: Any, table: str = "residues", *, progress: bool | None = None
    ) -> Iterator[_native.RecordBatch]:
        """Computes the features of ``inputs``, and yields the rows of a table as they are made.

        Args:
            inputs: Paths of files, folders, globs, archives and lists (``@list.txt``); or
                structures in memory: bytes of PDB, mmCIF or BinaryCIF files, ``tapeloop.Atoms``,
                Biotite's ``AtomArray`` or gemmi's ``Structure``, as an iterable, with names as a
                mapping or as pairs. An iterable of structures is read bit by bit.
            table: ``residues``, ``chains``, ``structures``, ``contacts`` (with the setting
                ``contacts.atom``), ``hydrogen_bonds`` (with ``hydrogen_bonds=True``),
                ``ligands`` (with ``ligands="keep"``), ``interfaces`` (with
                ``interfaces=True``) or ``variants``.
            progress: Whether the counts of inputs, structures and residues are shown from the first
                second on. None for where standard error is a terminal, and in notebooks. True shows
                them elsewhere too, as a line each 5 seconds.

        Yields:
            Record batches of some ten thousand rows, in the order of the inputs.

        Raises:
            ConfigError: There is no such table.
            TapeloopError: An input leads to no file, the run failed, or another stream of this
                engine is open.
            TypeError, ValueError: An input is no structure.
        """
        rejected: list[_native.RecordBatch] = []
        stream = None
        shown = Progress(progress, structures_in(inputs))
        try:
            for group in grouped(inputs):
                stream = self._open(group, [table], shown)
                while (batch := stream.next(shown.show)) is not None:
                    name, rows = batch
                    if name == table:
                        shown.hide()
                        yield rows
                    else:
                        rejected.append(rows)
                shown.hide()
                self._judge(stream.table("rejected", rejected))
                rejected.clear()
        finally:
            if stream is not None:
                stream.close()
            shown.end()

    def table(
        self, inputs: Any, table: str = "residues", *, progress: bool | None = None
    ) -> _native.Table:
        """Computes the features of ``inputs``, and returns one table. Arguments and errors are those
        of ``stream``."""
        return self._collect(inputs, [table], progress)[table]

    def tables(
        self,
        inputs: Any,
        names: str | Sequence[str] = TABLES,
        *,
        progress: bool | None = None,
    ) -> dict[str, _native.Table]:
        """Computes the features of ``inputs`` once, and returns several tables by their names.

        ``rejected`` is always among them: the inputs without rows, with ``source``, ``ordinal``,
        ``model``, ``kind``, ``reason`` and ``fix``. The other arguments and the errors are those of
        ``stream``.
        """
        names = [names] if isinstance(names, str) else list(names)
        return self._collect(inputs, names, progress)

    def _collect(
        self, inputs: Any, names: list[str], progress: bool | None
    ) -> dict[str, _native.Table]:
        batches: dict[str, list[_native.RecordBatch]] = {name: [] for name in (*names, "rejected")}
        stream = None
        shown = Progress(progress, structures_in(inputs))
        try:
            for group in grouped(inputs):
                if stream is not None:
                    stream.close()
                stream = self._open(group, names, shown)
                while (batch := stream.next(shown.show)) is not None:
                    name, rows = batch
                    batches[name].append(rows)
            if stream is None:
                stream = self._open((0, []), names, shown)
                stream.next()
            result = {name: stream.table(name, rows) for name, rows in batches.items()}
        finally:
            if stream is not None:
                stream.close()
            shown.end()
        self._judge(result["rejected"])
        return result

    def _open(self, group: Any, names: list[str], shown: Progress) -> _native.Stream:
        shown.next_stream()
        if isinstance(group, tuple):
            first, files = group
            return self._engine.stream_files(files, first, names)
        return self._engine.stream_paths(group, names, shown.show is not None)

    def _judge(self, rejected: _native.Table) -> None:
        count = rejected.num_rows
        if count == 0 or self._on_reject == "ignore":
            return
        inputs = "1 input was" if count == 1 else f"{count} inputs were"
        text = f"{inputs} rejected; the first: {rejected._first_rejected()}"
        if self._on_reject == "raise":
            raise _native.TapeloopError(text)
        warnings.warn(text, RejectedWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The ``stacklevel`` with which a warning names the line that called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1
    return level


def features(
    inputs: Any,
    features: str | Sequence[str] | None = None,
    *,
    table: str = "residues",
    on_reject: OnReject = "warn",
    progress: bool | None = None,
    **settings: Any,
) -> _native.Table:
    """Computes features of structures, and returns a table.

    The arguments are those of ``Features`` and of ``Features.stream``.

    >>> tapeloop.features("1ubi.pdb", ["sasa", "torsions"], backend="cpu").to_pandas()
    """
    return Features(features, on_reject=on_reject, **settings).table(
        inputs, table, progress=progress
    )


def tables(
    inputs: Any,
    features: str | Sequence[str] | None = None,
    *,
    names: str | Sequence[str] = TABLES,
    on_reject: OnReject = "warn",
    progress: bool | None = None,
    **settings: Any,
) -> dict[str, _native.Table]:
    """Computes features of structures, and returns several tables by their names, and ``rejected``.

    The arguments are those of ``Features`` and of ``Features.tables``.
    """
    return Features(features, on_reject=on_reject, **settings).tables(
        inputs, names, progress=progress
    )


def stream(
    inputs: Any,
    features: str | Sequence[str] | None = None,
    *,
    table: str = "residues",
    on_reject: OnReject = "warn",
    progress: bool | None = None,
    **settings: Any,
) -> Iterator[_native.RecordBatch]:
    """Computes features of structures, and yields the rows of a table as they are made.

    The arguments are those of ``Features`` and of ``Features.stream``.
    """
    return Features(features, on_reject=on_reject, **settings).stream(
        inputs, table, progress=progress
    )
