#!/usr/bin/env python3
"""Writes a large set of structures, as a tar archive on standard output.

Each is a sample, turned by one of the 24 rotations of a cube and moved by whole Angstroms, so that its
coordinates are as exact as the sample's, and its features the same:

    scripts/make_set.py --count 1000000 | tapeloop run - -o out --features contact_number,wcn
"""

import argparse
import gzip
import itertools
import pathlib
import random
import sys
import tarfile

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


def moved(records, axes, signs, shift):
    """The text of the records after a rotation and a shift, padded for a tar archive."""
    lines = []
    for start, at, middle, element in records:
        xyz = (signs[k] * at[axes[k]] / 1000 + shift[k] for k in range(3))
        lines.append(f"{start}{''.join(f'{x:8.3f}' for x in xyz)}{middle}          {element}\n")
    text = "".join([*lines, "END\n"]).encode()
    return len(text), text + bytes(-len(text) % BLOCK)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="number of structures")
    parser.add_argument("--atoms", type=int, default=700, help="largest sample, in atoms")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    texts = []
    for path in sorted(SAMPLES.glob("*.pdb*")):
        records = atoms_of(path)
        if not 0 < len(records) <= args.atoms:
            continue
        for axes, signs in rotations():
            shift = [chance.randint(-200, 200) for _ in range(3)]
            texts.append((path.name.split(".")[0], *moved(records, axes, signs, shift)))
    header = tarfile.TarInfo()
    write = sys.stdout.buffer.write
    for number in range(args.count):
        name, size, padded = texts[chance.randrange(len(texts))]
        header.name, header.size = f"{name}-{number:09}.pdb", size
        write(header.tobuf(tarfile.GNU_FORMAT))
        write(padded)
    write(bytes(2 * BLOCK))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
