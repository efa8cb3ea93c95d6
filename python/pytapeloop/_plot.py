"""Drawings of columns along a sequence."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._describe import describe
from ._features import features
from ._native import Table


class Plot:
    """A drawing as SVG, which notebooks show, with colours for light and for dark pages. ``plot``
    returns it; it is not made by hand.

    Attributes:
        svg: The text of the SVG file.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the drawing as an SVG file.

        Args:
            path: The file, which is replaced if it exists.

        Raises:
            OSError: The file cannot be written.
            ValueError: The name does not end in ``.svg``.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ValueError(f"{path}: the drawing is an SVG file; give a name that ends in .svg")
        path.write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # An image, whose patterns are its own: two drawings of a page would share those of the first.
        data = base64.b64encode(self.svg.encode()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" style="max-width: none">'
        return f'<div style="overflow-x: auto">{image}</div>'

    def __repr__(self) -> str:
        return "<pytapeloop.Plot: a notebook shows it, and save(path) writes an SVG file>"


def plot(
    source: Any,
    columns: str | Sequence[str] = (),
    structure: str | None = None,
) -> Plot:
    """Draws columns of residues along the sequence of a structure, as ``tapeloop paint --svg`` does.

    >>> pytapeloop.plot("1ubi.pdb", ["ss8", "phi", "sasa"])
    >>> pytapeloop.plot(table, "phi, psi", structure="1ubi").save("1ubi.svg")

    Args:
        source: A table of residues; or an input of ``features``, such as the path of a file, of which
            the columns are computed.
        columns: Names of columns. For an input they may be those of features and presets too, which
            stand for all of their columns, unless a column has the same name. Without a name all
            columns of features are drawn.
        structure: The name of the structure, if there are several: the file's name without its
            endings. The first model or frame of that name is drawn.

    Returns:
        The drawing. It names the columns that are not drawn: those that are null or the same at all
        residues, those of indices, and those of more words than there are colours.

    Raises:
        ConfigError: A name is that of no feature and no column.
        TapeloopError: The input leads to no file, or was rejected.
        ValueError: The table has no such column or structure, is not one of residues, or has several
            structures and none is named.
    """
    lists = [columns] if isinstance(columns, str) else list(columns)
    names = _native.names_in(lists)
    if not isinstance(source, Table):
        source = features(source, names or None, on_reject="raise")
        if names and not (names := _columns_of(names, source)):
            raise ValueError(f"{', '.join(lists)}: none of these columns is one of residues")
    return Plot(source._draw(names, structure))


def _columns_of(names: list[str], table: Table) -> list[str]:
    """The names of columns, and in place of other names the columns of these features."""
    columns = []
    for name in names:
        if name in table:
            columns.append(name)
            continue
        of_features = (column["name"] for feature in describe(name) for column in feature["columns"])
        columns += [column for column in of_features if column in table]
    return columns
