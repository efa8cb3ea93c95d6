"""Ligands and metals near residues, and the area that ligands, ions and glycans leave."""

import numpy as np

from reference import EXACT, Rule, Values, oracle
from surface import about_one_point, freesasa_areas
from tables import digest, once

REACH, CONTACT = 12.0, 4.5  # A
# Hydrogen, noble gases, halogens, chalcogens, pnictogens and others that are no metals, with the
# metalloids B, Si, Ge, As, Sb and Te; 0 is an unknown element.
NO_METALS = {0, 1, 2, *range(5, 11), *range(14, 19), *range(32, 37), *range(51, 55), 85, 86}


@once
def near_pairs(model):
    """Row, atom of a ligand and squared distance (1e-6 A^2) of all pairs within reach."""
    from scipy.spatial import cKDTree

    of_rows = np.flatnonzero(model.atom_residue >= 0)
    xyz, others = model.atom_xyz[of_rows], model.ligands.xyz
    if not len(xyz) or not len(others):
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    near = cKDTree(others / 1000).query_ball_point(xyz / 1000, REACH + 0.01)
    atoms = np.repeat(np.arange(len(xyz)), [len(found) for found in near])
    theirs = np.concatenate([np.array(found, dtype=int) for found in near])
    delta = xyz[atoms] - others[theirs]
    squares = (delta * delta).sum(axis=1)
    close = squares < (REACH * 1000) ** 2
    return model.atom_residue[of_rows][atoms[close]], theirs[close], squares[close]


def lowest(count, rows, squares):
    """Of each row the lowest squared distance in A; NaN where there is none."""
    least = np.full(count, np.inf)
    np.minimum.at(least, rows, squares)
    return np.where(np.isfinite(least), np.sqrt(least) / 1000, np.nan), least


@oracle(
    package="scipy",
    rules={
        "ligand_dmin": Rule("relative", 1e-6), "metal_dmin": Rule("relative", 1e-6),
        "ligand_contacts": EXACT, "ligand_comp": EXACT, "ligand_seq": EXACT,
    },
)  # fmt: skip
def ligands(model, _settings):
    """The nearest heavy atom of a ligand and the nearest metal, and pairs within 4.5 A; cKDTree."""
    if model.ligands is None:
        return {}
    count, (rows, theirs, squares) = len(model), near_pairs(model)
    own = model.ligands
    of_ligand = (own.kind == "ligand")[theirs]
    distance, least = lowest(count, rows[of_ligand], squares[of_ligand])
    which = np.full(count, len(own.xyz))
    nearest = of_ligand & (squares == least[rows])
    # Of equals the first ligand; its atoms are together.
    np.minimum.at(which, rows[nearest], theirs[nearest])
    comp, seq = np.full(count, None, dtype=object), np.full(count, np.nan)
    found = which < len(own.xyz)
    comp[found], seq[found] = own.comp[which[found]], own.seq[which[found]]
    pairs = np.bincount(
        rows[of_ligand & (squares < (CONTACT * 1000) ** 2)], minlength=count
    ).astype(float)
    is_metal = ~np.isin(own.element, list(NO_METALS))[theirs]
    metal, _ = lowest(count, rows[is_metal], squares[is_metal])
    return {
        "ligand_dmin": Values(distance),
        "metal_dmin": Values(metal),
        "ligand_contacts": Values(pairs),
        "ligand_comp": Values(comp),
        "ligand_seq": Values(seq),
    }


def points_and_ligands(settings, model):
    own = model.ligands
    ligands = () if own is None else (own.xyz, own.radius)
    return settings.points, digest(model.atom_radius, *ligands)


@oracle(
    package="freesasa", slow=True, depends=points_and_ligands,
    rules={"sasa_bound": about_one_point},
)  # fmt: skip
def bound_surface(model, settings):
    """calcCoord, Shrake-Rupley, over the atoms of the model and of all that is no polymer."""
    if model.ligands is None:
        return {}
    xyz = np.concatenate([model.atom_xyz, model.ligands.xyz])
    radii = np.concatenate([model.atom_radius, model.ligands.radius])
    areas = freesasa_areas(xyz, radii, settings.points)[: len(model.atom_xyz)]
    return {"sasa_bound": Values(model.per_residue(areas))}
