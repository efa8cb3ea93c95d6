#!/usr/bin/env python3
"""Compute the features of tapeloop again, independently, and compare.

The oracle takes the selected atoms from a dump that tapeloop writes, so that it
judges the arithmetic and not the reading of files. With --out it writes golden
tables; with --check it compares the Parquet output of a run.

The dump is a folder with two tab-separated tables, residues.tsv and atoms.tsv
(or .tsv.gz), each with a header line, empty where a value is missing, unquoted.
Positions are integers of 0.001 A.

residues.tsv, one row a residue, in the order of the program's output:
  source        the input's name, as in the run's output
  model         the model's number
  res_index     from 0 in each model
  chain         label_asym_id, where there is none auth_asym_id
  auth_seq, ins, comp, aa
                the residue's number, insertion code, component, one-letter code
  break_before  1 where the residue is not linked to the row before it, else 0
  nx ny nz  cax cay caz  cx cy cz  ox oy oz  cbx cby cbz
                positions of N, CA, C, O and CB
  b_ca          the C-alpha's B factor in A^2

atoms.tsv, one row a selected heavy atom, those outside the rows included:
  source, model, x, y, z, element

Features of a residue; "others" are the other rows of the same model:
  cn_ca_8, cn_ca_10, cn_ca_12
                others whose C-alpha is nearer than R A (d < R, decided in whole
                numbers); null without C-alpha
  cn_cb_8, cn_cb_10
                the same for the C-beta. A residue without one gets the virtual
                C-beta CA - 0.58273431 a + 0.56802827 b - 0.54067466 c, with
                b = CA - N, c = C - CA, a = b x c in A, rounded to 0.001 A half
                away from zero; none where that lacks an atom, or without C-alpha, or without C-alpha
                (such a residue's own C-beta still counts as one of the others)
  wcn           sum of 1/d^2 in A^-2 over the others' C-alphas, d = 0 left out
  hse_a_up, hse_a_down
                others whose C-alpha is nearer than 12 A, up where
                (CA_j - CA_i) . v > 0, else down, with v the sum of the unit
                vectors from CA_i-1 and from CA_i+1 to CA_i; null unless i-1, i
                and i+1 are linked and have a C-alpha
  b_ca          as in the dump
  b_z           (b_ca - mean) / sd over the chain's C-alphas, sd of the
                population; null where the values are all equal or b_ca is null

Of a structure (one model): residues, atoms, chains (with rows), breaks (rows not
linked to the row before them, of the same chain), rg_ca and
rg (root mean square distance from the centroid, unweighted, in A).

Golden tables name a source by its file name alone. hse_a_* is also computed by
Biopython's HSExposureCA, for models up to --biopython residues: it links residues
by CA-CA < 4.3 A and sees only residues in chains of two or more, in single
precision, so rows that this may change are counted and left out.

Usage:
  make_tables.py DUMP --out tests/oracles
  make_tables.py DUMP --check RUN_DIR
"""

import argparse
import gzip
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
from Bio.PDB.HSExposure import HSExposureCA
from Bio.PDB.Polypeptide import CaPPBuilder
from Bio.PDB.StructureBuilder import StructureBuilder
from scipy.spatial import cKDTree

BACKBONE = ["n", "ca", "c", "o", "cb"]
HSE_RADIUS = 12
RELATIVE_TOLERANCE = 1e-4
ABSOLUTE_FLOOR = 1e-6  # for values near zero, as b_z at the mean
EXAMPLES = 5  # rows named for each column that differs

RESIDUE_KEY = ["source", "model", "res_index"]
RESIDUE_COUNTS = [
    "cn_ca_8", "cn_ca_10", "cn_ca_12", "cn_cb_8", "cn_cb_10", "hse_a_up", "hse_a_down",
]  # fmt: skip
RESIDUE_FLOATS = ["wcn", "b_ca", "b_z"]
STRUCTURE_KEY = ["source", "model"]
STRUCTURE_COUNTS = ["residues", "atoms", "chains", "breaks"]
STRUCTURE_FLOATS = ["rg_ca", "rg"]


# ---- Reading the dump


def read_table(folder, name, types):
    """Read name.tsv or name.tsv.gz of a dump as a dict of columns."""
    path = folder / f"{name}.tsv"
    path = path if path.exists() else folder / f"{name}.tsv.gz"
    table = pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pa.csv.ConvertOptions(column_types=types, null_values=[""]),
    )
    return {column: table[column].combine_chunks() for column in types}


def xyz_columns(atom):
    return [atom + axis for axis in "xyz"]


def read_residues(folder):
    types = dict.fromkeys(["source", "chain", "ins", "comp", "aa"], pa.string())
    types |= dict.fromkeys(["model", "res_index", "auth_seq", "break_before"], pa.int64())
    for atom in BACKBONE:
        types |= dict.fromkeys(xyz_columns(atom), pa.int64())
    return read_table(folder, "residues", types | {"b_ca": pa.float32()})


def read_atoms(folder):
    types = {"source": pa.string(), "model": pa.int64(), "element": pa.string()}
    return read_table(folder, "atoms", types | dict.fromkeys("xyz", pa.int64()))


def rows_by_structure(table):
    """Return {(source, model): row numbers in file order}."""
    groups = defaultdict(list)
    keys = zip(table["source"].to_pylist(), table["model"].to_pylist(), strict=True)
    for row, key in enumerate(keys):
        groups[key].append(row)
    return {key: np.array(rows) for key, rows in groups.items()}


def integers(column):
    return column.fill_null(0).to_numpy(zero_copy_only=False)


def points(table, columns):
    """Return positions as int64[n, 3] and whether each is there."""
    there = ~np.any([table[c].is_null().to_numpy(zero_copy_only=False) for c in columns], axis=0)
    return np.stack([integers(table[c]) for c in columns], axis=1), there


class Residues:
    """The residues of one model as arrays, gathered from the whole dump."""

    def __init__(self, dump, rows):
        self.xyz = {atom: (p[rows], there[rows]) for atom, (p, there) in dump["points"].items()}
        self.break_before = dump["break_before"][rows]
        self.chain = dump["chain"][rows]
        self.aa = dump["aa"][rows]
        self.b_ca = dump["b_ca"][rows]


def arrays_of(table):
    """Turn the residue table into the arrays that Residues gathers from."""
    return {
        "points": {atom: points(table, xyz_columns(atom)) for atom in BACKBONE},
        "break_before": integers(table["break_before"]) != 0,
        "chain": np.array(table["chain"].fill_null("").to_pylist(), dtype=object),
        "aa": np.array(table["aa"].fill_null("X").to_pylist(), dtype=object),
        "b_ca": table["b_ca"].fill_null(np.nan).to_numpy(zero_copy_only=False).astype(float),
    }


# ---- Features; NaN stands for null


def near_pairs(xyz, radius):
    """Return ordered pairs (i, j), i != j, nearer than radius A, exactly."""
    if len(xyz) < 2:
        return np.empty((0, 2), dtype=int)
    pairs = cKDTree(xyz / 1000).query_pairs(radius + 0.01, output_type="ndarray")
    delta = xyz[pairs[:, 0]] - xyz[pairs[:, 1]]
    pairs = pairs[(delta * delta).sum(axis=1) < (radius * 1000) ** 2]
    return np.concatenate([pairs, pairs[:, ::-1]])


def contact_number(xyz, there, radius):
    index = np.flatnonzero(there)
    counts = np.full(len(there), np.nan)
    counts[index] = np.bincount(near_pairs(xyz[index], radius)[:, 0], minlength=len(index))
    return counts


def c_beta(residues):
    """Return the C-betas, virtual ones where the residue has none."""
    (n, has_n), (ca, has_ca), (c, has_c) = (residues.xyz[atom] for atom in ("n", "ca", "c"))
    cb, has_cb = residues.xyz["cb"]
    b = (ca - n) / 1000
    c = (c - ca) / 1000
    a = np.cross(b, c)
    shift = (-0.58273431 * a + 0.56802827 * b - 0.54067466 * c) * 1000
    virtual = ca + shift
    virtual = np.sign(virtual) * np.floor(np.abs(virtual) + 0.5)
    xyz = np.where(has_cb[:, None], cb, virtual.astype(np.int64))
    return xyz, has_ca & (has_cb | (has_n & has_c))


def weighted_contact_number(xyz, there):
    index = np.flatnonzero(there)
    values = np.full(len(there), np.nan)
    ca = xyz[index]
    for start in range(0, len(ca), 256):
        delta = ca[start : start + 256, None, :] - ca[None, :, :]
        square = (delta * delta).sum(axis=2).astype(float)
        square[square == 0] = np.inf
        values[index[start : start + 256]] = (1e6 / square).sum(axis=1)
    return values


def half_sphere_directions(residues):
    """Return each C-alpha's direction "up" and whether it has one."""
    ca, there = residues.xyz["ca"]
    has = np.zeros(len(there), dtype=bool)
    if len(there) >= 3:
        linked = ~residues.break_before
        has[1:-1] = there[:-2] & there[1:-1] & there[2:] & linked[1:-1] & linked[2:]
    direction = np.zeros((len(there), 3))
    for step in (-1, 1):
        away = (ca - np.roll(ca, -step, axis=0)).astype(float)
        length = np.sqrt((away * away).sum(axis=1, keepdims=True))
        direction += np.divide(away, length, out=np.zeros_like(away), where=length > 0)
    return direction, has


def half_sphere_exposure(residues):
    """Return counts up and down for the C-alphas."""
    ca, there = residues.xyz["ca"]
    direction, has = half_sphere_directions(residues)
    index = np.flatnonzero(there)
    i, j = index[near_pairs(ca[index], HSE_RADIUS)].T
    i, j = i[has[i]], j[has[i]]
    up = ((ca[j] - ca[i]) * direction[i]).sum(axis=1) > 0
    counts = (np.bincount(i[side], minlength=len(ca)).astype(float) for side in (up, ~up))
    return tuple(np.where(has, c, np.nan) for c in counts)


def z_scores(b, chain):
    scores = np.full(len(b), np.nan)
    for name in set(chain):
        rows = np.flatnonzero((chain == name) & ~np.isnan(b))
        if len(rows) and np.ptp(b[rows]) > 0:
            scores[rows] = (b[rows] - b[rows].mean()) / b[rows].std()
    return scores


def radius_of_gyration(xyz):
    if not len(xyz):
        return np.nan
    centred = xyz / 1000 - (xyz / 1000).mean(axis=0)
    return np.sqrt((centred * centred).sum(axis=1).mean())


def residue_features(residues):
    ca, has_ca = residues.xyz["ca"]
    cb, has_cb = c_beta(residues)
    up, down = half_sphere_exposure(residues)
    return {
        **{f"cn_ca_{r}": contact_number(ca, has_ca, r) for r in (8, 10, 12)},
        **{f"cn_cb_{r}": np.where(has_ca, contact_number(cb, has_cb, r), np.nan) for r in (8, 10)},
        "wcn": weighted_contact_number(ca, has_ca),
        "hse_a_up": up,
        "hse_a_down": down,
        "b_ca": residues.b_ca,
        "b_z": z_scores(residues.b_ca, residues.chain),
    }


def structure_features(residues, atoms_xyz):
    ca, has_ca = residues.xyz["ca"]
    same_chain = residues.chain[1:] == residues.chain[:-1]
    return {
        "residues": len(has_ca),
        "atoms": len(atoms_xyz),
        "chains": len(set(residues.chain)),
        "breaks": int((residues.break_before[1:] & same_chain).sum()),
        "rg_ca": radius_of_gyration(ca[has_ca]),
        "rg": radius_of_gyration(atoms_xyz),
    }


# ---- Biopython's half-sphere exposure


def biopython_model(residues):
    """Build a Biopython model whose residue numbers are row numbers."""
    builder = StructureBuilder()
    builder.init_structure("dump")
    builder.init_model(0)
    ca, has_ca = residues.xyz["ca"]
    for name in dict.fromkeys(residues.chain):
        builder.init_chain(name)
        builder.init_seg(" ")
        for row in np.flatnonzero(residues.chain == name):
            builder.init_residue("ALA", " ", int(row), " ")
            if has_ca[row]:
                position = (ca[row] / 1000).astype("f")
                builder.init_atom("CA", position, 0.0, 1.0, " ", " CA ", element="C")
    return builder.get_structure()[0]


def on_the_edge(delta, direction):
    """Whether single precision may put one of the C-alphas on the other side.

    delta holds the vectors to all C-alphas, the zero to itself among them.
    """
    distance = np.sqrt((delta * delta).sum(axis=1))
    if (distance == 0).sum() > 1 or np.any(np.abs(distance - HSE_RADIUS * 1000) < 0.01):
        return True
    near = (distance > 0) & (distance < HSE_RADIUS * 1000)
    cosine = (delta[near] @ direction) / distance[near]
    return np.any(np.abs(cosine) < 1e-5 * np.sqrt((direction * direction).sum()))


def compare_with_biopython(residues, up, down):
    """Return a Counter of what became of each row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = biopython_model(residues)
        theirs = {residue.id[1]: value[:2] for residue, value in HSExposureCA(model)}
        seen = {r.id[1] for chain in CaPPBuilder().build_peptides(model) for r in chain}
    ca, has_ca = residues.xyz["ca"]
    direction, _ = half_sphere_directions(residues)
    unseen = np.array([ca[row] for row in np.flatnonzero(has_ca) if row not in seen])
    unseen = unseen.reshape(-1, 3)
    outcome = Counter()
    for row in range(len(up)):
        if np.isnan(up[row]):
            known = row in theirs
            outcome["left out: linked by CA-CA only" if known else "null in both"] += 1
        elif row not in theirs:
            outcome["left out: not linked by CA-CA < 4.3 A"] += 1
        elif np.any(((unseen - ca[row]) ** 2).sum(axis=1) < (HSE_RADIUS * 1000) ** 2):
            outcome["left out: near a residue alone in its chain"] += 1
        elif (up[row], down[row]) == theirs[row]:
            outcome["equal"] += 1
        elif on_the_edge(ca[has_ca] - ca[row], direction[row]):
            outcome["left out: a C-alpha at 12 A, 90 degrees or 0 A in single precision"] += 1
        else:
            outcome["DIFFERENT"] += 1
    return outcome


# ---- The whole dump


def compute(folder, biopython_max):
    """Return the residue table, the structure table and Biopython's outcome."""
    table, atoms = read_residues(folder), read_atoms(folder)
    dump, atom_points = arrays_of(table), points(atoms, list("xyz"))[0]
    residue_rows, atom_rows = rows_by_structure(table), rows_by_structure(atoms)
    by_residue, by_structure, outcome = [], [], Counter()
    for key in dict.fromkeys([*atom_rows, *residue_rows]):
        rows = residue_rows.get(key, np.array([], dtype=int))
        residues = Residues(dump, rows)
        features = residue_features(residues)
        if len(rows) <= biopython_max:
            up, down = features["hse_a_up"], features["hse_a_down"]
            outcome += compare_with_biopython(residues, up, down)
        else:
            outcome["left out: model too large"] += len(rows)
        index = integers(table["res_index"])[rows]
        for i, row in enumerate(index):
            by_residue.append((*key, int(row), *(float(v[i]) for v in features.values())))
        xyz = atom_points[atom_rows.get(key, np.array([], dtype=int))]
        by_structure.append((*key, *structure_features(residues, xyz).values()))
    residue_names = RESIDUE_KEY + list(residue_features(Residues(dump, np.array([], dtype=int))))
    structure_names = STRUCTURE_KEY + STRUCTURE_COUNTS + STRUCTURE_FLOATS
    return (residue_names, by_residue), (structure_names, by_structure), outcome


def as_text(name, value):
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return ""
    floats = RESIDUE_FLOATS + STRUCTURE_FLOATS
    return f"{value:.7g}" if name in floats else str(int(value))


def write_golden(path, names, rows):
    """Write a table with sources cut to their file names, gzipped for .gz."""
    shown = {row[0]: Path(row[0]).name for row in rows}
    if len(set(shown.values())) < len(shown):
        raise SystemExit("two sources have the same file name: no golden tables of those")
    rows = sorted((shown[row[0]], *row[1:]) for row in rows)
    lines = ["\t".join(names)]
    lines += ["\t".join(map(as_text, names, row)) for row in rows]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
    print(f"{path}: {len(rows)} rows, {path.stat().st_size} bytes")


# ---- Comparing a run


def read_run(folder):
    """Return a run's residue and structure tables, told apart by res_index."""
    tables = {}
    for parts in sorted({path.parent for path in folder.rglob("*.parquet")}):
        table = pa.dataset.dataset(parts, format="parquet").to_table()
        tables["residues" if "res_index" in table.column_names else "structures"] = table
    if sorted(tables) != ["residues", "structures"]:
        raise SystemExit(f"{folder}: found {sorted(tables)}, not residues and structures")
    return tables["residues"], tables["structures"]


def align(ours, keys, run):
    """Return the row numbers in the run of our rows, -1 for none, and extra rows."""
    columns = [run[key].to_pylist() for key in keys]
    where = {key: row for row, key in enumerate(zip(*columns, strict=True))}
    if len(where) < run.num_rows:
        raise SystemExit(f"{run.num_rows - len(where)} rows of the run repeat a key")
    found = np.array([where.pop(row[: len(keys)], -1) for row in ours], dtype=int)
    return found, len(where)


def compare_column(name, ours, theirs, keys):
    """Print one line of the agreement table, return whether all rows agree."""
    null_ours, null_theirs = np.isnan(ours), np.isnan(theirs)
    both = ~null_ours & ~null_theirs
    error = np.where(both, np.abs(ours - theirs), 0)
    scale = np.where(both, np.abs(ours), 0)
    if name in RESIDUE_FLOATS + STRUCTURE_FLOATS:
        wrong = error > RELATIVE_TOLERANCE * scale + ABSOLUTE_FLOOR
    else:
        wrong = error > 0
    relative = error[scale > ABSOLUTE_FLOOR] / scale[scale > ABSOLUTE_FLOOR]
    one_null = null_ours != null_theirs
    counts = (both.sum(), (null_ours & null_theirs).sum(), one_null.sum(), wrong.sum())
    worst = relative.max(initial=0.0)
    print(f"{name:12}" + "".join(f"{int(n):>12}" for n in counts) + f"{worst:>12.1e}")
    for row in np.flatnonzero(wrong | one_null)[:EXAMPLES]:
        print(f"{'':12}  {keys[row]}: oracle {ours[row]:.7g}, run {theirs[row]:.7g}")
    return not (wrong | one_null).any()


def compare_table(title, names, ours, keys, run):
    found, extra = align(ours, keys, run)
    missing = int((found < 0).sum())
    print(f"\n{title}: {len(ours)} rows, {missing} missing from the run, {extra} only there")
    header = ("compared", "null", "null in one", "different", "max rel err")
    print(f"{'column':12}" + "".join(f"{h:>12}" for h in header))
    there = [row for row, place in zip(ours, found, strict=True) if place >= 0]
    good = missing == 0 and extra == 0
    for position in range(len(keys), len(names)):
        name = names[position]
        if name not in run.column_names:
            print(f"{name:12} not in the run")
            good = False
            continue
        values = np.array([row[position] for row in there], dtype=float)
        column = run[name].cast(pa.float64()).combine_chunks().fill_null(np.nan)
        theirs = column.to_numpy(zero_copy_only=False)[found[found >= 0]]
        good &= compare_column(name, values, theirs, [row[: len(keys)] for row in there])
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exits with 1 where anything differs.",
    )
    parser.add_argument("dump", type=Path, help="folder with residues.tsv and atoms.tsv")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--out", type=Path, help="folder to write the golden tables to")
    mode.add_argument("--check", type=Path, metavar="RUN_DIR", help="run to compare")
    parser.add_argument(
        "--biopython",
        type=int,
        default=1000,
        metavar="N",
        help="largest model that Biopython computes too (default: %(default)s; 0: none)",
    )
    args = parser.parse_args()

    residues, structures, outcome = compute(args.dump, args.biopython)
    print("half-sphere exposure against Biopython, rows:")
    for what, count in outcome.most_common():
        print(f"{count:>10}  {what}")
    good = outcome["DIFFERENT"] == 0
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        write_golden(args.out / "residues.tsv.gz", *residues)
        write_golden(args.out / "structures.tsv", *structures)
    else:
        run_residues, run_structures = read_run(args.check)
        good &= compare_table("residues", *residues, RESIDUE_KEY, run_residues)
        good &= compare_table("structures", *structures, STRUCTURE_KEY, run_structures)
    print("all agree" if good else "NOT all agree")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
