#!/usr/bin/env python3
"""Compares the table of interactions with its definitions, written again for standard residues.

    tapeloop run FOLDER -o OUT --features interactions,ligands
    python scripts/compare_interactions.py OUT

gemmi reads the files, of which it takes the first conformer. The script prints each row that one side
alone has, and counts by kind; the exit code is 1 if there is such a row. `--plip` tells hydrophobic
carbons by distances, and computes normals of rings from three atoms, as PLIP does.
"""

import argparse
import gzip
import os
import sys
from collections import Counter, defaultdict

import gemmi
import numpy as np
import pyarrow.parquet as pq
from scipy.spatial import cKDTree

BACKBONE = {"N": ("d", ["CA"]), "O": ("a", ["C"]), "OXT": ("a", ["C"])}
# Donors and acceptors of side chains, with their neighbours.
POLAR = {
    "ARG": {"NE": ("d", ["CD", "CZ"]), "NH1": ("d", ["CZ"]), "NH2": ("d", ["CZ"])},
    "ASN": {"OD1": ("a", ["CG"]), "ND2": ("d", ["CG"])},
    "ASP": {"OD1": ("a", ["CG"]), "OD2": ("a", ["CG"])},
    "GLN": {"OE1": ("a", ["CD"]), "NE2": ("d", ["CD"])},
    "GLU": {"OE1": ("a", ["CD"]), "OE2": ("a", ["CD"])},
    "HIS": {"ND1": ("da", ["CG", "CE1"]), "NE2": ("da", ["CD2", "CE1"])},
    "LYS": {"NZ": ("d", ["CE"])},
    "SER": {"OG": ("da", ["CB"])},
    "THR": {"OG1": ("da", ["CB"])},
    "TRP": {"NE1": ("d", ["CD1", "CE2"])},
    "TYR": {"OH": ("da", ["CZ"])},
}
# Rings, in their order.
RINGS = {
    "PHE": ["CG CD1 CE1 CZ CE2 CD2"],
    "TYR": ["CG CD1 CE1 CZ CE2 CD2"],
    "HIS": ["CG ND1 CE1 NE2 CD2"],
    "TRP": ["CG CD1 NE1 CE2 CD2", "CD2 CE2 CZ2 CH2 CZ3 CE3"],
}
POSITIVE = {"ARG": "NE NH1 NH2", "LYS": "NZ", "HIS": "ND1 NE2"}
NEGATIVE = {"ASP": "OD1 OD2", "GLU": "OE1 OE2"}
HYDROPHOBIC = {
    "ALA": "CB", "ARG": "CB CG", "ASN": "CB", "ASP": "CB", "GLN": "CB CG", "GLU": "CB CG", "HIS": "CB",
    "ILE": "CB CG1 CG2 CD1", "LEU": "CB CG CD1 CD2", "LYS": "CB CG CD", "MET": "CB", "MSE": "CB",
    "PHE": "CB CG CD1 CD2 CE1 CE2 CZ", "PRO": "CB CG", "THR": "CG2",
    "TRP": "CB CG CD2 CE3 CZ2 CZ3 CH2", "TYR": "CB CG CD1 CD2 CE1 CE2", "VAL": "CB CG1 CG2",
}  # fmt: skip
STANDARD = {*HYDROPHOBIC, "CYS", "GLY", "SER"}
RADII = {"C": 0.76, "N": 0.71, "O": 0.66, "S": 1.05, "SE": 1.20}
METALS = set(
    "LI BE NA MG AL K CA SC TI V CR MN FE CO NI CU ZN GA RB SR Y ZR NB MO TC RU RH PD AG CD IN SN CS BA "
    "LA CE PR ND SM EU GD TB DY HO ER TM YB LU HF TA W RE OS IR PT AU HG TL PB BI U".split()
)


def read(path):
    """The first model of a file, in one conformer."""
    if ".pdb" in path or ".ent" in path:
        opened = gzip.open(path, "rt") if path.endswith("gz") else open(path)
        with opened as file:
            # Old files have other texts in the columns of charges.
            lines = [line.rstrip("\n")[:78] for line in file]
        structure = gemmi.read_pdb_string("\n".join(lines))
    else:
        structure = gemmi.read_structure(path)
    structure.remove_alternative_conformations()
    structure.remove_hydrogens()
    structure.remove_waters()
    return structure[0]


def degrees(a, b):
    cosine = np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


class Definitions:
    """The interactions of a file, as distance and angle by kind and both sides."""

    def __init__(self, path, as_plip):
        self.found, self.as_plip = {}, as_plip
        self.keys, self.names, self.elements, positions = [], [], [], []
        self.owners, self.residues = [], []
        others = []
        for chain in read(path):
            before = None
            for residue in chain:
                number = (residue.seqid.num, residue.seqid.icode.strip())
                key = (chain.name, *number, residue.name)
                start = len(positions)
                for atom in residue:
                    self.keys.append(key)
                    self.names.append(atom.name)
                    self.elements.append(atom.element.name.upper())
                    self.owners.append(len(self.residues))
                    positions.append(atom.pos.tolist())
                atoms = {atom.name: start + index for index, atom in enumerate(residue)}
                is_standard = residue.name in STANDARD
                carbonyl = None
                if is_standard and before is not None and "N" in atoms and "C" in before:
                    apart = np.subtract(positions[atoms["N"]], positions[before["C"]])
                    carbonyl = before["C"] if np.linalg.norm(apart) < 2.5 else None
                self.residues.append((key, atoms, carbonyl))
                others += [] if is_standard else [len(self.residues) - 1]
                before = atoms if is_standard else None
        self.others = set(others)
        self.xyz = np.array(positions).reshape(-1, 3)
        self.owners = np.array(self.owners, dtype=int)
        self.hydrophobic()
        self.sulfurs_and_metals()
        self.groups()
        self.hydrogen_bonds()

    def put(self, kind, one, other, *values):
        self.found[kind, frozenset([one, other])] = values

    def atom(self, index):
        return (self.keys[index], self.names[index])

    def pairs(self, indices, cutoff):
        """Pairs of atoms of two residues that are nearer than the cutoff."""
        indices = np.array(indices, dtype=int)
        if len(indices) == 0:
            return
        for i, j in cKDTree(self.xyz[indices]).query_pairs(cutoff):
            i, j = indices[i], indices[j]
            apart = np.linalg.norm(self.xyz[i] - self.xyz[j])
            if self.owners[i] != self.owners[j] and apart < cutoff:
                yield i, j, apart

    def hydrophobic(self):
        standard = [owner not in self.others for owner in self.owners]
        if self.as_plip:
            polar = np.zeros(len(self.xyz), dtype=bool)
            for i, j in cKDTree(self.xyz).query_pairs(2.9):
                radii = [RADII.get(self.elements[index], 0) for index in (i, j)]
                apart = np.linalg.norm(self.xyz[i] - self.xyz[j])
                if min(radii) > 0 and apart < sum(radii) + 0.45:
                    polar[i] |= self.elements[j] != "C"
                    polar[j] |= self.elements[i] != "C"
            chosen = [e == "C" and not p for e, p in zip(self.elements, polar)]
        else:
            chosen = [n in HYDROPHOBIC.get(k[3], "").split() for k, n in zip(self.keys, self.names)]
        chosen = np.flatnonzero(np.logical_and(chosen, standard))
        for i, j, apart in self.pairs(chosen, 4.0):
            if apart >= 2.0:
                self.put("hydrophobic", self.atom(i), self.atom(j), apart)

    def sulfurs_and_metals(self):
        sulfurs = [i for i, key in enumerate(self.keys) if key[3] == "CYS" and self.names[i] == "SG"]
        for i, j, apart in self.pairs(sulfurs, 2.5):
            self.put("disulfide", self.atom(i), self.atom(j), apart)
        metals = {i for i, element in enumerate(self.elements) if element in METALS}
        binding = [i for i, element in enumerate(self.elements) if element in ("N", "O", "S", "SE")]
        for i, j, apart in self.pairs([*metals, *binding], 3.0):
            if (i in metals) != (j in metals):
                self.put("metal_coordination", self.atom(i), self.atom(j), apart)

    def groups(self):
        rings, charges = [], {"+": [], "-": []}
        for owner, (key, atoms, _) in enumerate(self.residues):
            if owner in self.others:
                continue

            def group(names):
                own = [atoms[name] for name in names.split() if name in atoms]
                has_all = len(own) == len(names.split())
                return ((key, ",".join(sorted(names.split()))), self.xyz[own]) if has_all else None

            for names in RINGS.get(key[3], []):
                if ring := group(names):
                    side, corners = ring
                    centre = corners.mean(0)
                    if self.as_plip:
                        first, third, fifth = self.xyz[sorted(atoms[n] for n in names.split())][:5:2]
                        normal = np.cross(third - first, first - fifth)
                    else:
                        nexts = np.roll(corners - centre, -1, axis=0)
                        normal = np.cross(corners - centre, nexts).sum(0)
                    rings.append((side, centre, normal / np.linalg.norm(normal)))
            for sign, table in (("+", POSITIVE), ("-", NEGATIVE)):
                if key[3] in table and (charge := group(table[key[3]])):
                    charges[sign].append((charge[0], charge[1].mean(0)))

        def offset(ring, point):
            apart = point - ring[1]
            return np.linalg.norm(apart - np.dot(apart, ring[2]) * ring[2])

        for one, centre in charges["+"]:
            for other, second in charges["-"]:
                apart = np.linalg.norm(centre - second)
                if apart < 5.5:
                    self.put("salt_bridge", one, other, apart)
        for index, ring in enumerate(rings):
            for side, centre in charges["+"]:
                apart = np.linalg.norm(centre - ring[1])
                if side[0] != ring[0][0] and apart < 6.0 and offset(ring, centre) < 2.0:
                    angle = degrees(ring[2], centre - ring[1])
                    self.put("cation_pi", ring[0], side, apart, min(angle, 180 - angle))
            for other in rings[index + 1 :]:
                apart = np.linalg.norm(other[1] - ring[1])
                if other[0][0] == ring[0][0] or apart >= 5.5:
                    continue
                angle = degrees(ring[2], other[2])
                angle = min(angle, 180 - angle)
                beside = min(offset(ring, other[1]), offset(other, ring[1]))
                if beside < 2.0 and not 30 <= angle <= 60:
                    kind = "pi_stacking_face" if angle < 30 else "pi_stacking_edge"
                    self.put(kind, ring[0], other[0], apart, angle)

    def hydrogen_bonds(self):
        polar = {}
        for owner, (key, atoms, carbonyl) in enumerate(self.residues):
            if owner in self.others:
                continue
            for name, index in atoms.items():
                entry = POLAR.get(key[3], {}).get(name) or BACKBONE.get(name)
                if entry is None or (name == "N" and key[3] == "PRO"):
                    continue
                bonded = [atoms[other] for other in entry[1] if other in atoms]
                bonded += [carbonyl] if name == "N" and carbonyl is not None else []
                polar[index] = (entry[0], bonded)

        def bond(donor, acceptor):
            apart = self.xyz[acceptor] - self.xyz[donor]
            distance = np.linalg.norm(apart)
            behind, bonded = polar[acceptor][1], polar[donor][1]
            if behind and np.dot(self.xyz[acceptor] - self.xyz[behind].mean(0), apart) > 0:
                return None
            # The angle at the donor, of its hydrogen and the acceptor.
            at_donor = 0.0
            if bonded:
                angle = np.radians(degrees(self.xyz[donor] - self.xyz[bonded].mean(0), apart))
                at_donor = angle if len(bonded) > 1 else abs(angle - np.arccos(1 / 3))
            reach = np.sqrt(distance**2 + 1 - 2 * distance * np.cos(at_donor))
            cosine = (1 + reach**2 - distance**2) / (2 * reach)
            if reach >= 2.5 or cosine >= 0:
                return None
            return distance, np.degrees(np.arccos(np.clip(cosine, -1, 1)))

        for i, j, apart in self.pairs(sorted(polar), 3.9):
            values = None
            for donor, acceptor in ((i, j), (j, i)):
                if values is None and "d" in polar[donor][0] and "a" in polar[acceptor][0]:
                    values = bond(donor, acceptor)
            if values and apart >= 2.0:
                self.put("hydrogen_bond", self.atom(i), self.atom(j), *values)


def rows(folder):
    """The rows of the table by file, of standard residues and metals."""
    table = pq.read_table(os.path.join(folder, "interactions"))
    found = defaultdict(dict)
    for row in table.to_pylist():
        sides = []
        for end in "12":
            columns = ("auth_asym_id", "auth_seq_id", "ins_code", "comp_id")
            key = tuple(row[f"{column}_{end}"] or "" for column in columns[:1])
            key += (row[f"auth_seq_id_{end}"], row[f"ins_code_{end}"] or "", row[f"comp_id_{end}"])
            sides.append((key, ",".join(sorted(row[f"atoms_{end}"].split(",")))))
        is_standard = all(side[0][3] in STANDARD for side in sides)
        if is_standard or row["kind"] == "metal_coordination":
            values = (row["distance"], row["angle"])
            found[row["source"]][row["kind"], frozenset(sides)] = values
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what `tapeloop run` wrote")
    parser.add_argument("--plip", action="store_true")
    arguments = parser.parse_args()
    counts = Counter()
    for source, table in sorted(rows(arguments.folder).items()):
        expected = Definitions(source, arguments.plip).found
        for key in table.keys() | expected.keys():
            one, other = table.get(key), expected.get(key)
            counts[key[0], "both" if one and other else "one alone"] += 1
            if not (one and other):
                print(source, key[0], sorted(map(str, key[1])), one, other)
                continue
            counts[key[0], "other distance"] += abs(one[0] - other[0]) > 0.002
            if len(other) > 1 and one[1] is not None:
                counts[key[0], "other angle"] += abs(one[1] - other[1]) > 0.5
    for (kind, what), count in sorted(counts.items()):
        if count > 0:
            print(f"{kind}: {count} {what}")
    return int(any(count for (_, what), count in counts.items() if what != "both"))


if __name__ == "__main__":
    sys.exit(main())
