"""Features in Ray Data: ``dataset.map_batches(pytapeloop.ray.Features, ...)``.

>>> import ray, pytapeloop
>>> files = ray.data.from_items([{"path": path} for path in paths])
>>> rows = files.map_batches(
...     pytapeloop.ray.Features,
...     fn_constructor_kwargs={"features": ["sasa"]},
...     num_gpus=1,
...     concurrency=8,
...     batch_size=1000,
... )

Importing this module does not import Ray.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _features

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Unpack

    from ._settings import Settings

__all__ = ["Features"]


class Features:
    """An engine for the actors of ``map_batches``: rows of paths or files become rows of a table.

    Ray makes one in each actor, which keeps its engine for all of its batches. An actor that dies is
    started again, and computes its batch again: no input is lost, and none has its rows twice.

    Args:
        features: Names of features, presets and columns, as ``pytapeloop.Features`` takes them.
        table: The name of the table, as ``pytapeloop.Features.stream`` takes it. A data set has rows
            of one table.
        path_column: The column of the batches with the paths.
        bytes_column: The column with the contents of the files, as ``ray.data.read_binary_files``
            makes it. In batches without it the files are read from their paths.
        settings: Keys of the config file, as ``pytapeloop.Features`` takes them. ``threads`` is by
            default the number of CPUs that Ray gives the actor (``num_cpus``). An actor with a GPU and
            at most one CPU takes its share of the machine: a quarter of the CPUs with one GPU of four.
            ``annotations_unmatched`` is by default ``"allow"``, since a batch is a part of the inputs.

    Raises:
        ConfigError: A setting is wrong, there is no such table, or the settings leave it without rows.
        TapeloopError: The device cannot be used, or memory does not suffice.
    """

    def __init__(
        self,
        features: str | Sequence[str] | None = None,
        *,
        table: str = "residues",
        path_column: str = "path",
        bytes_column: str = "bytes",
        **settings: Unpack[Settings],
    ) -> None:
        threads = _threads_of_actor()
        if threads is not None:
            settings.setdefault("threads", threads)
        settings.setdefault("annotations_unmatched", "allow")
        self._table = table
        self._path_column = path_column
        self._bytes_column = bytes_column
        self._engine = _features.Features(features, on_reject="ignore", **settings)
        # A wrong name of a table ends the actor before its first batch.
        self._engine.table([], table)

    def __call__(self, batch: Any) -> pyarrow.Table:
        """Computes the features of a batch, which Ray passes.

        Args:
            batch: Columns of the same length, as a mapping of arrays, a ``pyarrow.Table`` or a
                ``pandas.DataFrame``. Each path leads to a file, a folder, an archive or a packed set
                on the machine of the actor; with contents it only names the file.

        Returns:
            The rows of ``pytapeloop.features`` with a column ``rejected`` more, which is null.
            After them come the inputs without rows: ``source``, ``model`` (null if the whole input
            was rejected) and in ``rejected`` the reason, with all other columns null. A path that
            does not exist is such an input.

        Raises:
            KeyError: The batch has no column of paths.
            TypeError: A path is no text, or contents are no bytes.
            TapeloopError: A folder has no structures, or the run failed.
        """
        paths = _column(batch, self._path_column)
        if paths is None:
            raise KeyError(
                f"a batch has no column {self._path_column!r} with paths; name it with path_column"
            )
        for path in paths:
            if not isinstance(path, str):
                raise TypeError(f"the path {path!r} is not text")
        contents = _column(batch, self._bytes_column)
        missing: list[str] = []
        if contents is None:
            missing = [path for path in paths if not os.path.exists(path)]
            inputs: list[Any] = [path for path in paths if os.path.exists(path)]
        else:
            inputs = list(zip(paths, contents))
        tables = self._engine.tables(inputs, [self._table], progress=False)
        rejected = [
            {"source": row["source"], "model": row["model"], "rejected": _reason(row)}
            for row in tables["rejected"].to_arrow().to_pylist()
        ]
        reason = "io: no such file or folder"
        rejected += [{"source": path, "model": None, "rejected": reason} for path in missing]
        return _joined(tables[self._table].to_arrow(), rejected)


def _threads_of_actor() -> int | None:
    """The threads of this actor's engine; None if Ray gives it no CPU, and outside of actors."""
    ray: Any = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    if context.get_actor_id() is None:
        return None
    own = context.get_assigned_resources()
    cpus, gpus = own.get("CPU", 0), own.get("GPU", 0)
    if gpus > 0 and cpus <= 1:
        # Ray reserves a single CPU for an actor with a GPU, and one thread reads files slower than a
        # GPU computes them.
        here = context.get_node_id()
        (machine,) = (node["Resources"] for node in ray.nodes() if node["NodeID"] == here)
        cpus = machine.get("CPU", 0) * gpus / machine["GPU"]
    return max(int(cpus), 1) if cpus > 0 else None


def _column(batch: Any, name: str) -> list[Any] | None:
    """The values of a column; None if the batch lacks it."""
    if hasattr(batch, "column_names"):
        return batch[name].to_pylist() if name in batch.column_names else None
    return list(batch[name]) if name in batch else None


def _reason(row: dict[str, Any]) -> str:
    fix = f" ({row['fix']})" if row["fix"] else ""
    return f"{row['kind']}: {row['reason']}{fix}"


def _joined(rows: pyarrow.Table, rejected: list[dict[str, Any]]) -> pyarrow.Table:
    """The rows of the table and those of rejected inputs. The schema of all batches is the same."""
    import pyarrow

    fields = [field.with_nullable(True) for field in rows.schema]
    about = {"description": "Why the input has no rows; null in the rows of the table."}
    fields.append(pyarrow.field("rejected", pyarrow.string(), metadata=about))
    schema = pyarrow.schema(fields, rows.schema.metadata)
    none = pyarrow.nulls(rows.num_rows, pyarrow.string())
    table = pyarrow.table([*rows.columns, none], schema=schema)
    return pyarrow.concat_tables([table, pyarrow.Table.from_pylist(rejected, schema=schema)])
