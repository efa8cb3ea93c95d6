"""Features of structures as tables in memory."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._inputs import grouped, structures_in
from ._program import program
from ._progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings

OnReject = Literal["warn", "raise", "ignore"]

TABLES = ("residues", "chains", "structures")


class RejectedWarning(UserWarning):
    """Inputs were rejected: they have no rows. The message has their number, and the first one with
    its reason."""


class Features:
    """An engine that computes features, kept for several calls. It serves one stream at a time.

    Args:
        features: Names of features and presets, such as ``["sasa", "torsions"]``, and of columns for
            the features that have them: ``"phi, psi"``. ``describe`` lists them with their formulas
            and units. Features that compute nothing by default, such as ``ligands`` and
            ``residue_depth``, are switched on by their names; ``contacts`` and ``cluster`` need a
            setting. None for all features, without those.
        on_reject: What happens after a call if inputs were rejected: a ``RejectedWarning``
            (``"warn"``), a ``TapeloopError`` (``"raise"``), or nothing (``"ignore"``).
        settings: Keys of the config file except ``input``, ``output`` and ``timeline``. Keys in tables are
            nested or dotted: ``sasa={"points": 256}`` or ``**{"sasa.points": 256}``.

    Raises:
        ConfigError: A setting is wrong; the message lists all that are.
        TapeloopError: The device cannot be used, or memory does not suffice.
        ValueError: ``on_reject`` is none of these.
    """

    def __init__(
        self,
        features: str | Sequence[str] | None = None,
        *,
        on_reject: OnReject = "warn",
        **settings: Unpack[Settings],
    ) -> None:
        if on_reject not in ("warn", "raise", "ignore"):
            raise ValueError(f"on_reject is {on_reject!r}; take warn, raise or ignore")
        if settings.get("supervise") and "worker" not in settings:
            settings["worker"] = program()
        self._on_reject = on_reject
        self._engine = _native.Engine(settings_text(features, dict(settings)))

    def stream(
        self, inputs: Any, table: str = "residues", *, progress: bool | None = None
    ) -> Iterator[_native.RecordBatch]:
        """Computes the features of ``inputs``, and yields the rows of a table as they are made.

        Args:
            inputs: Paths of files, folders, globs, archives and lists (``@list.txt``); or
                structures in memory: bytes of PDB, mmCIF or BinaryCIF files, ``pytapeloop.Atoms``,
                Biotite's ``AtomArray`` or gemmi's ``Structure``, as an iterable, with names as a
                mapping or as pairs. An iterable of structures is read bit by bit.
            table: ``residues``, ``chains``, ``structures``, ``contacts`` (with the setting
                ``contacts.atom``), ``hydrogen_bonds``, ``ligands``, ``interfaces``, ``atoms`` and
                ``interactions`` (with the features of these names, or ``hydrogen_bonds=True``,
                ``ligands="keep"``, ``interfaces=True``, ``atoms=True`` and ``interactions=True``),
                ``water_bridges`` (with ``interaction={"waters": True}``), or ``variants`` (with
                ``annotations`` of variants).
            progress: Whether the counts of inputs, structures and residues are shown from the first
                second on. None for where standard error is a terminal, and in notebooks. True shows
                them elsewhere too, as a line each 5 seconds.

        Returns:
            An iterator of record batches of some ten thousand rows, in the order of the inputs: a
            row for each residue, chain, structure, pair and so on. The metadata of a column has its
            ``unit``, its ``description`` and its ``source``: lengths are in angstrom, areas in
            square angstrom, angles in degrees from -180 to 180. What is missing is null.

        Raises:
            ConfigError: There is no such table, or the settings leave it without rows. This is raised
                at once, and the other errors while the rows are read.
            TapeloopError: An input leads to no file, no row of a table of ``annotations`` matches
                the paths, the run failed, another stream of this engine is open, the engine was
                made before a fork, or an input was rejected and ``on_reject`` is ``"raise"``.
            TypeError: An input is no structure, or paths and structures are mixed.
            ValueError: ``pytapeloop.Atoms`` has columns of other lengths, coordinates that are not
                finite, or a name that is not printable; or ``progress`` is no truth value.
        """
        self._engine.check_tables([table])
        return self._stream(inputs, table, progress)

    def _stream(
        self, inputs: Any, table: str, progress: bool | None
    ) -> Iterator[_native.RecordBatch]:
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
        """Computes the features of ``inputs``, and returns one table.

        Args:
            inputs: Paths or structures in memory, as ``stream`` takes them.
            table: The name of the table, as ``stream`` takes it.
            progress: Whether progress is shown, as by ``stream``.

        Returns:
            All rows that ``stream`` yields, in the same order and with the same units.

        Raises:
            ConfigError, TapeloopError, TypeError, ValueError: As ``stream`` raises them.
        """
        if not isinstance(table, str):
            raise TypeError(f"table is {table!r}; give one name, or several to tables(names=[...])")
        return self._collect(inputs, [table], progress)[table]

    def tables(
        self,
        inputs: Any,
        names: str | Sequence[str] = TABLES,
        *,
        progress: bool | None = None,
    ) -> dict[str, _native.Table]:
        """Computes the features of ``inputs`` once, and returns several tables by their names.

        Args:
            inputs: Paths or structures in memory, as ``stream`` takes them.
            names: The names of the tables, as ``stream`` takes them.
            progress: Whether progress is shown, as by ``stream``.

        Returns:
            The tables by their names, with the rows and units of ``stream``. ``rejected`` is always
            among them, with a row for each input without rows: ``source``, ``ordinal`` (its number
            among the inputs, from 0), ``model``, ``kind``, ``reason`` and ``fix``.

        Raises:
            ConfigError, TapeloopError, TypeError, ValueError: As ``stream`` raises them.
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


def settings_text(features: str | Sequence[str] | None, settings: dict[str, Any]) -> str:
    """The settings as JSON, with the names of features."""
    if features is not None:
        settings["features"] = [features] if isinstance(features, str) else list(features)
    try:
        return json.dumps(settings, default=os.fspath, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _native.ConfigError(f"settings: {error}") from None


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
    **settings: Unpack[Settings],
) -> _native.Table:
    """Computes features of structures, and returns a table.

    >>> pytapeloop.features("1ubi.pdb", ["sasa", "torsions"], backend="cpu").to_pandas()

    Args:
        inputs: Paths of files, folders, globs, archives and lists, or structures in memory, as
            ``Features.stream`` takes them.
        features: Names of features, presets and columns, as ``Features`` takes them.
        table: The name of the table, as ``Features.stream`` takes it.
        on_reject: ``"warn"``, ``"raise"`` or ``"ignore"``, as ``Features`` takes it.
        progress: Whether progress is shown, as by ``Features.stream``.
        settings: Keys of the config file, as ``Features`` takes them.

    Returns:
        A table with a row for each residue, or for each chain, structure and so on with ``table``, in
        the order of the inputs. The metadata of a column has its unit: lengths are in angstrom, areas
        in square angstrom, angles in degrees from -180 to 180. What is missing is null.

    Raises:
        ConfigError, TapeloopError, TypeError, ValueError: As ``Features`` and ``Features.stream``
            raise them.
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
    **settings: Unpack[Settings],
) -> dict[str, _native.Table]:
    """Computes features of structures once, and returns several tables by their names.

    Args:
        inputs: Paths of files, folders, globs, archives and lists, or structures in memory, as
            ``Features.stream`` takes them.
        features: Names of features, presets and columns, as ``Features`` takes them.
        names: The names of the tables, as ``Features.stream`` takes them.
        on_reject: ``"warn"``, ``"raise"`` or ``"ignore"``, as ``Features`` takes it.
        progress: Whether progress is shown, as by ``Features.stream``.
        settings: Keys of the config file, as ``Features`` takes them.

    Returns:
        The tables by their names, and ``rejected``, as ``Features.tables`` returns them.

    Raises:
        ConfigError, TapeloopError, TypeError, ValueError: As ``Features`` and ``Features.stream``
            raise them.
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
    **settings: Unpack[Settings],
) -> Iterator[_native.RecordBatch]:
    """Computes features of structures, and yields the rows of a table as they are made, for sets that
    are larger than memory.

    Args:
        inputs: Paths of files, folders, globs, archives and lists, or structures in memory, as
            ``Features.stream`` takes them.
        features: Names of features, presets and columns, as ``Features`` takes them.
        table: The name of the table, as ``Features.stream`` takes it.
        on_reject: ``"warn"``, ``"raise"`` or ``"ignore"``, as ``Features`` takes it.
        progress: Whether progress is shown, as by ``Features.stream``.
        settings: Keys of the config file, as ``Features`` takes them.

    Returns:
        An iterator of record batches of some ten thousand rows, in the order of the inputs, with the
        units of ``features``.

    Raises:
        ConfigError, TapeloopError, TypeError, ValueError: As ``Features`` and ``Features.stream``
            raise them.
    """
    return Features(features, on_reject=on_reject, **settings).stream(
        inputs, table, progress=progress
    )
