#!/usr/bin/env python3
"""Make crates/structure/src/protor.tsv, the atom radii of Tsai et al. 1999 (ProtOr).

The radii are those of FreeSASA's built-in ProtOr classifier, which extends the
paper's twenty amino acids to further components. FreeSASA has no list of its
entries, so every atom name of the dictionary's polymer components is asked for,
in each component of components.tsv that a reader looks up: the standard ones,
and those that have no parent.

Columns, separated by tabs, sorted by id:

  id      component id
  atoms   names and radii in 0.001 A in turn, separated by spaces, in the order
          of the dictionary, which is that of nearly all files

Usage:
  pip install biotite==1.6.0 freesasa==2.2.1
  python scripts/make_protor.py
"""

import argparse
import importlib.metadata
import warnings
from pathlib import Path

import biotite.structure.info
import freesasa
from biotite.structure.io.pdbx import BinaryCIFFile

SOURCE = Path(__file__).parent.parent / "crates/structure/src"


def looked_up(components):
    """Return the ids whose rows a reader asks for, from components.tsv."""
    rows = [line.split("\t") for line in components.read_text().splitlines()]
    rows = [row for row in rows if not row[0].startswith("#")]
    return [comp_id for comp_id, _, parent, _ in rows if parent in ("", comp_id)]


def dictionary_atoms():
    """Return {component id: [heavy atom names]} of the dictionary."""
    path = Path(biotite.structure.info.__file__).parent / "components.bcif"
    atoms = BinaryCIFFile.read(path).block["chem_comp_atom"]
    names = [atoms[item].as_array(str) for item in ("comp_id", "atom_id", "type_symbol")]
    components = {}
    for comp_id, name, element in zip(*names, strict=True):
        if element not in ("H", "D"):
            components.setdefault(str(comp_id), []).append(str(name))
    return components


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=SOURCE / "protor.tsv",
        help="file to write (default: %(default)s)",
    )
    args = parser.parse_args()

    warnings.simplefilter("ignore")
    freesasa.setVerbosity(freesasa.nowarnings)
    classifier = freesasa.Classifier.getStandardClassifier("protor")
    ids = looked_up(SOURCE / "components.tsv")
    dictionary = dictionary_atoms()
    every_name = {name for comp_id in ids for name in dictionary.get(comp_id, [])}

    version = importlib.metadata.version("freesasa")
    lines = [
        f"# id atoms; ProtOr radii (Tsai et al. 1999) as PyPI freesasa {version} has them;"
        " scripts/make_protor.py\n"
    ]
    for comp_id in ids:
        own = dictionary.get(comp_id, [])
        names = own + sorted(every_name - set(own))
        radii = [(name, classifier.radius(comp_id, name)) for name in names]
        atoms = [f"{name} {round(1000 * radius)}" for name, radius in radii if radius > 0]
        if atoms:
            lines.append(f"{comp_id}\t{' '.join(atoms)}\n")
    args.out.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
