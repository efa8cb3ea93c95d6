"""Backbone torsions and C-alpha angles."""

import warnings

import numpy as np

from reference import Rule, Values, oracle

ANGLE = Rule("angle", 0.01)
TORSIONS = ["phi", "psi", "omega"]


def centred(model, name):
    """Positions of a backbone atom in A from the model's centre, NaN where missing.

    The packages compute in single precision, which is finer near the origin.
    """
    xyz = np.where(model.has[name][:, None], model.xyz[name] / 1000, np.nan)
    centre = model.atom_xyz.mean(axis=0) / 1000 if len(model.atom_xyz) else 0
    return xyz - centre


def shifted(values, step):
    """values[i + step], NaN beyond the ends."""
    moved = np.full_like(values, np.nan)
    if step >= 0:
        moved[: len(values) - step] = values[step:]
    else:
        moved[-step:] = values[:step]
    return moved


def linked_run(model, before, after):
    """Whether the rows i-before .. i+after are there and each linked to the next."""
    linked = model.linked()
    whole = np.ones(len(model), dtype=bool)
    for step in range(-before + 1, after + 1):
        place = np.arange(len(model)) + step
        inside = (place >= 1) & (place < len(model))
        whole &= inside & linked[np.clip(place, 0, max(len(model) - 1, 0))]
    return whole


def straightness(model):
    """Where the C-alphas i-1, i, i+1 lie on one line, and where nearly so.

    Nearly is within 0.06 degrees, where an arc cosine in single precision, as
    Biotite's, is off by more than 0.01.
    """
    one, two = (shifted(model.xyz["ca"].astype(float), step) for step in (-1, 1))
    one, two = one - model.xyz["ca"], two - model.xyz["ca"]
    # Whole numbers, which are exact in double precision.
    cross = np.sqrt((np.cross(one, two) ** 2).sum(axis=1))
    lengths = np.sqrt((one * one).sum(axis=1) * (two * two).sum(axis=1))
    return cross == 0, cross < 1e-3 * lengths


@oracle(
    package="biotite",
    slow=True,
    rules=dict.fromkeys([*TORSIONS, "ca_dihedral", "ca_angle"], ANGLE),
)
def torsions_of_biotite(model, _settings):
    """dihedral_backbone over the whole model, dihedral and angle over C-alphas.

    Biotite computes across breaks, and gives 0 for the dihedral of points on one
    line, which has none: those are made null here.
    """
    import biotite.structure as biotite

    count = len(model)
    ca = centred(model, "ca")
    atoms = biotite.AtomArray(3 * count)
    names = ("n", "ca", "c")
    atoms.coord = np.stack([centred(model, name) for name in names], axis=1).reshape(-1, 3)
    atoms.coord = atoms.coord.astype(np.float32)
    atoms.atom_name = np.tile([name.upper() for name in names], count)
    atoms.res_id = np.repeat(np.arange(count) + 1, 3)
    atoms.res_name = np.full(3 * count, "ALA")
    atoms.chain_id = np.full(3 * count, "A")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        empty = np.zeros(0)
        phi, psi, omega = biotite.dihedral_backbone(atoms) if count else (empty, empty, empty)
        around = [shifted(ca, step) for step in (-1, 0, 1, 2)]
        dihedral = biotite.dihedral(*around) if count else empty
        angle = biotite.angle(*around[:3]) if count else empty
    found = {
        "phi": (phi, 1, 0),
        "psi": (psi, 0, 1),
        "omega": (omega, 0, 1),
        "ca_dihedral": (dihedral, 1, 2),
        "ca_angle": (angle, 1, 1),
    }
    columns = {
        name: Values(np.where(linked_run(model, before, after), np.degrees(values), np.nan))
        for name, (values, before, after) in found.items()
    }
    straight, nearly = straightness(model)
    columns["ca_dihedral"].values[straight | (shifted(straight.astype(float), 1) > 0)] = np.nan
    columns["ca_angle"].excluded["straight within 0.06 degrees, where Biotite is rough"] = nearly
    return columns


@oracle(package="mdtraj", slow=True, rules=dict.fromkeys(TORSIONS, ANGLE))
def torsions_of_mdtraj(model, _settings):
    """compute_phi, _psi, _omega with periodic=False, a chain for each segment."""
    import mdtraj

    topology, xyz, residues = mdtraj.Topology(), [], []
    segments, chain = model.segments(), None
    positions = {name: centred(model, name) for name in ("n", "ca", "c")}
    for row in range(len(model)):
        if row == 0 or segments[row] != segments[row - 1]:
            chain = topology.add_chain()
        residue = topology.add_residue("ALA", chain)
        for name in ("n", "ca", "c"):
            if model.has[name][row]:
                topology.add_atom(name.upper(), mdtraj.element.carbon, residue)
                xyz.append(positions[name][row])
                residues.append(row)
    columns = {name: np.full(len(model), np.nan) for name in TORSIONS}
    if xyz:
        trajectory = mdtraj.Trajectory(np.array([xyz], dtype=np.float32) / 10, topology)
        residues = np.array(residues)
        # The residue of phi is that of its second atom, of psi and omega the first.
        for name, compute, atom in (
            ("phi", mdtraj.compute_phi, 1),
            ("psi", mdtraj.compute_psi, 0),
            ("omega", mdtraj.compute_omega, 0),
        ):
            indices, angles = compute(trajectory, periodic=False)
            if len(indices):
                columns[name][residues[indices[:, atom]]] = np.degrees(angles[0])
    return {name: Values(values) for name, values in columns.items()}
