from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

__version__: str

class TapeloopError(Exception):
    """An error of the engine, of a device, or of reading or writing files."""

class ConfigError(TapeloopError):
    """Settings or inputs that cannot be used. The message lists all that is wrong."""

class Column:
    """A column of a table: a sequence of numbers, texts, or True and False, with None for null.
    ``numpy.asarray(column)`` makes an array, in which null is NaN in numbers and None in others;
    ``pyarrow.array(column)`` and ``polars.Series(column)`` take it without a copy. ``table["sasa"]``
    returns it; it is not made by hand.
    """

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def unit(self) -> str:
        """The unit, such as ``A^2`` or ``degrees``; empty if it has none."""

    @property
    def description(self) -> str:
        """What the column holds, in a sentence."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int) -> float | int | bool | str | None: ...
    @overload
    def __getitem__(self, key: slice) -> Column: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

class RecordBatch:
    """Rows of a table, which PyArrow, Polars, pandas and DuckDB take without a copy:
    ``pyarrow.record_batch(batch)``, ``polars.DataFrame(batch)``. ``batch["sasa"]`` is a ``Column``.
    ``stream`` yields them; they are not made by hand.
    """

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def num_columns(self) -> int:
        """Number of columns."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Column: ...
    def __contains__(self, name: str) -> bool: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

class Table:
    """A table in memory, which PyArrow, Polars, pandas and DuckDB take without a copy:
    ``pyarrow.table(table)``, ``polars.DataFrame(table)``, ``table.to_pandas()``. ``table["sasa"]`` is a
    ``Column``, and ``"sasa" in table`` tells whether there is one. ``features`` and ``tables`` return
    them; they are not made by hand.
    """

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def num_columns(self) -> int:
        """Number of columns."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Column: ...
    def __contains__(self, name: str) -> bool: ...
    def _repr_html_(self) -> str: ...
    def head(self, n: int = 5) -> Table:
        """The first rows.

        Args:
            n: How many rows; all, if the table has no more.

        Returns:
            A table of these rows, without a copy.

        Raises:
            OverflowError: ``n`` is negative.
        """

    def to_arrow(self) -> Any:
        """The table as a ``pyarrow.Table``, without a copy.

        Returns:
            The rows, with the unit, the description and the source of a column in its metadata.

        Raises:
            ImportError: PyArrow is not installed.
        """

    def to_polars(self) -> Any:
        """The table as a ``polars.DataFrame``.

        Returns:
            The rows; Polars keeps no metadata of columns.

        Raises:
            ImportError: Polars is not installed.
        """

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``, by way of PyArrow.

        Returns:
            The rows; columns of integers with nulls are of floats, as pandas has it.

        Raises:
            ImportError: PyArrow or pandas is not installed.
        """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _first_rejected(self) -> str | None: ...
    def _draw(self, columns: Sequence[str], structure: str | None) -> str: ...

class Replay:
    def __new__(
        cls,
        source: str,
        options: Sequence[str],
        launches: Sequence[
            tuple[
                str,
                Sequence[int],
                Sequence[int] | None,
                int,
                Sequence[str | int | float],
                Callable[[list[Any]], None] | None,
            ]
        ],
        buffers: Sequence[tuple[str, str, int, str, Any]],
        device: str | int,
        mode: str,
        slots: int,
        verify: bool,
    ) -> Replay: ...
    @property
    def device(self) -> str: ...
    def submit(self, arrays: Sequence[tuple[str, Any]]) -> int: ...
    def is_done(self, id: int) -> bool: ...
    def result(self, id: int, timeout: float | None) -> list[bytearray] | None: ...
    def forget(self, id: int) -> None: ...
    def close(self) -> None: ...

class Engine:
    def __new__(cls, settings: str) -> Engine: ...
    def check_tables(self, tables: Sequence[str]) -> None: ...
    def stream_paths(
        self, paths: Sequence[str], tables: Sequence[str], counts_inputs: bool
    ) -> Stream: ...
    def stream_files(
        self, files: Sequence[tuple[str, bytes]], first: int, tables: Sequence[str]
    ) -> Stream: ...

class Stream:
    def next(
        self, show: Callable[[int | None, int, int, int, int], object] | None = None
    ) -> tuple[str, RecordBatch] | None: ...
    def close(self) -> None: ...
    def table(self, name: str, batches: Sequence[RecordBatch]) -> Table: ...

def describe(settings: str) -> tuple[str, str]: ...
def names_in(lists: Sequence[str]) -> list[str]: ...
def settings() -> list[tuple[str, str]]: ...
def kernels() -> tuple[str, list[str], dict[str, bytes]]: ...
def mmcif_of_atoms(
    coordinates: Sequence[Sequence[float]],
    names: Sequence[str],
    residues: Sequence[str],
    chains: Sequence[str],
    numbers: Sequence[int],
    insertions: Sequence[str] | None = None,
    elements: Sequence[str] | None = None,
    hetero: Sequence[bool] | None = None,
    b_factors: Sequence[float] | None = None,
) -> bytes: ...
