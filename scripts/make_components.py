#!/usr/bin/env python3
"""Make crates/structure/src/components.tsv, the table of polymer components, and saccharides.txt.

saccharides.txt lists the components of a saccharide type of the dictionary, one a line.
components.tsv lists the components of the wwPDB chemical component dictionary (CC0), as
the PyPI package biotite carries it, that polymers are made of: every component of a
peptide- or nucleotide-linking type, obsolete ones too, because old files use them, and
the caps named in DICTIONARY_CAPS. The names of simulation programs are in
simulation_names.tsv, which no script makes.

Columns, separated by tabs, sorted by id:

  id      component id, 1 to 5 characters
  kind    A amino acid, N nucleotide, C cap (blocks an end of a peptide)
  parent  the standard component that this one is a variant of: itself where it
          is standard, empty where none is known; several, separated by commas,
          where it was made of several, as the chromophore NRQ (MET,TYR,GLY)
  aa      one-letter code of the first parent; X where there is none and for N
          and C

The parent is found by following mon_nstd_parent_comp_id up to a standard
component. Where that ends nowhere, the dictionary's own one-letter code
decides: DAL has no parent, but the code A, so its parent is ALA.
SEC (U), PYL (O), ASX (B) and GLX (Z) count as standard: they are their own
parents. UNK has none.

Usage:
  pip install biotite==1.6.0
  python scripts/make_components.py
"""

import argparse
import importlib.metadata
from pathlib import Path

import biotite.structure.info
from biotite.structure.io.pdbx import BinaryCIFFile

STANDARD_AMINO_ACIDS = {
    "ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "CYS": "C", "GLN": "Q",
    "GLU": "E", "GLY": "G", "HIS": "H", "ILE": "I", "LEU": "L", "LYS": "K",
    "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W",
    "TYR": "Y", "VAL": "V", "SEC": "U", "PYL": "O", "ASX": "B", "GLX": "Z",
}  # fmt: skip
STANDARD_RNA = ["A", "C", "G", "I", "U"]
STANDARD_DNA = ["DA", "DC", "DG", "DI", "DT", "DU"]

# Dictionary components that are no peptide units by type, but stand at the end
# of a chain in entries: acyl groups, amides, carbamates, chromogenic amines and
# the carbon that a chloromethyl ketone leaves behind.
DICTIONARY_CAPS = [
    "0QE", "ACE", "BEZ", "BOC", "CBX", "CBZ", "CF0", "FOR", "HOA", "IVA", "MCM",
    "MPR", "NH2", "NIT", "NME", "PHQ", "SIN",
]  # fmt: skip


def read_dictionary(path):
    """Return {id: (type, [parent ids], one-letter code)} and the newest date."""
    columns = BinaryCIFFile.read(path).block["chem_comp"]
    names = ["id", "type", "mon_nstd_parent_comp_id", "one_letter_code"]
    rows = zip(*(columns[name].as_array(str) for name in names), strict=True)
    components = {}
    for comp_id, comp_type, parents, code in rows:
        parents = [p.strip().upper() for p in str(parents).split(",")]
        parents = [p for p in parents if p not in ("", "?", ".")]
        components[str(comp_id)] = (str(comp_type).upper(), parents, str(code))
    return components, max(columns["pdbx_modified_date"].as_array(str))


def kind_of(comp_type):
    """Return the kind of a dictionary type, None for ligands."""
    if "PEPTIDE" in comp_type and comp_type != "PEPTIDE-LIKE":
        return "A"
    if "RNA" in comp_type or "DNA" in comp_type:
        return "N"
    return None


def standard_parents(comp_id, components):
    """Return the standard components that comp_id was made of, with commas, or ''."""
    parents = components[comp_id][1]
    if len(parents) < 2:
        return standard_parent(comp_id, components)
    return ",".join(standard_parent(parent, components) for parent in parents)


def standard_parent(comp_id, components):
    """Return the standard component that comp_id is a variant of, or ''."""
    seen = set()
    while comp_id in components and comp_id not in seen:
        seen.add(comp_id)
        comp_type, parents, code = components[comp_id]
        if comp_id in STANDARD_AMINO_ACIDS or comp_id in STANDARD_RNA + STANDARD_DNA:
            return comp_id
        if not parents:
            return parent_by_code(kind_of(comp_type), comp_type, code)
        comp_id = parents[0]
    return ""


def parent_by_code(kind, comp_type, code):
    """Return the standard component with this kind and one-letter code, or ''."""
    if kind == "A":
        by_code = {letter: comp for comp, letter in STANDARD_AMINO_ACIDS.items()}
        return by_code.get(code, "")
    if kind == "N" and "DNA" in comp_type and "D" + code in STANDARD_DNA:
        return "D" + code
    if kind == "N" and "RNA" in comp_type and code in STANDARD_RNA:
        return code
    return ""


def dictionary_rows(components):
    """Return {id: (kind, parent)} for the dictionary's polymer units and caps."""
    rows = {}
    for comp_id, (comp_type, _, _) in components.items():
        kind = kind_of(comp_type)
        if kind:
            rows[comp_id] = (kind, standard_parents(comp_id, components))
    for comp_id in DICTIONARY_CAPS:
        if comp_id not in components or comp_id in rows:
            raise SystemExit(f"{comp_id}: not a cap in this dictionary")
        rows[comp_id] = ("C", "")
    return rows


def saccharides(components):
    """Return the ids of saccharides, sorted."""
    return sorted(c for c, (comp_type, _, _) in components.items() if "SACCHARIDE" in comp_type)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent.parent / "crates/structure/src/components.tsv",
        help="file to write (default: %(default)s)",
    )
    args = parser.parse_args()

    path = Path(biotite.structure.info.__file__).parent / "components.bcif"
    components, newest = read_dictionary(path)
    rows = dictionary_rows(components)

    version = importlib.metadata.version("biotite")
    lines = [
        f"# id kind parent aa; wwPDB chemical component dictionary (newest change {newest})"
        f" in PyPI biotite {version}; scripts/make_components.py\n"
    ]
    for comp_id, (kind, parent) in sorted(rows.items()):
        first = parent.split(",")[0]
        aa = STANDARD_AMINO_ACIDS.get(first, "X") if kind == "A" else "X"
        lines.append(f"{comp_id}\t{kind}\t{parent}\t{aa}\n")
    args.out.write_text("".join(lines), encoding="ascii")
    print(f"{args.out}: {len(rows)} components, {args.out.stat().st_size} bytes")
    ids = saccharides(components)
    out = args.out.with_name("saccharides.txt")
    heading = (
        f"# wwPDB chemical component dictionary (newest change {newest}) in PyPI biotite {version};"
        " scripts/make_components.py\n"
    )
    out.write_text(heading + "".join(f"{comp_id}\n" for comp_id in ids), encoding="ascii")
    print(f"{out}: {len(ids)} components")


if __name__ == "__main__":
    main()
