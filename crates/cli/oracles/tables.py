"""Reads what tapeloop wrote: a dump of its selected atoms, and the Parquet of a run.

A dump is a folder with two tab-separated tables, residues.tsv and atoms.tsv (or
.tsv.gz), each with a header line, empty where a value is missing, unquoted.
Positions are integers of 0.001 A. `tapeloop validate --keep` writes it.

residues.tsv, one row a residue, in the order of the program's output:
  source        the input's name, as in the run's output
  model         the model's number
  res_index     from 0 in each model
  chain, chain_id
                the chain's number in the model, and its name
  auth_seq, position, ins, comp, parent, aa
                residue number, position in the chain's sequence, insertion code, component, the standard one that
                it is a variant of, and that one's letter
  break_before  1 where the residue is not linked to the row before it, else 0
  nx ny nz  cax cay caz  cx cy cz  ox oy oz  cbx cby cbz
                positions of N, CA, C, O and CB
  atom_start, atom_count
                the residue's atoms
  predicted     1 where the B factors are pLDDT, else 0

atoms.tsv, one row a selected heavy atom, those outside the rows included:
  source, model, atom (from 0 in each model), chain, res_index (empty without a
  row), name (of atoms of standard amino acids, else empty), x, y, z, element (atomic number), radius (0.001 A), side, polar (0 or 1),
  b (as in the file)

ligands.tsv, one row a heavy atom of what is no polymer, only if the run keeps ligands:
  source, model, ligand (from 0 in each model), kind (ligand, ion, agent or
  glycan),
  chain_id (the author's), comp, seq (the author's number), ins, x, y, z, element, radius
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset

BACKBONE = ["n", "ca", "c", "o", "cb"]
RESIDUE_TEXT = ["source", "chain_id", "ins", "comp", "parent", "aa"]
RESIDUE_NUMBERS = [
    "model", "res_index", "chain", "auth_seq", "break_before", "atom_start", "atom_count",
    "predicted",
]  # fmt: skip
ATOM_NUMBERS = [
    "model", "atom", "chain", "res_index", "x", "y", "z", "element", "radius", "side", "polar",
]  # fmt: skip


@dataclass
class Ligands:
    """The heavy atoms of what is no polymer, one row an atom; what is of a ligand repeats."""

    ligand: np.ndarray
    kind: np.ndarray
    chain_id: np.ndarray
    ins: np.ndarray
    comp: np.ndarray
    seq: np.ndarray
    xyz: np.ndarray
    element: np.ndarray
    radius: np.ndarray

    def firsts(self):
        """The first atom of each ligand."""
        return np.unique(self.ligand, return_index=True)[1]

    def per_ligand(self, values):
        """Sum the values of atoms over each ligand."""
        return np.bincount(self.ligand, values)


@dataclass
class Model:
    """The selected atoms of one model. Positions are int64 in 0.001 A.

    `position` is NaN where the file gives none.
    `xyz[name]` and `has[name]` are of the residues' backbone atoms and C-beta;
    `atom_*` of all atoms, of which `atom_residue` is -1 for those without a row.
    """

    source: str
    number: int
    chain: np.ndarray
    chain_id: np.ndarray
    auth_seq: np.ndarray
    ins: np.ndarray
    position: np.ndarray
    comp: np.ndarray
    parent: np.ndarray
    aa: np.ndarray
    break_before: np.ndarray
    xyz: dict
    has: dict
    predicted: bool
    atom_xyz: np.ndarray
    atom_chain: np.ndarray
    atom_residue: np.ndarray
    atom_name: np.ndarray
    atom_element: np.ndarray
    atom_radius: np.ndarray
    atom_side: np.ndarray
    atom_polar: np.ndarray
    atom_b: np.ndarray
    ligands: "Ligands | None" = None
    memo: dict = field(default_factory=dict)

    def __len__(self):
        return len(self.chain)

    @property
    def key(self):
        return self.source, self.number

    def linked(self):
        """Whether each residue is linked to the row before it."""
        linked = ~self.break_before
        linked[:1] = False
        return linked

    def segments(self):
        """The number of each residue's unbroken stretch."""
        return np.cumsum(~self.linked()) - 1 if len(self) else np.zeros(0, dtype=int)

    @property
    def residue_atoms(self):
        """The atoms of each residue, as lists."""
        if "residue_atoms" not in self.memo:
            lists = [[] for _ in range(len(self))]
            for atom in np.flatnonzero(self.atom_residue >= 0).tolist():
                lists[self.atom_residue[atom]].append(atom)
            self.memo["residue_atoms"] = lists
        return self.memo["residue_atoms"]

    def chains(self):
        """(number, rows) of the chains that have rows, in their order."""
        return [
            (int(c), np.flatnonzero(self.chain == c)) for c in dict.fromkeys(self.chain.tolist())
        ]

    def per_residue(self, values):
        """Sum the values of atoms over each residue."""
        of_rows = self.atom_residue >= 0
        return np.bincount(self.atom_residue[of_rows], values[of_rows], minlength=len(self))


def once(function):
    """Keep what a function of a model returns with the model."""

    @wraps(function)
    def kept(model):
        if function.__qualname__ not in model.memo:
            model.memo[function.__qualname__] = function(model)
        return model.memo[function.__qualname__]

    return kept


def digest(*arrays):
    """A hash of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes() + b"|")
    return total.hexdigest()


@once
def fingerprint(model):
    """A hash of the model's atoms, links, residue types and names of chains."""
    arrays = [model.chain, model.break_before, model.atom_xyz, model.atom_chain]
    arrays += [model.position, model.atom_residue, *model.xyz.values(), *model.has.values()]
    types = ";".join([*model.chain_id, *model.comp, *model.parent, *model.aa, *model.atom_name])
    return digest(*arrays, np.frombuffer(types.encode(), dtype=np.uint8))


def read_table(folder, name, text, numbers, floats=()):
    """Read name.tsv or name.tsv.gz of a dump as a table."""
    path = folder / f"{name}.tsv"
    path = path if path.exists() else folder / f"{name}.tsv.gz"
    types = dict.fromkeys(text, pa.string()) | dict.fromkeys(numbers, pa.int64())
    types |= dict.fromkeys(floats, pa.float64())
    return pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[""]
        ),
    ).combine_chunks()


def numbers(table, name, missing=0):
    return table[name].combine_chunks().fill_null(missing).to_numpy(zero_copy_only=False)


def texts(table, name):
    return np.array(table[name].combine_chunks().fill_null("").to_pylist(), dtype=object)


def runs_of_models(table):
    """{(source, model): slice} of a table whose models are whole."""
    if not table.num_rows:
        return {}
    source = table["source"].combine_chunks().dictionary_encode().indices.to_numpy()
    model = numbers(table, "model")
    starts = np.flatnonzero((np.diff(source) != 0) | (np.diff(model) != 0)) + 1
    starts = [0, *starts.tolist(), table.num_rows]
    models = {}
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        key = table["source"][begin].as_py(), int(model[begin])
        if key in models:
            raise SystemExit(f"{key}: the rows of a model are not together")
        models[key] = slice(begin, end)
    return models


def points(table, columns):
    """Positions as int64[n, 3], and whether each is there."""
    there = np.all([table[c].combine_chunks().is_valid() for c in columns], axis=0)
    return np.stack([numbers(table, c) for c in columns], axis=1), there


def read_ligands(folder):
    """Return a function from (source, model) to its ligands; None without ligands.tsv."""
    if not (folder / "ligands.tsv").exists():
        return lambda key: None
    counts = ["model", "ligand", "x", "y", "z", "element", "radius"]
    words = ["kind", "chain_id", "comp", "ins"]
    table = read_table(folder, "ligands", ["source", *words], counts, ["seq"])
    columns = {name: texts(table, name) for name in words}
    columns["seq"] = numbers(table, "seq", np.nan)
    columns["xyz"] = points(table, list("xyz"))[0]
    columns |= {name: numbers(table, name) for name in ["ligand", "element", "radius"]}
    rows_of = runs_of_models(table)

    def of_model(key):
        rows = rows_of.get(key, slice(0, 0))
        return Ligands(**{name: values[rows] for name, values in columns.items()})

    return of_model


def read_dump(folder):
    """Yield the models of a dump, one by one."""
    folder = Path(folder)
    positions = [atom + axis for atom in BACKBONE for axis in "xyz"]
    floats = ["position"]
    residues = read_table(folder, "residues", RESIDUE_TEXT, RESIDUE_NUMBERS + positions, floats)
    atoms = read_table(folder, "atoms", ["source", "name"], ATOM_NUMBERS, ["b"])
    of_rows = {name: texts(residues, name) for name in ["chain_id", "ins", "comp", "parent", "aa"]}
    of_rows["chain"] = numbers(residues, "chain")
    of_rows["auth_seq"] = numbers(residues, "auth_seq")
    of_rows["position"] = numbers(residues, "position", np.nan)
    of_rows["break_before"] = numbers(residues, "break_before") != 0
    backbone = {atom: points(residues, [atom + axis for axis in "xyz"]) for atom in BACKBONE}
    predicted = numbers(residues, "predicted") != 0
    of_atoms = {
        "atom_xyz": points(atoms, list("xyz"))[0],
        "atom_chain": numbers(atoms, "chain"),
        "atom_residue": numbers(atoms, "res_index", -1),
        "atom_name": texts(atoms, "name"),
        "atom_element": numbers(atoms, "element"),
        "atom_radius": numbers(atoms, "radius"),
        "atom_side": numbers(atoms, "side") != 0,
        "atom_polar": numbers(atoms, "polar") != 0,
        "atom_b": numbers(atoms, "b", np.nan),
    }
    rows_of = runs_of_models(residues)
    ligands_of = read_ligands(folder)
    for key, its_atoms in runs_of_models(atoms).items():
        rows = rows_of.pop(key, slice(0, 0))
        yield Model(
            *key,
            xyz={name: xyz[rows] for name, (xyz, _) in backbone.items()},
            has={name: there[rows] for name, (_, there) in backbone.items()},
            predicted=bool(predicted[rows].any()),
            ligands=ligands_of(key),
            **{name: values[rows] for name, values in of_rows.items()},
            **{name: values[its_atoms] for name, values in of_atoms.items()},
        )
    if rows_of:
        raise SystemExit(f"{folder}: residues without atoms: {next(iter(rows_of))}")


# ---- Runs


def config_of(folder):
    """What a run's report says of its settings, empty where it has none."""
    path = Path(folder) / "run.json"
    return json.loads(path.read_text())["config"] if path.exists() else {}


class Run:
    """A run's tables, by model."""

    def __init__(self, folder):
        self.tables, self.models = {}, {}
        for parts in sorted({path.parent for path in Path(folder).rglob("part-*.parquet")}):
            name = parts.name
            self.tables[name] = pyarrow.dataset.dataset(parts, format="parquet").to_table()
            self.models[name] = self._by_model(self.tables[name])
        if "residues" not in self.tables:
            fix = 'run with tables.format = "parquet"'
            raise SystemExit(f"{folder}: no residues/*.parquet in it (fix: {fix})")
        if "observed" in self.tables["residues"].column_names:
            self._part_unobserved()

    def _part_unobserved(self):
        """Put the residues that were not observed in a table of their own.

        Its column `before` is how many residues of the model come before that were observed.
        """
        rows = self.tables["residues"]
        observed = rows["observed"].combine_chunks().to_numpy(zero_copy_only=False)
        before = np.zeros(len(observed))
        for place in self.models["residues"].values():
            before[place] = np.cumsum(observed[place])
        parts = {"residues": rows, "unobserved": rows.append_column("before", pa.array(before))}
        for name, table in parts.items():
            self.tables[name] = table.filter(pa.array(observed == (name == "residues")))
            self.models[name] = self._by_model(self.tables[name])

    @staticmethod
    def _by_model(table):
        models = runs_of_models(table)
        names = {}
        for source, model in models:
            names.setdefault((Path(source).name, model), []).append((source, model))
        # A dump may have been made under other folders: a name alone will do.
        return models | {k: models[v[0]] for k, v in names.items() if len(v) == 1}

    def __len__(self):
        """How many models; one without residues has a row of structures alone."""
        table = self.tables.get("structures", self.tables["residues"])
        return len(runs_of_models(table))

    def nan_counts(self):
        """{"table, column": count} of NaN that is not null, which no column may hold."""
        counts = {}
        for table, rows in self.tables.items():
            for name in rows.column_names:
                if pa.types.is_floating(rows[name].type):
                    count = pyarrow.compute.sum(pyarrow.compute.is_nan(rows[name])).as_py()
                    counts |= {f"{table}, {name}": count} if count else {}
        return counts

    def columns(self, table):
        return self.tables[table].column_names if table in self.tables else []

    def rows(self, table, key):
        """The rows of a model as {column: array}, None where there are none.

        Numbers are float64 with NaN for null, text is objects with None.
        """
        source, model = key
        places = self.models.get(table, {})
        place = places.get(key, places.get((Path(source).name, model)))
        if place is None:
            return None
        rows = self.tables[table].slice(place.start, place.stop - place.start)
        return {name: as_array(rows[name].combine_chunks()) for name in rows.column_names}


def as_array(column):
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=object)
    if pa.types.is_nested(column.type):
        return np.full(len(column), None, dtype=object)
    return column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
