"""Golden tables: the references as text, for tests that have no Python."""

import gzip
from pathlib import Path

import numpy as np

from tables import read_dump

GOLDEN = ("residues", "chains", "structures")

# Columns whose tolerance is absolute; the others have seven digits.
DECIMALS = {"eigenvector": 6, "eigenvector_residual": 8, "rsa": 6, "rsa_w25": 6}
DECIMALS |= dict.fromkeys(["cx_mean", "cx_max"], 6)
DECIMALS |= dict.fromkeys(["sasa", "sasa_side", "sasa_polar", "sasa_delta"], 3)
DECIMALS |= dict.fromkeys(["phi", "psi", "omega", "ca_dihedral", "ca_angle"], 3)
DECIMALS |= {f"chi{number}": 3 for number in range(1, 6)}
DECIMALS |= {f"hb_{end}{rank}_energy": 3 for end in ("nho", "ohn") for rank in (1, 2)}


def as_text(name, values):
    def text(value):
        if value is None or isinstance(value, str):
            return value or ""
        if np.isnan(value):
            return ""
        if value == int(value):
            return str(int(value))
        return f"{value:.{DECIMALS[name]}f}" if name in DECIMALS else f"{value:.7g}"

    return [text(value) for value in values]


def write_golden(references, folder, dump):
    """Write a table each, with sources cut to their file names; that of residues gzipped."""
    lines = {table: [] for table in GOLDEN}
    names = {}
    seen = set()
    for model in read_dump(dump):
        key = Path(model.source).name, str(model.number)
        if key in seen:
            raise SystemExit(f"{key}: twice; golden tables name sources by file name")
        seen.add(key)
        found = references.golden(model)
        chains = [str(model.chain_id[rows[0]]) for _, rows in model.chains()]
        own = {
            "residues": ("res_index", [str(row) for row in range(len(model))]),
            "chains": ("chain_id", chains),
            "structures": (None, [None]),
        }
        for table in GOLDEN:
            extra, extras = own[table]
            head = ["source", "model"] + ([extra] if extra else [])
            names.setdefault(table, head + list(found[table]))
            columns = [as_text(name, values) for name, values in found[table].items()]
            for row, last in enumerate(extras):
                line = [*key] + ([last] if extra else []) + [c[row] for c in columns]
                lines[table].append(line)
    folder.mkdir(parents=True, exist_ok=True)
    for table in GOLDEN:
        text = "\n".join("\t".join(line) for line in [names[table], *sorted_rows(lines[table])])
        data = (text + "\n").encode()
        path = folder / (f"{table}.tsv.gz" if table == "residues" else f"{table}.tsv")
        path.write_bytes(gzip.compress(data, 9, mtime=0) if table == "residues" else data)
        print(f"{path}: {len(lines[table])} rows, {path.stat().st_size} bytes")


def sorted_rows(lines):
    """By source and model, rows as they came."""
    return sorted(lines, key=lambda line: (line[0], int(line[1])))
