"""The table of interfaces: pairs of chains that touch."""

import numpy as np

from contacts import near_pairs
from interfaces import CONTACT
from reference import EXACT, Rule, Values, oracle
from secondary import BOND, bond_energies
from surface import PROBE, about_one_point, freesasa_areas, points_and_classes
from tables import once

AREAS = ["buried_area", "buried_area_i", "buried_area_j"]
SAME_ENERGY = 1e-5  # kcal/mol: so near the threshold rounding decides


def names_of_chains(model):
    """The name of each chain by its number."""
    return dict(zip(model.chain.tolist(), model.chain_id.tolist(), strict=True))


@once
def contacts_by_chains(model):
    """{(chain, chain): pairs of residues [n, 2]} of heavy atoms within the cutoff, in order."""
    of_rows = np.flatnonzero(model.atom_residue >= 0)
    atoms = of_rows[near_pairs(model.atom_xyz[of_rows], CONTACT)]
    residues = np.unique(model.atom_residue[atoms].reshape(-1, 2), axis=0)
    chains = model.chain[residues].reshape(-1, 2)
    across = chains[:, 0] != chains[:, 1]
    residues, chains = residues[across], chains[across]
    swapped = chains[:, 0] > chains[:, 1]
    residues[swapped], chains[swapped] = residues[swapped, ::-1], chains[swapped, ::-1]
    residues = np.unique(residues, axis=0)
    chains = model.chain[residues].reshape(-1, 2)
    return {
        tuple(pair): residues[(chains == pair).all(axis=1)]
        for pair in np.unique(chains, axis=0).tolist()
    }


def rows(model, columns, excluded=None):
    """Columns of the pairs in contact, with the names of the chains as keys."""
    names = names_of_chains(model)
    pairs = list(contacts_by_chains(model))
    keys = {
        f"chain_{side}": Values(np.array([names[pair[at]] for pair in pairs], dtype=object))
        for at, side in enumerate("ij")
    }
    values = {
        name: Values(np.array(values, dtype=float), excluded or {})
        for name, values in columns.items()
    }
    return keys | values


@oracle(
    table="interfaces",
    package="scipy",
    golden=False,
    rules=dict.fromkeys(["residues_i", "residues_j", "contacts"], EXACT),
)
def interface_contacts(model, _settings):
    """Pairs of residues with heavy atoms within the cutoff, and residues in them; cKDTree."""
    pairs = contacts_by_chains(model).values()
    columns = {
        "residues_i": [len(np.unique(of[:, 0])) for of in pairs],
        "residues_j": [len(np.unique(of[:, 1])) for of in pairs],
        "contacts": [len(of) for of in pairs],
    }
    return rows(model, columns)


@oracle(
    table="interfaces", package="scipy", golden=False, rules={"backbone_hydrogen_bonds": EXACT}
)
def interface_bonds(model, _settings):
    """Pairs of N-H and O of two chains whose energy rounds to less than -0.5; cKDTree."""
    donor, acceptor, energy = bond_energies(model)
    chains = np.sort(np.stack([model.chain[donor], model.chain[acceptor]], axis=1), axis=1)
    threshold = BOND - 5e-4
    counts, unsure = [], []
    for pair in contacts_by_chains(model):
        own = energy[(chains == pair).all(axis=1)]
        counts.append((own < threshold).sum())
        unsure.append((np.abs(own - threshold) < SAME_ENERGY).any())
    excluded = {"an energy that rounding decides": np.array(unsure, dtype=bool)}
    return rows(model, {"backbone_hydrogen_bonds": counts}, excluded)


def golden_spiral(count):
    """Test points on the unit sphere, [count, 3]."""
    index = np.arange(count)
    z = 1 - (2 * index + 1) / count
    radius, longitude = np.sqrt(1 - z * z), index * np.pi * (3 - np.sqrt(5))
    points = [np.cos(longitude) * radius, np.sin(longitude) * radius, z]
    return np.stack(points, axis=1).astype(np.float32)


def fused(a, b, c):
    """a * b + c in single precision, rounded once."""
    return (a.astype(float) * b.astype(float) + c.astype(float)).astype(np.float32)


def buried(xyz, radii, own, others, points):
    """The area in A^2 that `others` bury of the atoms `own`, whose chain's atoms are in `own` too.

    `own` has the atoms of a chain and whether the area of each counts. Points are decided as by
    half spaces in single precision, so that none of them depends on rounding.
    """
    from scipy.spatial import cKDTree

    (own, counts), sphere = own, golden_spiral(points)
    reach = (radii + 1000 * PROBE).astype(np.float32)
    farthest = 2 * float(reach.max()) / 1000
    trees = [cKDTree(xyz[atoms] / 1000) for atoms in (own, others)]
    total = 0
    for atom in own[counts]:
        near = [
            atoms[tree.query_ball_point(xyz[atom] / 1000, farthest)]
            for atoms, tree in zip((own, others), trees, strict=True)
        ]
        if not len(near[1]):
            continue
        alone, both = (
            open_points(xyz, reach, sphere, atom, atoms).sum()
            for atoms in (near[0], np.concatenate(near))
        )
        total += int(alone - both) * int(reach[atom]) ** 2
    return 4e-6 * np.pi / points * total


def open_points(xyz, reach, sphere, atom, near):
    """Which of an atom's test points the atoms `near` do not bury."""
    delta = xyz[near] - xyz[atom]
    same = (delta == 0).all(axis=1) & (reach[near] == reach[atom])
    # Of atoms of one radius at one place the first shows.
    near, delta = near[~same | (near < atom)], delta[~same | (near < atom)].astype(np.float32)
    t = (reach[near] * reach[near] - reach[atom] * reach[atom]).astype(np.float32)
    for axis in range(3):
        t = fused(-delta[:, axis], delta[:, axis], t)
    t = t * (np.float32(1) / (np.float32(2) * reach[atom]))
    depth = np.broadcast_to(t, (len(sphere), len(t)))
    for axis in (2, 1, 0):
        depth = fused(sphere[:, axis, None], delta[None, :, axis], depth)
    return (depth < 0).all(axis=1)


def in_pairs(model, area):
    """Columns of areas by area(own, others) for both sides of each pair of chains."""
    sides = []
    of_rows = model.atom_residue >= 0
    for pair in contacts_by_chains(model):
        atoms = [np.flatnonzero(model.atom_chain == chain) for chain in pair]
        one, other = [(own, of_rows[own]) for own in atoms]
        sides.append((area(one, other[0]), area(other, one[0])))
    one, other = np.array(sides, dtype=float).reshape(-1, 2).T
    return rows(model, dict(zip(AREAS, [one + other, one, other], strict=True)))


@oracle(
    table="interfaces", package="scipy", golden=False, slow=True, depends=points_and_classes,
    rules=dict.fromkeys(AREAS, Rule("relative", 1e-4, 1e-3)),
)  # fmt: skip
def interface_areas(model, settings):
    """Shrake-Rupley with the same points, of the atoms near the other chain; cKDTree."""
    if settings.slices is not None:
        return {}

    def area(own, others):
        return buried(model.atom_xyz, model.atom_radius, own, others, settings.points)

    return in_pairs(model, area)


@oracle(
    table="interfaces", package="freesasa", golden=False, slow=True, depends=points_and_classes,
    rules=dict.fromkeys(AREAS, lambda settings: Rule("absolute", 4 * about_one_point(settings).tolerance)),
)  # fmt: skip
def interface_surfaces(model, settings):
    """calcCoord, of each chain alone and of both together."""
    def areas(atoms):
        xyz, radii = model.atom_xyz[atoms], model.atom_radius[atoms]
        return freesasa_areas(xyz, radii, settings.points, settings.slices)

    def area(own, others):
        atoms, counts = own
        together = areas(np.concatenate([atoms, others]))[: len(atoms)]
        return float((areas(atoms) - together)[counts].sum())

    return in_pairs(model, area)
