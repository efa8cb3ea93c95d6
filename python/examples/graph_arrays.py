"""Graphs of protein structures as NumPy arrays, from the tables ``residues`` and ``contacts``.

A graph has a node for each residue and two edges, one in each direction, for each pair of residues
whose C-alphas are within a cutoff. It needs NumPy, PyArrow and pytapeloop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pytapeloop

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWYX"
NODE_FEATURES = [*AMINO_ACIDS, "sin phi", "cos phi", "sin psi", "cos psi"]
EDGE_FEATURES = ["distance", "separation", "same_chain"]

# Residues that are farther apart in the sequence count as this far.
SEPARATION_MAX = 32


def graph_arrays(
    residues: Mapping[str, np.ndarray], contacts: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The arrays of a graph, from the rows of one structure.

    Args:
        residues: Columns of the table ``residues``, of shape ``[nodes]``: ``res_index`` in ascending
            order, ``aa``, and ``phi`` and ``psi`` in degrees, NaN where there is none.
        contacts: Columns of the table ``contacts`` with a cutoff, of shape ``[pairs]``:
            ``res_index_i``, ``res_index_j``, ``distance`` in angstrom, ``separation`` in the sequence,
            NaN between chains, and ``same_chain``.

    Returns:
        ``x``, float32 of shape ``[nodes, 25]``: a one for the amino acid, then the sine and the cosine
        of both angles, zeros where there is none (``NODE_FEATURES``). ``edge_index``, int64 of shape
        ``[2, 2 * pairs]``: the rows of ``x`` that an edge leads from and to; the second half are the
        edges of the first half in the other direction. ``edge_attr``, float32 of shape ``[2 * pairs,
        3]`` (``EDGE_FEATURES``): the separation is positive if the edge leads up the sequence, at most
        32, and 0 between chains.
    """
    of_acid = {letter: column for column, letter in enumerate(AMINO_ACIDS)}
    columns = [of_acid.get(letter, of_acid["X"]) for letter in residues["aa"]]
    one_hot = np.eye(len(AMINO_ACIDS), dtype=np.float32)[columns]
    angles = np.radians(np.stack([residues["phi"], residues["psi"]], axis=1))
    circle = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(-1, 4)
    x = np.concatenate([one_hot, np.nan_to_num(circle)], axis=1, dtype=np.float32)

    # Rows may lack residues, as with tables.where.
    ends = np.stack([contacts["res_index_i"], contacts["res_index_j"]])
    pairs = np.searchsorted(residues["res_index"], ends).astype(np.int64)
    edge_index = np.concatenate([pairs, pairs[::-1]], axis=1)
    separation = np.nan_to_num(contacts["separation"]).clip(-SEPARATION_MAX, SEPARATION_MAX)
    along = np.stack([contacts["distance"], separation, contacts["same_chain"]], axis=1)
    back = along * [1, -1, 1]
    edge_attr = np.concatenate([along, back], dtype=np.float32)
    return {"x": x, "edge_index": edge_index, "edge_attr": edge_attr}


def graphs(
    paths: Sequence[str],
    cutoff: float = 8.0,
    features: Sequence[str] = (),
    columns: Sequence[str] = (),
    at_once: int = 64,
    **settings: Any,
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Streams the graphs of files, of which ``at_once`` are in memory.

    Args:
        paths: Paths of files, each once.
        cutoff: The largest distance of the C-alphas of a pair, in angstrom.
        features: Features that are computed besides those of the graph.
        columns: Columns of the table ``residues`` that become arrays too, such as ``["rsa"]``.
        at_once: How many files one call computes.
        settings: Keys of the config file, as ``pytapeloop.Features`` takes them.

    Yields:
        For each structure its path, and the arrays of ``graph_arrays`` with the ``columns`` by their
        names, of shape ``[nodes]``; null is NaN in columns of numbers, and None in others. Structures
        without residues have no graph, and files that cannot be read are warned of.
    """
    settings["contacts"] = {"atom": "ca", "cutoff": cutoff}
    # Pairs are joined by the indices of their residues.
    settings["tables.pair_names"] = False
    engine = pytapeloop.Features(["torsions", "contacts", *features], **settings)
    for start in range(0, len(paths), at_once):
        tables = engine.tables(paths[start : start + at_once], ["residues", "contacts"])
        residues, contacts = (tables[name].to_arrow() for name in ("residues", "contacts"))
        pairs_of = dict(_by_structure(contacts))
        none = contacts.slice(0, 0)
        for (path, model), rows in _by_structure(residues):
            own = _arrays(rows)
            arrays = graph_arrays(own, _arrays(pairs_of.get((path, model), none)))
            yield path, arrays | {name: own[name] for name in columns}


def _by_structure(table: pyarrow.Table) -> Iterator[tuple[tuple[str, int], pyarrow.Table]]:
    """Path and model of each structure, and its rows, which follow each other."""
    keys = [table["source"].cast(pyarrow.string()), table["model"]]
    is_first = np.arange(table.num_rows) == 0
    for key in keys:
        changes = pyarrow.compute.not_equal(key.slice(1), key.slice(0, max(len(key) - 1, 0)))
        is_first[1:] |= changes.to_numpy()
    starts = [*np.flatnonzero(is_first), table.num_rows]
    for start, end in zip(starts, starts[1:]):
        yield (keys[0][start].as_py(), keys[1][start].as_py()), table.slice(start, end - start)


def _arrays(table: pyarrow.Table) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table.column_names}
