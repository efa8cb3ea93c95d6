"""B factors, their z-scores, and pLDDT."""

import numpy as np

from reference import Rule, Values, oracle

CLOSE = Rule("relative", 1e-5, 1e-5)


def z_scores(values, chains):
    """Scores within each chain, population deviation; NaN where that is 0."""
    scores = np.full(len(values), np.nan)
    for _, rows in chains:
        rows = rows[~np.isnan(values[rows])]
        if len(rows) and np.ptp(values[rows]) > 0:
            scores[rows] = (values[rows] - values[rows].mean()) / values[rows].std()
    return scores


def of_c_alphas(model):
    """The B column of each residue's C-alpha: the atom of the residue at its place."""
    values = np.full(len(model), np.nan)
    ca = np.where(model.has["ca"][:, None], model.xyz["ca"], np.iinfo(np.int64).max)
    rows = np.flatnonzero(model.atom_residue >= 0)
    at = rows[np.all(model.atom_xyz[rows] == ca[model.atom_residue[rows]], axis=1)]
    # Backwards, so that of atoms at one place the first stays.
    values[model.atom_residue[at][::-1]] = model.atom_b[at][::-1]
    return values


def of_c_alphas_by_kind(model):
    """The B factors and the pLDDT of the C-alphas, one of them null; fractions times 100."""
    values = of_c_alphas(model)
    nothing = np.full(len(model), np.nan)
    if not model.predicted:
        return values, nothing
    of_rows = model.atom_b[model.atom_residue >= 0]
    scale = 100 if len(of_rows) and np.nanmax(of_rows) <= 1 else 1
    return nothing, values * scale


@oracle(rules={"b_ca": CLOSE, "b_mean": CLOSE, "b_z": CLOSE, "plddt": CLOSE})
def b_factors(model, _settings):
    """Null in predicted models, where the column is pLDDT."""
    nothing = np.full(len(model), np.nan)
    b = model.atom_b
    ca, plddt = of_c_alphas_by_kind(model)
    if model.predicted:
        columns = {"b_ca": nothing, "b_mean": nothing, "b_z": nothing}
    else:
        there = ~np.isnan(b)
        sums = model.per_residue(np.where(there, b, 0))
        counts = model.per_residue(there.astype(float))
        mean = np.divide(sums, counts, out=nothing.copy(), where=counts > 0)
        columns = {"b_ca": ca, "b_mean": mean, "b_z": z_scores(ca, model.chains())}
    columns["plddt"] = plddt
    return {name: Values(values) for name, values in columns.items()}
