"""Secondary structure and hydrogen bonds: mdtraj, mkdssp, and energies in NumPy.

Both programs place the hydrogen of the first residue after a break by the C=O of
whatever residue comes before it. A stand-in residue between two segments, far
from everything, with all atoms at one point, gives that hydrogen no direction:
it then takes part in no bond, as none should. A residue that lacks N, CA, C or O
ends a segment too.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from contacts import pair_columns
from reference import EXACT, Rule, Values, oracle
from tables import once

NAMES = ("n", "ca", "c", "o")
CA_CUTOFF = 9.0  # A; pairs of residues beyond it are not considered
COUPLING = 27.888  # 332 * 0.42 * 0.20, kcal A / mol
LOWEST, BOND = -9.9, -0.5  # kcal/mol
CLOSE = 0.5  # A
SAME = 2e-3  # kcal/mol: energies that close may change places by rounding
ROUNDS_TO_0 = 1e-3  # kcal/mol: mkdssp rounds to 0.001
ROUNDING = 2e-5  # kcal/mol: the error of single precision
BONDS = ["hb_nho1", "hb_nho2", "hb_ohn1", "hb_ohn2"]
ENERGIES = [f"{name}_energy" for name in BONDS]
THREE = {**dict.fromkeys("HGI", "H"), **dict.fromkeys("EB", "E"), **dict.fromkeys("TSP-", "C")}


def complete(model):
    """Whether each residue has N, CA, C and O."""
    return np.all([model.has[name] for name in NAMES], axis=0)


def stretches(model):
    """Lists of complete rows, each linked to the one before."""
    whole, linked = complete(model), model.linked()
    found = []
    for row in np.flatnonzero(whole):
        if row and whole[row - 1] and linked[row]:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def stand_ins(model, count):
    """Points far from the model and from each other, in A."""
    corner = model.atom_xyz.max(axis=0) / 1000 + 50
    return corner + np.arange(count)[:, None] * [20.0, 0, 0]


def states(model, letters):
    """ss8 and ss3 from {row: letter}."""
    eight, three = np.full(len(model), None, dtype=object), np.full(len(model), None, dtype=object)
    for row, letter in letters.items():
        eight[row], three[row] = letter, THREE[letter]
    return eight, three


# ---- NumPy


def hydrogens(model):
    """Positions of amide hydrogens in A, NaN where there is none.

    1 A from N, along O->C of the residue before; none at the start of a segment
    or in proline.
    """
    hydrogen = np.full((len(model), 3), np.nan)
    for rows in stretches(model):
        here, before = np.array(rows[1:], dtype=int), np.array(rows[:-1], dtype=int)
        carbonyl = (model.xyz["c"][before] - model.xyz["o"][before]).astype(float)
        length = np.sqrt((carbonyl * carbonyl).sum(axis=1, keepdims=True))
        with np.errstate(all="ignore"):
            hydrogen[here] = model.xyz["n"][here] / 1000 + carbonyl / length
    hydrogen[model.parent == "PRO"] = np.nan
    return hydrogen


def bond_energies(model):
    """Donors, acceptors and Kabsch-Sander energies of all pairs below 0."""
    from scipy.spatial import cKDTree

    index = np.flatnonzero(complete(model))
    ca = model.xyz["ca"][index]
    if len(index) < 2:
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    pairs = cKDTree(ca / 1000).query_pairs(CA_CUTOFF, output_type="ndarray")
    donor, acceptor = index[np.concatenate([pairs, pairs[:, ::-1]])].T
    # The N-H and the C=O of one peptide.
    kept = ~((donor == acceptor + 1) & model.linked()[donor])
    donor, acceptor = donor[kept], acceptor[kept]
    hydrogen = hydrogens(model)[donor]
    nitrogen = model.xyz["n"][donor] / 1000
    carbon, oxygen = model.xyz["c"][acceptor] / 1000, model.xyz["o"][acceptor] / 1000

    def inverse(a, b):
        with np.errstate(all="ignore"):
            return 1 / np.sqrt(((a - b) ** 2).sum(axis=1))

    with np.errstate(all="ignore"):
        energy = COUPLING * (
            inverse(nitrogen, oxygen)
            + inverse(hydrogen, carbon)
            - inverse(hydrogen, oxygen)
            - inverse(nitrogen, carbon)
        )
    # Atoms that are too close have the lowest energy.
    distances = [(nitrogen, oxygen), (nitrogen, carbon), (hydrogen, oxygen), (hydrogen, carbon)]
    least = np.min([np.linalg.norm(a - b, axis=1) for a, b in distances], axis=0)
    energy = np.where(least < CLOSE, LOWEST, np.maximum(energy, LOWEST))
    kept = energy < 0
    return donor[kept], acceptor[kept], energy[kept]


def two_best(model, own, partner, energy):
    """Of each residue the partners and energies of its two lowest bonds.

    Also returns where a third, or the other, is as low within rounding.
    """
    count = len(model)
    best = np.full((2, count), np.nan)
    lowest = np.full((3, count), np.nan)
    order = np.lexsort((partner, energy, own))
    own, partner, energy = own[order], partner[order], energy[order]
    starts = np.searchsorted(own, np.arange(count))
    ends = np.searchsorted(own, np.arange(count), side="right")
    for rank in range(3):
        there = starts + rank < ends
        place = (starts + rank)[there]
        lowest[rank, there] = energy[place]
        if rank < 2:
            best[rank, there] = partner[place]
    with np.errstate(invalid="ignore"):
        gap = np.diff(np.nan_to_num(lowest, nan=0), axis=0) < SAME
    close = ~np.isnan(lowest[:2]) & np.stack([gap[0], gap[0] | gap[1]])
    return best, lowest[:2], close


def bonds(model, of_donors, of_acceptors):
    """Columns of (partners, energies, close) from both sides."""
    columns = {}
    for prefix, (partners, energies, close) in (("nho", of_donors), ("ohn", of_acceptors)):
        for rank in range(2):
            weak = ~(energies[rank] < BOND - SAME)
            excluded = {"two partners of one energy within 0.002": close[rank]}
            name = f"hb_{prefix}{rank + 1}"
            columns[name] = Values(partners[rank], excluded, weak)
            columns[f"{name}_energy"] = Values(energies[rank], {}, weak)
    return columns


@oracle(rules=dict.fromkeys(BONDS, EXACT) | dict.fromkeys(ENERGIES, Rule("absolute", 0.01)))
def energies_in_numpy(model, _settings):
    """Kabsch-Sander energies in double precision: the two lowest, each way."""
    donor, acceptor, energy = bond_energies(model)
    return bonds(
        model, two_best(model, donor, acceptor, energy), two_best(model, acceptor, donor, energy)
    )


@oracle(
    table="hydrogen_bonds",
    golden=False,
    rules={"energy": Rule("relative", 1e-4)}
    | dict.fromkeys(["res_index_donor", "res_index_acceptor", "same_chain", "separation"], EXACT),
)
def hydrogen_bonds(model, _settings):
    """All pairs of an N-H and a C=O whose energy, to 0.001 kcal/mol, is below -0.5.

    Energies that single precision may round to another 0.001 are not compared, nor
    are pairs where this decides whether they are bonds.
    """
    donor, acceptor, energy = bond_energies(model)
    limit = BOND - 0.0005
    near = np.flatnonzero(energy < limit + ROUNDING)
    near = near[np.lexsort((acceptor[near], donor[near]))]
    pairs, energy = np.stack([donor[near], acceptor[near]], axis=1), energy[near]
    steps = energy * 1000 - 0.5
    columns = pair_columns(model, ("res_index_donor", "res_index_acceptor"), pairs)
    columns["energy"] = (np.trunc(steps) / 1000).astype(np.float32).astype(float)
    open_pairs = {"a bond or none within 2e-5 kcal/mol": np.abs(energy - limit) < ROUNDING}
    values = {name: Values(column, open_pairs) for name, column in columns.items()}
    between = np.abs(steps - np.round(steps)) < 1000 * ROUNDING
    reason = "between two thousandths within 2e-5 kcal/mol"
    values["energy"].excluded = open_pairs | {reason: between}
    return values


# ---- mdtraj


def mdtraj_trajectory(model):
    """A trajectory of segments and stand-ins, and the row of each of its residues.

    A stand-in has no C-alpha, so that mdtraj skips it, but reads its C and O.
    """
    import mdtraj

    topology, xyz, rows = mdtraj.Topology(), [], []
    centre = model.atom_xyz.mean(axis=0) / 1000
    segments = stretches(model)
    for segment, point in zip(segments, stand_ins(model, len(segments)), strict=True):
        chain = topology.add_chain()
        stand_in = topology.add_residue("ALA", chain)
        rows.append(-1)
        for name in ("N", "C", "O"):
            topology.add_atom(name, mdtraj.element.carbon, stand_in)
            xyz.append(point - centre)
        chain = topology.add_chain()
        for row in segment:
            name = "PRO" if model.parent[row] == "PRO" else "ALA"
            residue = topology.add_residue(name, chain)
            rows.append(row)
            for name in NAMES:
                topology.add_atom(name.upper(), mdtraj.element.carbon, residue)
                xyz.append(model.xyz[name][row] / 1000 - centre)
    xyz = np.array([xyz], dtype=np.float32) / 10
    return mdtraj.Trajectory(xyz, topology), np.array(rows)


def dssp_version(settings, _model):
    return settings.dssp


@oracle(
    package="mdtraj",
    slow=True,
    depends=dssp_version,
    rules={"ss8": Rule(share=0.999), "ss3": Rule(share=0.999)}
    | dict.fromkeys(["hb_nho1", "hb_nho2"], EXACT)
    | dict.fromkeys(["hb_nho1_energy", "hb_nho2_energy"], Rule("absolute", 0.1)),
)
def secondary_structure_of_mdtraj(model, settings):
    """compute_dssp and kabsch_sander, which lists bonds below -0.5 of donors only.

    It is DSSP 2.2, which has no P.
    """
    import mdtraj

    count = len(model)
    if not complete(model).any():
        nothing, text = np.full(count, np.nan), np.full(count, None, dtype=object)
        columns = {"ss8": Values(text), "ss3": Values(text)}
        return columns | {n: Values(nothing) for n in BONDS[:2] + ENERGIES[:2]}
    trajectory, rows = mdtraj_trajectory(model)
    with np.errstate(all="ignore"):
        letters = mdtraj.compute_dssp(trajectory, simplified=False)[0]
        matrix = mdtraj.kabsch_sander(trajectory)[0].tocoo()
    letters = {r: {" ": "-"}.get(x, x) for r, x in zip(rows, letters, strict=True) if r >= 0}
    eight, three = states(model, {row: str(letter) for row, letter in letters.items()})
    donor, acceptor = rows[matrix.col], rows[matrix.row]
    partners, energies, _ = two_best(model, donor, acceptor, matrix.data.astype(float))
    # It lists two a donor at most, so that a third as low does not show.
    close = two_best(model, *bond_energies(model))[2]
    best = partners, energies, close
    columns = bonds(model, best, best)
    columns = {name: v for name, v in columns.items() if "nho" in name}
    for values in columns.values():
        values.excluded["not below -0.5 for mdtraj"] = np.isnan(values.values)
    for name, text in {"ss8": eight, "ss3": three}.items():
        if name == "ss3" or settings.dssp == 2:
            columns[name] = Values(text)
    return columns


# ---- mkdssp

SCHEME = (
    "asym_id entity_id seq_id mon_id ndb_seq_num pdb_seq_num auth_seq_num pdb_mon_id auth_mon_id"
    " pdb_strand_id pdb_ins_code hetero"
)
SITE = (
    "group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id"
    " label_entity_id label_seq_id pdbx_PDB_ins_code Cartn_x Cartn_y Cartn_z occupancy"
    " B_iso_or_equiv auth_seq_id auth_comp_id auth_asym_id auth_atom_id pdbx_PDB_model_num"
)


def mkdssp_file(model):
    """The text of an mmCIF file that mkdssp reads, and the row of each residue in it.

    It is one chain, since the classic output holds one letter for it: the stand-ins
    part the segments. mkdssp needs the dictionary's name and the sequence scheme.
    """
    residues, rows = [], []
    segments = stretches(model)
    for segment, point in zip(segments, stand_ins(model, len(segments)), strict=True):
        residues.append(("ALA", dict.fromkeys(NAMES, point)))
        rows.append(-1)
        for row in segment:
            name = "PRO" if model.parent[row] == "PRO" else "ALA"
            residues.append((name, {n: model.xyz[n][row] / 1000 for n in NAMES}))
            rows.append(row)
    # The first stand-in has nothing before it to part.
    residues, rows = residues[1:], rows[1:]
    lines = ["data_dump", "_audit_conform.dict_name mmcif_pdbx.dic"]
    lines += ["_audit_conform.dict_version 5.279", "loop_"]
    lines += [f"_pdbx_poly_seq_scheme.{name}" for name in SCHEME.split()]
    for number, (comp, _) in enumerate(residues, start=1):
        lines.append(f"A 1 {number} {comp} {number} {number} {number} {comp} {comp} A . n")
    lines += ["loop_"] + [f"_atom_site.{name}" for name in SITE.split()]
    for number, (comp, atoms) in enumerate(residues, start=1):
        for name, (x, y, z) in atoms.items():
            upper = name.upper()
            lines.append(
                f"ATOM {len(lines)} {upper[0]} {upper} . {comp} A 1 {number} ?"
                f" {x:.3f} {y:.3f} {z:.3f} 1 0 {number} {comp} A {upper} 1"
            )
    return "\n".join(lines) + "\n", rows


def partner_of(field, number, row_of):
    """The row and energy that "offset,energy" says, NaN where there is none."""
    offset, energy = field.split(",")
    if int(offset) == 0:
        return np.nan, np.nan
    return row_of.get(number + int(offset), np.nan), float(energy)


def output_of_mkdssp(text, *options):
    """The lines that mkdssp writes for a file of this text; None: it failed."""
    with tempfile.TemporaryDirectory() as folder:
        source, table = Path(folder) / "dump.cif", Path(folder) / "dump.out"
        source.write_text(text)
        command = ["mkdssp", "--quiet", *options, source, table]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return None if done.returncode or not table.exists() else table.read_text().splitlines()


@once
def run_mkdssp(model):
    """The lines of residues that mkdssp prints, with the row of each; None: it failed."""
    text, rows = mkdssp_file(model)
    lines = output_of_mkdssp(text, "--output-format", "dssp")
    if lines is None:
        return None
    start = next(i for i, line in enumerate(lines) if line.startswith("  #  RESIDUE"))
    lines = [line for line in lines[start + 1 :] if line[13] != "!"]
    return list(zip(lines, rows, strict=True)) if len(lines) == len(rows) else None


@oracle(
    package="mkdssp",
    slow=True,
    depends=dssp_version,
    rules={"ss8": Rule(share=0.984), "ss3": Rule(share=0.995)}
    | dict.fromkeys(BONDS, EXACT)
    | dict.fromkeys(ENERGIES, Rule("absolute", 0.1)),
)
def secondary_structure_of_mkdssp(model, settings):
    """mkdssp in its classic format. Its P is a loop in DSSP 2.2."""
    count = len(model)
    nothing, text = np.full((4, count), np.nan), np.full(count, None, dtype=object)
    found = run_mkdssp(model) if complete(model).any() else []
    if found is None:
        excluded = {"mkdssp did not accept the file": np.ones(count, dtype=bool)}
        columns = {name: Values(nothing[0], excluded) for name in BONDS + ENERGIES}
        return columns | {"ss8": Values(text, excluded), "ss3": Values(text, excluded)}
    partners, energies, letters = nothing.copy(), nothing.copy(), {}
    loops = {" ": "-"} if settings.dssp == 4 else {" ": "-", "P": "-"}
    row_of = {int(line[:5]): row for line, row in found if row >= 0}
    for line, row in found:
        if row < 0:
            continue
        letters[row] = loops.get(line[16], line[16])
        # Columns: N-H-->O, O-->H-N, N-H-->O, O-->H-N.
        for place, start in zip((0, 2, 1, 3), (39, 50, 61, 72), strict=True):
            field = line[start : start + 11]
            partners[place, row], energies[place, row] = partner_of(field, int(line[:5]), row_of)
    eight, three = states(model, letters)
    donor, acceptor, energy = bond_energies(model)
    exact = [two_best(model, donor, acceptor, energy), two_best(model, acceptor, donor, energy)]
    columns = bonds(
        model, (partners[:2], energies[:2], exact[0][2]), (partners[2:], energies[2:], exact[1][2])
    )
    lowest = np.concatenate([exact[0][1], exact[1][1]])
    for name, energy in zip(BONDS, lowest, strict=True):
        for column in (name, f"{name}_energy"):
            columns[column].excluded["an energy that rounds to 0"] = energy > -ROUNDS_TO_0
    columns["ss8"], columns["ss3"] = Values(eight), Values(three)
    return columns
