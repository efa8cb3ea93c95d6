"""Torsions of side chains, their bins, and missing atoms."""

from functools import cache

import numpy as np

from reference import EXACT, Values, oracle
from torsions import ANGLE

CHIS = [f"chi{number}" for number in range(1, 6)]
LETTERS = "ARNDCQEGHILKMFPSTWYV"
BACKBONE = {"N", "CA", "C", "O", "OXT"}
# The letters of p, t and m in the names of rotamers (Lovell et al. 2000, table 1).
BINS = {"R": 3, "Q": 2, "E": 2, "I": 2, "L": 2, "K": 4, "M": 3} | dict.fromkeys("NDCHFSTWYV", 1)
SYMMETRIC = {"ASP": 2, "GLU": 3, "PHE": 2, "TYR": 2}


@cache
def side_chain_names(parent):
    """The heavy atoms of a standard residue's side chain in the component dictionary."""
    from biotite.structure.info import residue

    atoms = residue(parent)
    heavy = atoms.atom_name[atoms.element != "H"]
    return set(heavy.tolist()) - BACKBONE


def usual_names(model, row):
    """{name: atom} of a residue, with the usual names for MSE and for CD of isoleucine.

    Of the atoms of a modified residue, those that its standard residue has too.
    """
    parent = model.parent[row]
    other = {"MET": {"SE": "SD"}, "ILE": {"CD": "CD1"}}.get(parent, {})
    wanted = side_chain_names(parent) | {"N", "CA"}
    found = {}
    for atom in model.residue_atoms[row]:
        name = model.atom_name[atom]
        name = name if name in wanted else other.get(name, name)
        if name in wanted:
            found.setdefault(name, atom)
    return found


def is_standard(model):
    return np.isin(model.aa, list(LETTERS)) & ((model.comp == model.parent) | (model.comp == "MSE"))


@oracle(package="mdtraj", needs=("biotite",), slow=True, rules=dict.fromkeys(CHIS, ANGLE))
def side_chains_of_mdtraj(model, _settings):
    """compute_chi1 to compute_chi5 with periodic=False, of centred positions."""
    import mdtraj

    topology, xyz, rows = mdtraj.Topology(), [], []
    chain = topology.add_chain()
    centre = model.atom_xyz.mean(axis=0) if len(model.atom_xyz) else 0
    for row in np.flatnonzero(np.isin(model.aa, list(LETTERS))):
        residue = topology.add_residue(model.parent[row], chain)
        for name, atom in usual_names(model, row).items():
            topology.add_atom(name, mdtraj.element.carbon, residue)
            xyz.append((model.atom_xyz[atom] - centre) / 10_000)
            rows.append(row)
    columns = {name: np.full(len(model), np.nan) for name in CHIS}
    if xyz:
        trajectory = mdtraj.Trajectory(np.array([xyz], dtype=np.float32), topology)
        rows = np.array(rows)
        for name in CHIS:
            indices, angles = getattr(mdtraj, f"compute_{name}")(trajectory, periodic=False)
            if len(indices):
                columns[name][rows[indices[:, 0]]] = np.degrees(angles[0])
    return {name: Values(values) for name, values in columns.items()}


@oracle(of_run=True, rules=dict.fromkeys([f"{name}_bin" for name in CHIS[:4]], EXACT))
def bins(model, _settings, given):
    """p, t or m by the run's own angles, as many as a rotamer's name has."""
    columns = {}
    count = np.array([BINS.get(aa, 0) for aa in model.aa])
    count = np.where(is_standard(model), count, 0)
    for number, name in enumerate(CHIS[:4], 1):
        if name not in given:
            continue
        angle = np.asarray(given[name], dtype=float)
        third = np.floor(np.nan_to_num(angle) % 360 / 120).astype(int)
        text = np.array(["p", "t", "m"], dtype=object)[third % 3]
        there = (count >= number) & ~np.isnan(angle)
        columns[f"{name}_bin"] = Values(np.where(there, text, None))
    return columns


@oracle(package="biotite", rules=dict.fromkeys(["chi_symmetric", "side_missing"], EXACT))
def side_chain_atoms(model, _settings):
    """Atoms of the component dictionary that are not there, and which torsion is symmetric."""
    symmetric, missing = np.full((2, len(model)), np.nan)
    standard = is_standard(model)
    for row in np.flatnonzero(np.isin(model.aa, list(LETTERS))):
        parent = model.parent[row]
        symmetric[row] = SYMMETRIC.get(parent, np.nan)
        if standard[row]:
            missing[row] = len(side_chain_names(parent) - set(usual_names(model, row)))
    return {"chi_symmetric": Values(symmetric), "side_missing": Values(missing)}
