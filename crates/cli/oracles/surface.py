"""Solvent-accessible surface, relative and smoothed."""

import numpy as np

from reference import Rule, Values, oracle
from tables import digest

PROBE = 1.4
# Theoretical maxima in A^2 of Tien et al. 2013, PLoS ONE 8:e80635, table 1.
MAXIMA = {
    "ALA": 129, "ARG": 274, "ASN": 195, "ASP": 193, "CYS": 167, "GLN": 225, "GLU": 223,
    "GLY": 104, "HIS": 224, "ILE": 197, "LEU": 201, "LYS": 236, "MET": 224, "PHE": 240,
    "PRO": 159, "SER": 155, "THR": 172, "TRP": 285, "TYR": 263, "VAL": 174, "MSE": 224,
}  # fmt: skip
WINDOW = 25


def freesasa_areas(xyz, radii, points, slices=None):
    """Areas of atoms in A^2, where FreeSASA cannot tell by what they should be.

    By Shrake and Rupley with so many points, or by Lee and Richards with so many slices.

    For atoms with no neighbour it reads beyond an empty list: they get the whole
    sphere. Of atoms of one radius at one place, each has the others' surface for
    its own, and rounding decides: the first is given, the others get no area.
    """
    _, first = np.unique(np.column_stack([xyz, radii]), axis=0, return_index=True)
    if len(first) < len(xyz):
        first, areas = np.sort(first), np.zeros(len(xyz))
        areas[first] = freesasa_areas(xyz[first], radii[first], points, slices)
        return areas

    import freesasa
    from scipy.spatial import cKDTree

    freesasa.setVerbosity(freesasa.nowarnings)
    xyz, reach = xyz / 1000, radii / 1000 + PROBE
    areas = 4 * np.pi * reach * reach
    near = cKDTree(xyz).query_pairs(2 * reach.max(), output_type="ndarray")
    delta = xyz[near[:, 0]] - xyz[near[:, 1]]
    sums = reach[near[:, 0]] + reach[near[:, 1]]
    near = near[(delta * delta).sum(axis=1) < sums * sums]
    known = np.bincount(near.ravel(), minlength=len(xyz)) > 0
    if known.any():
        settings = {"probe-radius": PROBE, "n-threads": 1}
        if slices is None:
            settings |= {"algorithm": freesasa.ShrakeRupley, "n-points": points}
        else:
            settings |= {"algorithm": freesasa.LeeRichards, "n-slices": slices}
        parameters = freesasa.Parameters(settings)
        found = freesasa.calcCoord(xyz[known].ravel(), radii[known] / 1000, parameters)
        areas[known] = [found.atomArea(i) for i in range(int(known.sum()))]
    return areas


def about_one_point(settings):
    """The largest difference of a residue's area in A^2: about one test point, and less by slices."""
    if settings.slices is not None:
        return Rule("absolute", 0.1)
    return Rule("absolute", {100: 1.5, 256: 0.6, 960: 0.15}.get(settings.points, 150 / settings.points))


def points_and_classes(settings, model):
    return settings.points, settings.slices, digest(model.atom_radius, model.atom_side, model.atom_polar)


@oracle(
    package="freesasa",
    slow=True,
    depends=points_and_classes,
    rules=dict.fromkeys(["sasa", "sasa_side", "sasa_polar", "sasa_delta"], about_one_point),
)
def surface(model, settings):
    """calcCoord, over all atoms of the model; alone: of the chain."""
    areas = freesasa_areas(model.atom_xyz, model.atom_radius, settings.points, settings.slices)
    alone = areas.copy()
    chains = np.unique(model.atom_chain)
    if len(chains) > 1:
        for chain in chains:
            own = model.atom_chain == chain
            xyz, radii = model.atom_xyz[own], model.atom_radius[own]
            alone[own] = freesasa_areas(xyz, radii, settings.points, settings.slices)
    return {
        "sasa": Values(model.per_residue(areas)),
        "sasa_side": Values(model.per_residue(areas * model.atom_side)),
        "sasa_polar": Values(model.per_residue(areas * model.atom_polar)),
        "sasa_delta": Values(model.per_residue(alone - areas)),
    }


def reflected_mean(values):
    """Means over a centred window, of the array as np.pad(mode="reflect") continues it."""
    half = WINDOW // 2
    padded = np.pad(values, half, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    there = ~np.isnan(windows)
    sums, counts = np.where(there, windows, 0).sum(axis=1), there.sum(axis=1)
    return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)


@oracle(of_run=True, rules=dict.fromkeys(["rsa", "rsa_w25"], Rule("relative", 1e-6, 1e-6)))
def relative_surface(model, _settings, given):
    """The run's area over the theoretical maximum of the residue, and its mean."""
    maxima = np.array([MAXIMA.get(comp, np.nan) for comp in model.comp], dtype=float)
    columns = {}
    if "sasa" in given:
        columns["rsa"] = Values(given["sasa"] / maxima)
    rsa = given.get("rsa", columns["rsa"].values if columns else None)
    if rsa is not None:
        smooth = np.full(len(model), np.nan)
        for _, rows in model.chains():
            smooth[rows] = reflected_mean(rsa[rows])
        columns["rsa_w25"] = Values(smooth)
    return columns
