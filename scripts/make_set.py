#!/usr/bin/env python3
"""Writes a large set of structures, as a tar archive on standard output.

Each is a sample, turned by one of the 24 rotations of a cube and moved by whole Angstroms, so that its
coordinates are as exact as the sample's, and its features the same:

    scripts/make_set.py --count 1000000 | tapeloop run - -o out --features contact_number,wcn

With --residues the samples are cut into stretches of so many residues. scripts/long_run.py makes its
sets with the functions of this file.
"""

import argparse
import gzip
import itertools
import pathlib
import random
import sys

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
BLOCK = 512


def atoms_of(path):
    """The ATOM records of the first model, and their coordinates in 0.001 Angstrom."""
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    records = []
    with opened as lines:
        for line in lines:
            if line.startswith("ENDMDL"):
                break
            if line.startswith("ATOM  "):
                at = [round(1000 * float(line[i : i + 8])) for i in (30, 38, 46)]
                records.append((line[:30], at, line[54:66].ljust(12), line[76:78].rjust(2)))
    return records


def rotations():
    """The 24 rotations of a cube: which axis each axis becomes, and its sign."""
    for axes in itertools.permutations(range(3)):
        inversions = sum(axes[a] > axes[b] for a, b in ((0, 1), (0, 2), (1, 2)))
        for signs in itertools.product((1, -1), repeat=3):
            if (-1) ** inversions * signs[0] * signs[1] * signs[2] == 1:
                yield axes, signs


def stretches(records, residues):
    """The records, cut into stretches of so many residues; a shorter rest is left out."""
    by_residue = [list(group) for _, group in itertools.groupby(records, lambda record: record[0][17:27])]
    for first in range(0, len(by_residue) - residues + 1, residues):
        yield list(itertools.chain(*by_residue[first : first + residues]))


def moved(records, axes, signs, shift):
    """The text of the records after a rotation and a shift."""
    lines = []
    for start, at, middle, element in records:
        xyz = (signs[k] * at[axes[k]] / 1000 + shift[k] for k in range(3))
        lines.append(f"{start}{''.join(f'{x:8.3f}' for x in xyz)}{middle}          {element}\n")
    return "".join([*lines, "END\n"]).encode()


def structures(chance, atoms_max, residues=None):
    """The names and texts of all structures that a set is made of."""
    found = []
    for path in sorted(SAMPLES.glob("*.pdb*")):
        records = atoms_of(path)
        if not 0 < len(records) <= atoms_max:
            continue
        for axes, signs in rotations():
            shift = [chance.randint(-200, 200) for _ in range(3)]
            for part in stretches(records, residues) if residues else [records]:
                found.append((path.name.split(".")[0], moved(part, axes, signs, shift)))
    return found


def padded(text):
    """A text as a tar archive holds it."""
    return text + bytes(-len(text) % BLOCK)


def tar_header(name, size):
    """The header of a file in a tar archive. As tarfile's, in a quarter of the time."""
    header = bytearray(BLOCK)
    fields = ((0, name.encode()), (100, b"0000644"), (108, b"0000000"), (116, b"0000000"))
    fields += ((124, b"%011o" % size), (136, b"00000000000"), (148, b" " * 8), (156, b"0ustar  "))
    for at, value in fields:
        header[at : at + len(value)] = value
    header[148:155] = b"%06o\0" % sum(header)
    return bytes(header)


# Ends a tar archive.
TAR_END = bytes(2 * BLOCK)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="number of structures")
    parser.add_argument("--atoms", type=int, default=700, help="largest sample, in atoms")
    parser.add_argument("--residues", type=int, help="length of the stretches that samples are cut into")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    texts = structures(chance, args.atoms, args.residues)
    write = sys.stdout.buffer.write
    for number in range(args.count):
        name, text = texts[chance.randrange(len(texts))]
        write(tar_header(f"{name}-{number:09}.pdb", len(text)))
        write(padded(text))
    write(TAR_END)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
