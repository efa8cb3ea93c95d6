#!/usr/bin/env python3
"""Compare the structure readers with gemmi: the same atoms, and how fast.

Agreement: the selection rules of crates/structure/src/polymer.rs are written here a
second time, in Python, over the atoms that gemmi parses. For every file and
model, every residue must have the same atoms: the same coordinates (exactly up
to three decimals in the file, within 0.0005 A beyond), elements and B factors.
What gemmi refuses is tried again in an easier form (see RETRIES) and listed.

Speed: all files that both read, one thread, uncompressed text in memory, and
the gzipped files beside it. The two take turns; the best round of each counts.
Atoms are all atoms that gemmi counts in the files, for both.

  pip install gemmi==0.7.5
  python scripts/compare_gemmi.py --structures DIR [--rounds 7] [--only agreement|speed]
"""

import argparse
import collections
import gzip
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import gemmi

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "structure" / "components.tsv"
PDB_SUFFIXES = {".pdb", ".ent"}
LINK = 2.0


def read_table():
    rows = (line.rstrip("\n").split("\t") for line in TABLE.open() if line[0] != "#")
    return {id: kind for id, kind, _parent, _aa in rows}


KINDS = read_table()


def unpacked(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def is_pdb(path, text):
    stem = path.name.removesuffix(".gz")
    return Path(stem).suffix in PDB_SUFFIXES and not text.startswith(b"data_")


# --- gemmi's atoms ----------------------------------------------------------

RETRIES = {
    "as it is": lambda lines: lines,
    "without columns 79-80": lambda lines: [line[:78] for line in lines],
    "up to the first ENDMDL": lambda lines: lines[: 1 + next(
        (i for i, line in enumerate(lines) if line.startswith("ENDMDL")), len(lines))],
    "without ANISOU and columns 79-80": lambda lines: [
        line[:78] for line in lines if not line.startswith("ANISOU")],
}  # fmt: skip


def gemmi_structure(path, text):
    """gemmi's structure, its CIF block, and what had to be done to get it."""
    if not is_pdb(path, text):
        document = gemmi.cif.read_string(text.decode("latin-1"))
        blocks = [block for block in document if block.find(["_atom_site.id"])]
        if not blocks:
            raise ValueError("no _atom_site")
        return gemmi.make_structure_from_block(blocks[0]), blocks[0], "as it is"
    lines = text.decode("latin-1").splitlines()
    refusal = None
    for how, edit in RETRIES.items():
        try:
            structure = gemmi.read_pdb_string("\n".join(edit(lines)) + "\n")
            return structure, None, how if refusal is None else f"{how}; refused: {refusal}"
        except (RuntimeError, ValueError) as error:
            refusal = refusal or str(error).splitlines()[0]
    raise ValueError(refusal)


# --- the selection, in gemmi's terms ----------------------------------------

Residue = collections.namedtuple("Residue", "chain label seqid name het entity atoms")


def four_letter_names(text):
    """Component ids of four letters, by the three and the chain that gemmi makes
    of them: those that are known, or leave no chain id in column 22."""
    names = {}
    for line in text.decode("latin-1").splitlines():
        if line.startswith(("ATOM", "HETA")) and line[20:21].strip():
            name, chain = line[17:21].strip(), line[21:22].strip()
            if not chain or name in KINDS:
                names[line[17:20].strip(), line[20:22].strip()] = name, chain
    return names


def residues_of(model, names):
    """gemmi's residues, one for each name; those split between parts of a chain
    are put together unless they repeat an atom."""
    found, latest = [], {}
    for chain in model:
        for residue in chain:
            name, chain_name = names.get((residue.name, chain.name), (residue.name, chain.name))
            key = (chain_name, residue.subchain, residue.seqid.num, residue.seqid.icode, name)
            atoms = {(atom.name, atom.altloc) for atom in residue}
            known = latest.get(key)
            if known is not None and not atoms & {(a.name, a.altloc) for a in known.atoms}:
                known.atoms.extend(residue)
                continue
            new = Residue(chain_name, residue.subchain, (residue.seqid.num, residue.seqid.icode),
                          name, residue.het_flag == "H", residue.entity_id, list(residue))  # fmt: skip
            latest[key] = new
            found.append(new)
    return found


def entity_types(block):
    """Types by entity id, and the entity of each label_asym_id."""
    if block is None:
        return {}, {}
    types = {row.str(0): row.str(1).lower() for row in block.find("_entity.", ["id", "type"])
             if row.str(1)}  # fmt: skip
    asym = {row.str(0): row.str(1) for row in block.find("_struct_asym.", ["id", "entity_id"])}
    return types, asym


def linked(before, after):
    bonds = [({"C"}, "N"), ({"O3'", "O3*"}, "P")]
    return any(
        a.name in ends and b.name == start and a.pos.dist(b.pos) < LINK
        for ends, start in bonds for a in before.atoms for b in after.atoms
    )  # fmt: skip


def polymer(residues, structure, block):
    types, asym = entity_types(block)
    modified = {
        (mod.chain_name, mod.res_id.seqid.num, mod.res_id.seqid.icode, mod.res_id.name)
        for mod in structure.mod_residues
    }
    candidates, weak = [], set()
    for residue in residues:
        type_ = types.get(residue.entity or asym.get(residue.label, ""))
        known = KINDS.get(residue.name)
        if type_ is not None:
            if type_ == "polymer":
                candidates.append(residue)
        elif known is not None:
            if residue.het and residue.name != "MSE" and (residue.chain, *residue.seqid, residue.name) not in modified:
                weak.add(len(candidates))
            candidates.append(residue)
    kept = []
    for at, residue in enumerate(candidates):
        if at in weak:
            before, after = neighbours(candidates, at)
            if not any(linked(other, residue) for other in before) and not any(
                linked(residue, other) for other in after
            ):
                continue
        kept.append(residue)
    return kept


def neighbours(candidates, at):
    """The residues at the number before, and at the number after."""
    out = []
    number = lambda r: (r.chain, r.label, r.seqid)  # noqa: E731
    for order in (range(at - 1, -1, -1), range(at + 1, len(candidates))):
        side, first = [], None
        for other in (candidates[i] for i in order):
            if number(other) == number(candidates[at]):
                continue
            first = first or number(other)
            if number(other) != first or other.chain != candidates[at].chain:
                break
            side.append(other)
        out.append(side)
    return out


# What gemmi makes of polymer atom names that start in column 13 when there is no
# element: CA, CD, CE, HE, HG, NE, ... as metals and noble gases, HB1, HT2, ... as
# unknown. It does the same with an element column that holds something else.
MISREAD = {"Ca", "Cd", "Ce", "Co", "Hg", "He", "Ho", "Na", "Nb", "Nd", "Ne", "Nh", "No", "Og", "Sg", "Db", "X"}
BY_NAME = {"C": 6, "H": 1, "N": 7, "O": 8, "S": 16, "P": 15, "D": 1}


def element_of(atom, reread):
    """gemmi's element, unless it comes from a name and cannot be."""
    element = atom.element
    letters = atom.name.lstrip("0123456789").upper()
    if element.name in MISREAD and (element.name == "X" or letters[:2] == element.name.upper()):
        if letters[:1] in BY_NAME:
            reread.append(element.name)
            return BY_NAME[letters[0]]
    return element.atomic_number


def conformer(site, reread):
    """The chosen residue of a site and its atoms, as (element, atom)."""
    heavy = [[(element_of(atom, reread), atom) for atom in residue.atoms] for residue in site]
    heavy = [[(el, atom) for el, atom in atoms if el != 1] for atoms in heavy]
    sums = {}
    for at, atoms in enumerate(heavy):
        altlocs = any(atom.has_altloc() for _, atom in atoms)
        for _, atom in atoms:
            if atom.has_altloc() or (len(site) > 1 and not altlocs):
                key = (at, atom.altloc)
                sums[key] = sums.get(key, 0) + round(atom.occ * 1e6)
    if not sums:
        return site[0], heavy[0]
    order = sorted(sums, key=lambda key: -sums[key])  # stable: first in file on ties
    chosen = order[0][0]
    rank = {"\0": -1} | {altloc: i for i, (at, altloc) in enumerate(order) if at == chosen}
    best = {}
    for _, atom in heavy[chosen]:
        best[atom.name] = min(best.get(atom.name, 999), rank[atom.altloc])
    return site[chosen], [(el, a) for el, a in heavy[chosen] if rank[a.altloc] == best[a.name]]


def selected(model, structure, block, names, reread):
    """Atoms by residue; those of nucleotides and caps together under None."""
    kept = polymer(residues_of(model, names), structure, block)
    out = collections.OrderedDict()
    at = 0
    while at < len(kept):
        site, taken = [kept[at]], {atom.altloc for atom in kept[at].atoms}
        while at + len(site) < len(kept):
            other = kept[at + len(site)]
            more = {atom.altloc for atom in other.atoms}
            same = (other.chain, other.label, other.seqid) == (site[0].chain, site[0].label, site[0].seqid)
            if not same or taken & more:
                break
            site.append(other)
            taken |= more
        at += len(site)
        residue, atoms = conformer(site, reread)
        if not atoms:
            continue
        row = KINDS.get(residue.name, "A") == "A"
        key = (residue.chain, *residue.seqid, residue.name) if row else None
        out.setdefault(key, []).extend(atoms)
    return out


# --- this crate's atoms -----------------------------------------------------


def dumped(example, paths):
    """By file: a list of models, each atoms by residue, or the error."""
    text = subprocess.run([example, "--all-models", *map(str, paths)], check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    files, atoms = {}, None
    for line in text.splitlines():
        kind, *columns = line.split("\t")
        if kind == "F":
            models = files[Path(columns[0])] = []
        elif kind == "E":
            files[path_of(files)] = columns[1]
        elif kind == "S":
            models.append(collections.OrderedDict())
        elif kind == "R":
            auth, _label, seq, icode, comp = columns[:5]
            atoms = models[-1].setdefault((auth, int(seq), icode, comp), [])
        elif kind == "O":
            atoms = models[-1].setdefault(None, [])
        else:
            x, y, z, element = map(int, columns[:4])
            atoms.append((x, y, z, element, float(columns[4])))
    return files


def path_of(files):
    return next(reversed(files))


def same_coordinate(ours, theirs):
    exact = theirs * 1000
    if abs(exact - round(exact)) < 1e-6:
        return ours == round(exact)
    return abs(ours - exact) <= 0.5 + 1e-6


def compare_residue(ours, theirs):
    """The first difference between the atoms of a residue, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} atoms, gemmi {len(theirs)}"
    for (x, y, z, element, b), (their_element, atom) in zip(ours, theirs):
        position = (atom.pos.x, atom.pos.y, atom.pos.z)
        if not all(map(same_coordinate, (x, y, z), position)):
            return f"atom {atom.name} at {(x, y, z)}, gemmi {position}"
        if element != their_element:
            return f"atom {atom.name} is element {element}, gemmi {atom.element.name}"
        # Where there is no B factor, gemmi has 20 (no column), 0 (blank) or 50 (mmCIF).
        if not math.isclose(b, atom.b_iso, rel_tol=1e-6) and not (math.isnan(b) and atom.b_iso in (0, 20, 50)):
            return f"atom {atom.name} has B {b}, gemmi {atom.b_iso}"
    return None


def compare_file(path, models):
    """Notes on a file, atoms compared, and whether all agree."""
    text = unpacked(path)
    try:
        structure, block, how = gemmi_structure(path, text)
    except (RuntimeError, ValueError) as error:
        if isinstance(models, str):
            return [f"both refuse: {models}"], 0, True
        return [f"gemmi refuses: {str(error).splitlines()[0]}"], 0, True
    notes, atoms, agree = [], 0, True
    if how != "as it is":
        notes.append(f"gemmi reads it {how}")
    reread = []
    names = four_letter_names(text) if block is None else {}
    theirs = [selected(model, structure, block, names, reread) for model in structure]
    if any(name in KINDS for name, _ in names.values()):
        known = sorted({name for name, _ in names.values() if name in KINDS})
        notes.append(f"component ids of four letters, of which gemmi reads three: {', '.join(known)}")
    if isinstance(models, str):
        if any(theirs):
            return [*notes, f"DIFFERENT: rejected: {models}"], 0, False
        return [*notes, f"rejected, and no polymer in gemmi's atoms either: {models}"], 0, True
    if reread:
        notes.append(f"{len(reread)} atoms whose element only the name tells: gemmi reads "
                     + ", ".join(sorted(set(reread))))  # fmt: skip
    if len(models) != len(theirs):
        notes.append(f"{len(models)} models, gemmi {len(theirs)}")
    for number, (mine, other) in enumerate(zip(models, theirs), 1):
        mine = {key: value for key, value in mine.items() if value}
        different = [key for key in mine.keys() | other.keys()
                     if (key in mine) != (key in other) or compare_residue(mine[key], other[key])]  # fmt: skip
        atoms += sum(map(len, mine.values()))
        for key in sorted(different, key=str)[:3]:
            what = ("only here" if key not in other else "only in gemmi" if key not in mine
                    else compare_residue(mine[key], other[key]))  # fmt: skip
            notes.append(f"DIFFERENT: model {number}, {key}: {what}")
        agree = agree and not different
        rows = [[key for key in side if key is not None] for side in (mine, other)]
        if rows[0] != rows[1] and not different:
            notes.append(f"model {number}: the same residues in another order")
    return notes, atoms, agree


def compare_agreement(folder, example):
    paths = sorted(path for path in folder.iterdir() if ".bcif" not in path.name)
    ours = dumped(example, paths)
    count, atoms, differing = 0, 0, 0
    for path in paths:
        notes, compared, agree = compare_file(path, ours[path])
        count += compared > 0
        atoms += compared
        differing += not agree
        for note in notes:
            print(f"  {path.name}: {note}")
    print(f"{folder.name}: {len(paths)} files, {count} with atoms, {atoms} atoms compared, "
          f"{differing} files differ")  # fmt: skip
    return differing


# --- speed ------------------------------------------------------------------


def gemmi_seconds(texts, as_pdb):
    start = time.perf_counter()
    for text in texts:
        if as_pdb:
            gemmi.read_pdb_string(text)
        else:
            gemmi.make_structure_from_block(gemmi.cif.read_string(text)[0])
    return time.perf_counter() - start


def gemmi_packed_seconds(paths, as_pdb):
    start = time.perf_counter()
    for path in paths:
        if as_pdb:
            gemmi.read_pdb(str(path))
        else:
            gemmi.make_structure_from_block(gemmi.cif.read(str(path))[0])
    return time.perf_counter() - start


def compare_speed(folder, example, rounds):
    for as_pdb in (True, False):
        paths, texts, atoms = [], [], 0
        for path in sorted(path for path in folder.iterdir() if ".bcif" not in path.name):
            data = unpacked(path)
            if is_pdb(path, data) != as_pdb:
                continue
            try:
                text = data.decode()
                structure = (gemmi.read_pdb_string(text) if as_pdb
                             else gemmi.make_structure_from_block(gemmi.cif.read_string(text)[0]))  # fmt: skip
                read = [gemmi.read_pdb, gemmi.cif.read][not as_pdb]
                read(str(path))
            except (RuntimeError, ValueError, IndexError):
                continue
            count = sum(model.count_atom_sites() for model in structure)
            if count and not isinstance(dumped(example[0], [path])[path], str):
                paths.append(path)
                texts.append(text)
                atoms += count
        if not paths:
            continue
        best = [math.inf] * 4
        for _ in range(rounds):
            theirs = gemmi_seconds(texts, as_pdb), gemmi_packed_seconds(paths, as_pdb)
            line = subprocess.run([example[1], "--rounds=1", *map(str, paths)], check=True,
                                  capture_output=True, text=True).stdout.split()  # fmt: skip
            times = (float(line[5]), theirs[0], float(line[7]), theirs[1])
            best = list(map(min, best, times))
        kind = "PDB" if as_pdb else "mmCIF"
        for what, ours, theirs in (("text", *best[:2]), ("gzip", *best[2:])):
            print(f"{folder.name} {kind} {what}: {len(paths)} files, {atoms} atoms: "
                  f"{atoms / ours / 1e6:.2f} M atoms/s, gemmi {atoms / theirs / 1e6:.2f}, "
                  f"ratio {theirs / ours:.2f}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--structures", type=Path, default=os.environ.get("TAPELOOP_STRUCTURES"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["agreement", "speed"])
    args = parser.parse_args()
    if args.structures is None:
        parser.error("give --structures DIR or set TAPELOOP_STRUCTURES")
    names = ["dump_atoms", "read_rate"]
    subprocess.run(["cargo", "build", "--quiet", "--release", "--package", "tapeloop", "--no-default-features",
                    *(arg for name in names for arg in ("--example", name))], check=True, cwd=ROOT)  # fmt: skip
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples"
    examples = [target / name for name in names]
    folders = sorted(path for path in Path(args.structures).iterdir() if path.is_dir())
    differing = 0
    if args.only != "speed":
        differing = sum(compare_agreement(folder, examples[0]) for folder in folders)
    if args.only != "agreement":
        for folder in folders:
            compare_speed(folder, examples, args.rounds)
    sys.exit(differing != 0)


if __name__ == "__main__":
    main()
