#!/usr/bin/env python3
"""Make assemblies.tsv: what gemmi's biological assembly 1 of files is.

A row is a copy of a polymer chain, in gemmi's order, which is that of the
generators and their operators: the source, the chain's name in the file (the
author's), how many alpha carbons the copy has, and the positions of the first and
the last, in 0.001 A, halves rounded away from zero. Of several conformers it is
the first.

Usage:
  pip install gemmi==0.7.5
  python tests/oracles/make_assemblies.py FILE... > tests/oracles/assemblies.tsv
"""

import math
import sys
from pathlib import Path

import gemmi


def milli(value):
    """Return the nearest 0.001 A, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) * 1000 + 0.5), value))


def alpha_carbons(chain):
    """Return the positions of the polymer's alpha carbons, first conformers only."""
    residues = chain.get_polymer().first_conformer()
    atoms = (residue.find_atom("CA", "*", gemmi.Element("C")) for residue in residues)
    return ["\t".join(str(milli(x)) for x in atom.pos) for atom in atoms if atom]


def main():
    xyz = "\t".join(f"{end}_{axis}" for end in ("first", "last") for axis in "xyz")
    print(f"source\tchain\talpha_carbons\t{xyz}")
    for file in sys.argv[1:]:
        structure = gemmi.read_structure(file)
        structure.setup_entities()
        assemblies = [a for a in structure.assemblies if a.name == "1"]
        if not assemblies:
            continue
        same_names = gemmi.HowToNameCopiedChain.Dup
        assembly = gemmi.make_assembly(assemblies[0], structure[0], same_names)
        for chain in assembly:
            positions = alpha_carbons(chain)
            if positions:
                count = len(positions)
                name = Path(file).name
                print(name, chain.name, count, positions[0], positions[-1], sep="\t")


if __name__ == "__main__":
    main()
