#!/usr/bin/env python3
"""Compute the features of tapeloop again, by the packages that define them, and compare.

The packages are fed with the atoms that tapeloop selected, from a dump (tables.py
says what is in it; `cargo run --example dump_residues -- DUMP FILE...` writes it),
so that they judge the arithmetic and not the reading of files.

    make_tables.py DUMP --check RUN_DIR    the agreement table of a run's Parquet
    make_tables.py DUMP --cross            references that share a column, with each other
    make_tables.py DUMP --out DIR          golden tables, for tests without Python

The agreement table has a line a column and oracle: rows compared, null in both,
excluded (the reasons follow), wrong, the share that agrees, the worst difference
(relative where the rule is), and PASS or FAIL. What a run does not have, and
oracles whose package is not installed, are listed. Exits with 1 where anything
fails.
"""

import argparse
import gzip
import hashlib
import pickle
import sys
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

# In the order of the feature set. Of oracles with one column the first is golden.
import contacts  # noqa: F401
import half_spheres  # noqa: F401
import surface  # noqa: F401
import torsions  # noqa: F401
import secondary  # noqa: F401
import b_factors  # noqa: F401
import interfaces  # noqa: F401
import networks  # noqa: F401
import summaries  # noqa: F401
from agreement import HEADER, Agreement
from reference import ORACLES, version
from tables import Run, read_dump

TABLES = ("residues", "chains", "structures")


class Cache:
    """References kept in a folder, by oracle, package, settings, code and atoms."""

    def __init__(self, folder):
        self.folder = Path(folder) if folder else None
        self.code = ""
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, oracle, model, settings):
        if not (self.folder and oracle.slow):
            return oracle.compute(model, settings)
        code = Path(oracle.compute.__code__.co_filename).read_bytes()
        parts = [oracle.name, oracle.title(), str(settings.points), str(settings.biopython)]
        name = hashlib.sha256("|".join(parts).encode() + code + model.fingerprint().encode())
        path = self.folder / name.hexdigest()
        if path.exists():
            return pickle.loads(path.read_bytes())
        columns = oracle.compute(model, settings)
        path.write_bytes(pickle.dumps(columns))
        return columns


class References:
    """The oracles that can run here, and the time that each took."""

    def __init__(self, settings):
        self.settings = settings
        self.cache = Cache(settings.cache)
        self.seconds = Counter()
        self.oracles, self.skipped = [], []
        for oracle in ORACLES:
            if settings.only and not any(fnmatch(c, p) for p in settings.only for c in oracle.rules):
                continue
            here = oracle.package is None or version(oracle.package) is not None
            (self.oracles if here else self.skipped).append(oracle)
        self.titles = {o.name: o.title() for o in self.oracles}

    def rule(self, oracle, column):
        rule = oracle.rules[column]
        return rule(self.settings) if callable(rule) else rule

    def compute(self, oracle, model, given):
        start = time.perf_counter()
        if oracle.of_run:
            columns = oracle.compute(model, self.settings, given)
        else:
            columns = self.cache.get(oracle, model, self.settings)
        self.seconds[oracle.name] += time.perf_counter() - start
        return columns

    def golden(self, model):
        """{table: {column: values}} by the first oracle of each."""
        found = {table: {} for table in TABLES}
        for oracle in self.oracles:
            if set(oracle.rules) <= set(found[oracle.table]):
                continue
            for name, values in self.compute(oracle, model, found["residues"]).items():
                found[oracle.table].setdefault(name, values.values)
        return found


# ---- Golden tables

# Columns whose tolerance is absolute; the others have seven digits.
DECIMALS = {"eigenvector": 6, "eigenvector_residual": 8, "rsa": 6, "rsa_w25": 6}
DECIMALS |= dict.fromkeys(["cx_mean", "cx_max"], 6)
DECIMALS |= dict.fromkeys(["sasa", "sasa_side", "sasa_polar", "sasa_delta"], 3)
DECIMALS |= dict.fromkeys(["phi", "psi", "omega", "ca_dihedral", "ca_angle"], 3)
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
    lines = {table: [] for table in TABLES}
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
        for table in TABLES:
            extra, extras = own[table]
            head = ["source", "model"] + ([extra] if extra else [])
            names.setdefault(table, head + list(found[table]))
            columns = [as_text(name, values) for name, values in found[table].items()]
            for row, last in enumerate(extras):
                line = [*key] + ([last] if extra else []) + [c[row] for c in columns]
                lines[table].append(line)
    folder.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        text = "\n".join("\t".join(line) for line in [names[table], *sorted_rows(lines[table])])
        data = (text + "\n").encode()
        path = folder / (f"{table}.tsv.gz" if table == "residues" else f"{table}.tsv")
        path.write_bytes(gzip.compress(data, 9, mtime=0) if table == "residues" else data)
        print(f"{path}: {len(lines[table])} rows, {path.stat().st_size} bytes")


def sorted_rows(lines):
    """By source and model, rows as they came."""
    return sorted(lines, key=lambda line: (line[0], int(line[1])))


# ---- Checks


def chain_order(rows, model):
    """The rows of a run's chain table in the order of the model's chains, or None."""
    wanted = [str(model.chain_id[its[0]]) for _, its in model.chains()]
    for column in ("auth_asym_id", "label_asym_id"):
        names = [str(name) for name in rows.get(column, [])]
        place, order = 0, []
        for name in wanted:
            while place < len(names) and names[place] != name:
                place += 1
            order.append(place)
            place += 1
        if place <= len(names):
            return np.array(order, dtype=int)
    return None


def run_columns(run, model, missing):
    """The run's rows of a model by table, aligned with the model's own."""
    found = {}
    for table in run.tables:
        rows = run.rows(table, model.key)
        expected = {"residues": len(model), "chains": len(model.chains()), "structures": 1}[table]
        if rows is None:
            if expected:
                missing[f"{table}: no rows of {model.key}"] += 1
            continue
        if table == "chains":
            order = chain_order(rows, model)
            if order is None:
                missing[f"chains: {model.key} has others than the dump"] += 1
                continue
            rows = {name: values[order] for name, values in rows.items()}
        count = len(next(iter(rows.values())))
        if count != expected:
            missing[f"{table}: {model.key} has {count} rows, the dump {expected}"] += 1
            continue
        if table == "residues":
            order = np.argsort(rows["res_index"], kind="stable")
            rows = {name: values[order] for name, values in rows.items()}
        found[table] = rows
    return found


def check(references, dump, run, settings):
    """Compare all models and print the table; return whether all holds."""
    agreements, missing, absent = {}, Counter(), Counter()
    for model in read_dump(dump):
        if run is None:
            theirs = references.golden(model)
        else:
            theirs = run_columns(run, model, missing)
        given = theirs.get("residues", {})
        for oracle in references.oracles:
            columns = theirs.get(oracle.table, {})
            wanted = [c for c in oracle.rules if c in columns]
            if run is not None:
                known = run.columns(oracle.table)
                absent.update((oracle.table, c) for c in oracle.rules if c not in known)
            if not wanted:
                continue
            for column, reference in references.compute(oracle, model, given).items():
                if column not in columns or column not in oracle.rules:
                    continue
                key = oracle.table, column, oracle.name
                if key not in agreements:
                    rule = references.rule(oracle, column)
                    agreements[key] = Agreement(column, references.titles[oracle.name], rule)
                agreements[key].add(model.key, reference, columns[column])
    return report(agreements, missing, absent, references, settings)


def report(agreements, missing, absent, references, settings):
    for table in TABLES:
        chosen = [(k, a) for k, a in agreements.items() if k[0] == table]
        if chosen:
            print(f"\n{table}\n{HEADER}")
        for _, agreement in sorted(chosen, key=lambda item: order_of(item[0], references)):
            print("\n".join(agreement.lines(settings.examples)))
    for table in TABLES:
        names = [name for t, name in absent if t == table]
        if names:
            print(f"\n{table}: not in the run: {' '.join(dict.fromkeys(names))}")
    for oracle in references.skipped:
        print(f"skipped: no {oracle.package}: {' '.join(oracle.rules)}")
    for what, count in missing.most_common(settings.examples):
        print(f"MISSING {what}" + (f" ({count} times)" if count > 1 else ""))
    if settings.differences:
        with open(settings.differences, "w") as out:
            out.write("column\toracle\tsource\tmodel\trow\treference\trun\n")
            for agreement in agreements.values():
                for source, model, row, ours, theirs in agreement.examples:
                    cells = [agreement.column, agreement.oracle, source, model, row]
                    out.write("\t".join(map(str, [*cells, shown_full(ours), shown_full(theirs)])) + "\n")
    if settings.times:
        for name, seconds in references.seconds.most_common():
            print(f"{seconds:9.1f} s  {name}")
    failed = [a for a in agreements.values() if not a.holds]
    names = ", ".join(dict.fromkeys(a.column for a in failed))
    print(f"\n{len(agreements) - len(failed)} hold, {len(failed)} fail{': ' + names if names else ''}")
    return not failed and not missing


def shown_full(value):
    return "" if value is None or value != value else value


def order_of(key, references):
    """Columns as the oracles list them, those of one column together."""
    _, column, name = key
    columns = list(dict.fromkeys(c for o in references.oracles for c in o.rules))
    return columns.index(column), [o.name for o in references.oracles].index(name)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dump", type=Path, help="folder with residues.tsv and atoms.tsv")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", type=Path, metavar="RUN_DIR", help="output of a run to compare")
    mode.add_argument("--cross", action="store_true", help="references with each other")
    mode.add_argument("--out", type=Path, metavar="DIR", help="write golden tables there")
    parser.add_argument("--points", type=int, default=100, help="SASA test points (default: 100)")
    parser.add_argument(
        "--biopython", type=int, default=300, metavar="N",
        help="largest model, in residues, that Biopython computes (default: 300)",
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="oracles of these columns, as hb_*")
    parser.add_argument("--cache", metavar="DIR", help="keep slow references there")
    parser.add_argument("--differences", metavar="FILE", help="write all that differs there")
    parser.add_argument("--examples", type=int, default=5, help="rows named where it fails")
    parser.add_argument("--times", action="store_true", help="print the seconds of each oracle")
    settings = parser.parse_args()

    references = References(settings)
    if settings.out:
        write_golden(references, settings.out, settings.dump)
        return 0
    run = Run(settings.check) if settings.check else None
    return 0 if check(references, settings.dump, run, settings) else 1


if __name__ == "__main__":
    sys.exit(main())
