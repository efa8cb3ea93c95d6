"""Inputs of an engine: paths, files in memory, and structures of other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Union

from . import _native

__all__ = ["Atoms", "Groups", "grouped", "structures_in"]

# Structures that are in memory at once, as files, besides those that the caller holds.
STRUCTURES_AT_ONCE = 1024


@dataclass
class Atoms:
    """Atoms as arrays of shape ``[atoms]``, or as lists. Those of a residue follow each other.

    Args:
        coordinates: Positions in angstrom, of shape ``[atoms, 3]``; they are rounded to 0.001.
        names: Names of atoms, such as ``CA``.
        residues: Names of residues, such as ``ALA``.
        chains: Names of chains.
        numbers: Numbers of residues.
        insertions: Insertion codes of residues; empty texts for none.
        elements: Symbols of elements; without them they follow from the names of atoms.
        hetero: Whether an atom is of a ``HETATM`` record.
        b_factors: B factors in square angstrom, or pLDDT from 0 to 100 with the setting
            ``b_factor="plddt"``; without them they are null.

    Raises:
        TypeError: A call that takes the atoms got values of other types.
        ValueError: A call that takes the atoms got columns of other lengths, coordinates that are not
            finite, or names that are not printable.
    """

    coordinates: Any
    names: Sequence[str]
    residues: Sequence[str]
    chains: Sequence[str]
    numbers: Sequence[int]
    insertions: Sequence[str] | None = None
    elements: Sequence[str] | None = None
    hetero: Sequence[bool] | None = None
    b_factors: Sequence[float] | None = None

    def _file(self) -> bytes:
        columns = (
            self.coordinates,
            self.names,
            self.residues,
            self.chains,
            self.numbers,
            self.insertions,
            self.elements,
            self.hetero,
            self.b_factors,
        )
        return _native.mmcif_of_atoms(*map(_as_list, columns))


def _as_list(column: Any) -> Any:
    return column.tolist() if hasattr(column, "tolist") else column


Path = Union[str, "os.PathLike[str]"]
Groups = Iterator[Union[list[str], tuple[int, list[tuple[str, bytes]]]]]


def grouped(inputs: Any) -> Groups:
    """The inputs in groups, each for one stream: all paths, or some files in memory with the number
    of the first one."""
    if isinstance(inputs, (str, os.PathLike)):
        yield [_path(inputs)]
        return
    if _is_table(inputs):
        raise TypeError(
            f"{type(inputs).__name__} is a table and no input; give paths or structures, and to plot "
            "the Table that features returned"
        )
    if isinstance(inputs, (bytes, bytearray, memoryview)) or not isinstance(inputs, Iterable):
        inputs = [inputs]
    elif _is_pair(inputs) or _is_atom_array(inputs) or _is_gemmi(inputs):
        inputs = [inputs]
    items = iter(inputs.items() if isinstance(inputs, Mapping) else inputs)
    first = list(islice(items, 1))
    items = chain(first, items)
    if first and isinstance(first[0], (str, os.PathLike)):
        yield [_path(item) for item in items]
        return
    files = (_file(number, item) for number, item in enumerate(items))
    number = 0
    while group := list(islice(files, STRUCTURES_AT_ONCE)):
        yield number, group
        number += len(group)


def structures_in(inputs: Any) -> int | None:
    """The number of structures in memory; None for paths, and for an iterator, which has no length."""
    is_list = isinstance(inputs, (list, tuple)) and not _is_pair(inputs)
    if isinstance(inputs, Mapping) or (
        is_list and inputs and not isinstance(inputs[0], (str, os.PathLike))
    ):
        return len(inputs)
    return None


def _path(item: Any) -> str:
    if isinstance(item, (str, os.PathLike)):
        path = os.fspath(item)
        if "\n" in path:
            raise TypeError(
                f"{path[:40]!r}... is the text of a file and no path; give its bytes: text.encode()"
            )
        return path
    raise TypeError(f"{type(item).__name__} among paths; give either paths or structures")


def _file(number: int, item: Any) -> tuple[str, bytes]:
    """A name and the bytes of a file."""
    name, structure = f"structure-{number}", item
    if isinstance(item, tuple) and len(item) == 2:
        name, structure = item
        if not isinstance(name, str):
            raise TypeError(f"the name of a structure is {name!r}, which is not text")
    elif _is_gemmi(item) and item.name:
        name = item.name
    if isinstance(structure, (bytes, bytearray, memoryview)):
        return name, bytes(structure)
    if isinstance(structure, Atoms):
        return name, structure._file()
    if _is_atom_array(structure):
        return name, _of_atom_array(structure)._file()
    if _is_gemmi(structure):
        return name, structure.make_mmcif_document().as_string().encode()
    if isinstance(structure, (str, os.PathLike)):
        raise TypeError("a path among structures; give either paths or structures")
    raise TypeError(
        f"{type(structure).__name__} is not a structure; give paths, bytes of files, "
        "pytapeloop.Atoms, Biotite's AtomArray or gemmi's Structure"
    )


def _is_pair(item: Any) -> bool:
    """Whether it is a structure with its name, and not two paths."""
    is_pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
    return is_pair and not isinstance(item[1], (str, os.PathLike))


def _is_atom_array(item: Any) -> bool:
    return all(hasattr(item, name) for name in ("coord", "atom_name", "res_name", "get_annotation"))


def _is_table(item: Any) -> bool:
    """Whether it is a table of this or another package, such as a DataFrame."""
    return hasattr(item, "__arrow_c_stream__") or hasattr(item, "to_dict")


def _is_gemmi(item: Any) -> bool:
    return hasattr(item, "make_mmcif_document")


def _of_atom_array(array: Any) -> Atoms:
    if array.coord.ndim != 2:
        raise TypeError("an AtomArrayStack has several models; give the arrays of its models")
    has = set(array.get_annotation_categories())
    b_factors = array.b_factor if "b_factor" in has else None
    return Atoms(
        coordinates=array.coord,
        names=array.atom_name,
        residues=array.res_name,
        chains=array.chain_id,
        numbers=array.res_id,
        insertions=array.ins_code,
        elements=array.element,
        hetero=array.hetero,
        b_factors=b_factors,
    )
