#!/usr/bin/env python3
"""Compare radii, classes and areas of atoms with FreeSASA's own classifiers.

    radii.py RUN_DIR                       the table of atoms of a run with
                                           atoms = true, sasa.radii and nucleic = false
    radii.py --golden FILE.pdb... > OUT    areas of residues by FreeSASA, for tests

FreeSASA gets the positions of the run's atoms, and the radius that its classifier
has for the names of residue and atom. Where it has none it guesses from the
element, and the run's radius is taken here; these atoms are counted. The counts
are of atoms; areas are compared in test points.
"""

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/cli/oracles"))

from surface import PROBE, freesasa_areas

SETS = ("naccess", "oons")
AMINO = set(
    "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL MSE".split()
)


def classifier_of(radii):
    """The classifier of a set that FreeSASA has, or of a file."""
    import freesasa

    freesasa.setVerbosity(freesasa.nowarnings)
    if radii in ("protor", *SETS):
        return freesasa.Classifier.getStandardClassifier(radii)
    return freesasa.Classifier(radii)


def known(classifier, comp, name):
    """FreeSASA's radius in 0.001 A and class; None for an atom that it does not know."""
    radius = classifier.radius(comp, name)
    return None if radius < 0 else (round(1000 * radius), classifier.classify(comp, name).lower())


def compare(folder):
    """Print the counts for a run."""
    import pyarrow.parquet as pq

    config = json.loads((folder / "run.json").read_text())["config"]
    points, classifier = config["sasa.points"], classifier_of(config["sasa.radii"])
    columns = ["source", "model", "comp_id", "name", "element", "class", "radius", "x", "y", "z", "sasa"]
    counts, cases, structures = Counter(), defaultdict(Counter), {}
    looked_up = {}
    for part in sorted(folder.glob("atoms/part-*.parquet")):
        for batch in pq.ParquetFile(part).iter_batches(columns=columns):
            rows = batch.to_pydict()
            for row in zip(*(rows[column] for column in columns), strict=True):
                structures.setdefault(row[:2], []).append(row[2:])
    for key, rows in structures.items():
        radii, is_same = [], True
        for comp, name, element, kind, radius, *_ in rows:
            ours = (round(1000 * radius), kind)
            if (comp, name) not in looked_up:
                looked_up[comp, name] = known(classifier, comp, name)
            theirs = looked_up[comp, name]
            counts["atoms"] += 1
            if theirs is None:
                counts["not known to FreeSASA"] += 1
                cases["not known to FreeSASA"][comp, name, element, *ours] += 1
            elif theirs == ours:
                counts["of the same radius and class"] += 1
            else:
                counts["of another radius or class"] += 1
                cases["of another radius or class"][comp, name, element, *ours, *theirs] += 1
                is_same = False
            radii.append(ours[0] if theirs is None else theirs[0])
        if len(rows) < 2:
            counts["areas of single atoms, which FreeSASA cannot compute"] += len(rows)
            continue
        xyz = np.round(1000 * np.array([row[5:8] for row in rows]))
        ours, radii = np.array([row[8] for row in rows], dtype=float), np.array(radii)
        areas = freesasa_areas(xyz, radii, points)
        step = 4 * np.pi * (radii / 1000 + PROBE) ** 2 / points
        off = np.abs(np.round((areas - ours) / step)).astype(int)
        what = "in structures of the same radii" if is_same else "in structures with other radii"
        counts[f"areas, {what}: the same points"] += int((off == 0).sum())
        counts[f"areas, {what}: one point"] += int((off == 1).sum())
        counts[f"areas, {what}: more"] += int((off > 1).sum())
        if is_same and (off > 1).any():
            cases["structures of the same radii with other areas"][key] += int((off > 1).sum())
    for what, count in counts.items():
        print(f"{count:>10,} {what}")
    for what, found in cases.items():
        print(f"{what}:")
        for case, count in found.most_common(40):
            print(f"{count:>10,}", *case)


def atoms_of(path):
    """Residues of the first model's ATOM records: component, and names, positions of heavy atoms."""
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
    residues = {}
    with opened as lines:
        for line in lines:
            if line.startswith("ENDMDL"):
                break
            if line.startswith("ATOM") and line[16] in " A" and line[76:78].strip() != "H":
                atom = (line[12:16].strip(), *(float(line[i : i + 8]) for i in (30, 38, 46)))
                residues.setdefault((line[21:27], line[17:20].strip()), []).append(atom)
    return [(comp, atoms) for (_, comp), atoms in residues.items()]


def golden(paths):
    """Print the areas of residues."""
    print("set\tfile\tres_index\tsasa\tsasa_polar")
    for radii in SETS:
        classifier = classifier_of(radii)
        for path in paths:
            residues = atoms_of(path)
            classes = [known(classifier, comp, atom[0]) for comp, atoms in residues for atom in atoms]
            xyz = np.round(1000 * np.array([atom[1:] for _, atoms in residues for atom in atoms]))
            areas = freesasa_areas(xyz, np.array([radius for radius, _ in classes]), 256)
            polar = areas * np.array([kind == "polar" for _, kind in classes])
            start, index = 0, 0
            for comp, atoms in residues:
                end = start + len(atoms)
                if comp in AMINO:
                    sums = [values[start:end].sum() for values in (areas, polar)]
                    print(radii, path.name, index, *(f"{value:.3f}" for value in sums), sep="\t")
                    index += 1
                start = end


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", help="output of a run")
    parser.add_argument("--golden", type=Path, nargs="+", metavar="FILE", help="PDB files")
    settings = parser.parse_args()
    if settings.golden:
        golden(settings.golden)
    elif settings.run:
        compare(settings.run)
    else:
        parser.error("give a run, or --golden and files")


if __name__ == "__main__":
    main()
