"""Contact numbers, the weighted contact number, means over contacts, and pairs in contact."""

import numpy as np

from b_factors import of_c_alphas_by_kind
from reference import EXACT, Rule, Values, oracle
from tables import once

CA_CUTOFFS, CB_CUTOFFS = (8, 10, 12), (8, 10)
SMOOTH_RADIUS = 10  # A


def near_pairs(xyz, radius):
    """Return pairs (i, j), i < j, nearer than `radius` A, decided in whole numbers."""
    from scipy.spatial import cKDTree

    if len(xyz) < 2:
        return np.empty((0, 2), dtype=int)
    pairs = cKDTree(xyz / 1000).query_pairs(radius + 0.01, output_type="ndarray")
    delta = xyz[pairs[:, 0]] - xyz[pairs[:, 1]]
    return pairs[(delta * delta).sum(axis=1) < round(radius * 1000) ** 2]


def contact_number(xyz, there, radius):
    index = np.flatnonzero(there)
    counts = np.full(len(there), np.nan)
    ends = near_pairs(xyz[index], radius).ravel()
    counts[index] = np.bincount(ends, minlength=len(index))
    return counts


def virtual_c_beta(model):
    """The C-betas, virtual ones where the residue has none, and which there are.

    CA - 0.58273431 a + 0.56802827 b - 0.54067466 c with b = CA - N, c = C - CA,
    a = b x c, what is added to CA rounded to the lattice half away from zero.
    """
    ca = model.xyz["ca"]
    b, c = (ca - model.xyz["n"]) / 1000, (model.xyz["c"] - ca) / 1000
    shift = -0.58273431 * np.cross(b, c) + 0.56802827 * b - 0.54067466 * c
    virtual = ca + np.sign(shift) * np.floor(np.abs(shift) * 1000 + 0.5)
    has = model.has
    real = has["cb"] & (model.parent != "GLY")
    there = real | (has["n"] & has["ca"] & has["c"])
    return np.where(real[:, None], model.xyz["cb"], virtual.astype(np.int64)), there


@oracle(
    package="scipy",
    rules=dict.fromkeys(
        [f"cn_ca_{r}" for r in CA_CUTOFFS] + [f"cn_cb_{r}" for r in CB_CUTOFFS], EXACT
    ),
)
def contact_numbers(model, _settings):
    """Other C-alphas, and C-betas, of the model nearer than R A; cKDTree."""
    ca, has_ca = model.xyz["ca"], model.has["ca"]
    cb, has_cb = virtual_c_beta(model)
    columns = {f"cn_ca_{r}": Values(contact_number(ca, has_ca, r)) for r in CA_CUTOFFS}
    return columns | {f"cn_cb_{r}": Values(contact_number(cb, has_cb, r)) for r in CB_CUTOFFS}


@oracle(rules={"wcn": Rule("relative", 1e-5)})
def weighted_contact_number(model, _settings):
    """The sum of 1/d^2 in A^-2 over the other C-alphas, d = 0 left out."""
    index = np.flatnonzero(model.has["ca"])
    values = np.full(len(model), np.nan)
    ca = model.xyz["ca"][index]
    for start in range(0, len(ca), 256):
        delta = ca[start : start + 256, None, :] - ca[None, :, :]
        square = (delta * delta).sum(axis=2).astype(float)
        square[square == 0] = np.inf
        values[index[start : start + 256]] = (1e6 / square).sum(axis=1)
    return {"wcn": Values(values)}


@oracle(table="structures", rules={"wcn_coincident": EXACT}, golden=False)
def coincident(model, _settings):
    """Pairs of C-alphas in one place."""
    places = model.xyz["ca"][model.has["ca"]]
    counts = np.unique(places, axis=0, return_counts=True)[1]
    return {"wcn_coincident": Values(np.array([(counts * (counts - 1) / 2).sum()]))}


@oracle(rules=dict.fromkeys(["smooth_b_ca", "smooth_plddt"], Rule("relative", 1e-5, 1e-5)))
def smoothed(model, _settings):
    """The mean B factor, or pLDDT, of the other C-alphas within 10 A."""
    index = np.flatnonzero(model.has["ca"])
    i, j = index[near_pairs(model.xyz["ca"][index], SMOOTH_RADIUS)].T
    i, j = np.concatenate([i, j]), np.concatenate([j, i])

    def mean(of):
        own, other = i[~np.isnan(of[j])], j[~np.isnan(of[j])]
        sums = np.bincount(own, of[other], minlength=len(model))
        counts = np.bincount(own, minlength=len(model))
        values = np.full(len(model), np.nan)
        return Values(np.divide(sums, counts, out=values, where=counts > 0))

    b, plddt = of_c_alphas_by_kind(model)
    return {"smooth_b_ca": mean(b), "smooth_plddt": mean(plddt)}


@once
def positions(model):
    """Where the residues are in the sequence, by row in chains without increasing positions."""
    found = np.arange(len(model), dtype=float)
    for _, rows in model.chains():
        own = model.position[rows]
        if not np.isnan(own).any() and (np.diff(own) > 0).all():
            found[rows] = own
    return found


def least_squares(model, pairs):
    """The smallest squared distance of an atom of one residue and one of the other, of each pair.

    In (0.001 A)^2, which double precision holds exactly.
    """
    atoms = model.residue_atoms
    most = max((len(own) for own in atoms), default=0)
    xyz = np.full((len(model), most, 3), np.nan)
    for row, own in enumerate(atoms):
        xyz[row, : len(own)] = model.atom_xyz[own]
    squares = np.zeros(len(pairs))
    for start in range(0, len(pairs), 2048):
        i, j = pairs[start : start + 2048].T
        delta = xyz[i][:, :, None, :] - xyz[j][:, None, :, :]
        squares[start : start + 2048] = np.nanmin((delta * delta).sum(axis=3), axis=(1, 2))
    return squares


def near_residues(model, cutoff):
    """Pairs (i, j), i < j, of residues with heavy atoms nearer than `cutoff` A; cKDTree."""
    atoms = np.flatnonzero(model.atom_residue >= 0)
    near = near_pairs(model.atom_xyz[atoms], cutoff)
    pairs = np.sort(model.atom_residue[atoms][near], axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)


def all_squares(model, xyz, there, rows):
    """Squared distances of some residues from all, infinite from those without a place; cdist.

    By the points `xyz`, or by the nearest heavy atoms without them.
    """
    from scipy.spatial.distance import cdist

    if xyz is not None:
        squares = cdist(xyz[rows].astype(float), xyz.astype(float), "sqeuclidean")
        squares[:, ~there] = np.inf
        return squares
    atoms = np.flatnonzero(model.atom_residue >= 0)
    atoms = atoms[np.argsort(model.atom_residue[atoms], kind="stable")]
    placed, firsts = np.unique(model.atom_residue[atoms], return_index=True)
    others = model.atom_xyz[atoms].astype(float)
    squares = np.full((len(rows), len(model)), np.inf)
    for at, row in enumerate(rows):
        own = model.atom_xyz[model.residue_atoms[row]].astype(float)
        least = cdist(own, others, "sqeuclidean").min(axis=0)
        squares[at, placed] = np.minimum.reduceat(least, firsts)
    return squares


def nearest_pairs(model, xyz, there, count, own_chain):
    """Pairs (i, j), j the nearest residues of i, by distance and then by index."""
    pairs = [np.zeros((0, 2), dtype=int)]
    for rows in np.array_split(np.flatnonzero(there), len(model) // 128 + 1):
        squares = all_squares(model, xyz, there, rows)
        squares[np.arange(len(rows)), rows] = np.inf
        if own_chain:
            squares[model.chain[rows][:, None] != model.chain[None, :]] = np.inf
        order = np.argsort(squares, axis=1, kind="stable")[:, :count]
        kept = np.isfinite(np.take_along_axis(squares, order, axis=1))
        first = np.broadcast_to(rows[:, None], order.shape)
        pairs.append(np.stack([first[kept], order[kept]], axis=1))
    return np.concatenate(pairs)


def angstrom(squares):
    return (np.sqrt(squares) / 1000).astype(np.float32).astype(float)


def pair_columns(model, names, pairs):
    """The columns of two residues that tables of pairs share."""
    i, j = pairs.T
    same, position = model.chain[i] == model.chain[j], positions(model)
    return {
        names[0]: i.astype(float),
        names[1]: j.astype(float),
        "same_chain": same.astype(float),
        "separation": np.where(same, position[j] - position[i], np.nan),
    }


@oracle(
    table="contacts",
    package="scipy",
    golden=False,
    rules=dict.fromkeys(
        ["res_index_i", "res_index_j", "distance", "min_distance", "same_chain", "separation"], EXACT
    ),
)
def contacts(model, settings):
    """Pairs of residues within the cutoff, or nearest residues, by C-alphas, C-betas or atoms."""
    atom, cutoff, nearest = (settings.contacts[key] for key in ("atom", "cutoff", "nearest"))
    own_chain = settings.contacts["chains"] == "own"
    if atom == "none":
        return {}
    if atom == "any":
        xyz, there = None, np.array([len(own) > 0 for own in model.residue_atoms], dtype=bool)
    elif atom == "ca":
        xyz, there = model.xyz["ca"], model.has["ca"]
    else:
        xyz, there = virtual_c_beta(model)
    if nearest:
        pairs = nearest_pairs(model, xyz, there, nearest, own_chain)
    elif atom == "any":
        pairs = near_residues(model, cutoff)
    else:
        rows = np.flatnonzero(there)
        pairs = np.sort(rows[near_pairs(xyz[rows], cutoff)], axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    if own_chain:
        pairs = pairs[model.chain[pairs[:, 0]] == model.chain[pairs[:, 1]]]
    squares = least_squares(model, pairs)
    columns = pair_columns(model, ("res_index_i", "res_index_j"), pairs)
    columns["min_distance"] = columns["distance"] = angstrom(squares)
    if atom != "any":
        delta = xyz[pairs[:, 0]] - xyz[pairs[:, 1]]
        columns["distance"] = angstrom((delta * delta).sum(axis=1))
    return {name: Values(values) for name, values in columns.items()}
