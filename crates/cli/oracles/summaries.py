"""Chains and structures: the same quantities over their rows."""

import numpy as np

from networks import contact_orders
from reference import EXACT, Rule, Values, oracle

CLOSE = Rule("relative", 1e-5, 1e-6)
FRACTIONS = {"helix_fraction": "H", "strand_fraction": "E", "coil_fraction": "C"}
COUNTS = dict.fromkeys(["residues", "breaks"], EXACT)
FROM_ATOMS = COUNTS | dict.fromkeys(["rg", "co_relative"], CLOSE)
OF_RUN = dict.fromkeys([*FRACTIONS, "sasa_total", "plddt_mean"], CLOSE) | {"clusters": EXACT}


def radius_of_gyration(xyz):
    """Root mean square distance from the centroid in A, unweighted."""
    if not len(xyz):
        return np.nan
    centred = xyz / 1000 - (xyz / 1000).mean(axis=0)
    return np.sqrt((centred * centred).sum(axis=1).mean())


def breaks(model, rows):
    """Rows not linked to the row before them, where that is of the same chain.

    A chain that goes on after another one in the file is not broken there.
    """
    later = rows[rows > 0]
    later = later[model.chain[later] == model.chain[later - 1]]
    return float(model.break_before[later].sum())


def relative_contact_order(model):
    """A function of rows: the mean difference over their contacts, over their number."""
    sums, counts = contact_orders(model)

    def function(rows):
        contacts = counts[rows].sum()
        return sums[rows].sum() / contacts / len(rows) if contacts else np.nan

    return function


def table(rows_of_each, functions):
    """{column: Values}, one value for each set of rows."""
    return {
        name: Values(np.array([function(rows) for rows in rows_of_each], dtype=float))
        for name, function in functions.items()
    }


def distinct(values):
    return np.unique(values[~np.isnan(values)])


def mean(values):
    values = values[~np.isnan(values)]
    return values.mean() if len(values) else np.nan


def total(values):
    values = values[~np.isnan(values)]
    return values.sum() if len(values) else np.nan


def from_run(given):
    """Functions of rows, of the columns that the run has."""

    def fraction(letter):
        def function(rows):
            known = [x for x in given["ss3"][rows] if x is not None]
            return known.count(letter) / len(known) if known else np.nan

        return function

    functions = {}
    if "ss3" in given:
        functions |= {name: fraction(letter) for name, letter in FRACTIONS.items()}
    if "sasa" in given:
        functions["sasa_total"] = lambda rows: total(given["sasa"][rows])
    if "plddt" in given:
        functions["plddt_mean"] = lambda rows: mean(given["plddt"][rows])
    if "cluster" in given:
        functions["clusters"] = lambda rows: len(distinct(given["cluster"][rows]))
    return functions


def chain_rows(model):
    return [rows for _, rows in model.chains()]


@oracle(table="chains", rules=FROM_ATOMS | {"eigenvector_residual": Rule("absolute", 2e-5)})
def chains(model, _settings):
    """Of each chain; rg over all its selected atoms."""
    of_chain = {int(rows[0]): model.atom_chain == chain for chain, rows in model.chains()}

    def residual(rows):
        return 0.0 if model.has["ca"][rows].any() else np.nan

    functions = {
        "residues": len,
        "breaks": lambda rows: breaks(model, rows),
        "rg": lambda rows: radius_of_gyration(model.atom_xyz[of_chain[int(rows[0])]]),
        "co_relative": relative_contact_order(model),
        "eigenvector_residual": residual,
    }
    return table(chain_rows(model), functions)


@oracle(table="chains", rules={"sequence": EXACT}, golden=False)
def sequences(model, _settings):
    """The one-letter codes of each chain's rows."""
    letters = ["".join(model.aa[rows]) for rows in chain_rows(model)]
    return {"sequence": Values(np.array(letters, dtype=object))}


@oracle(table="chains", rules=OF_RUN, of_run=True)
def chains_from_rows(model, _settings, given):
    """What the run's own residues say of each chain."""
    return table(chain_rows(model), from_run(given))


STRUCTURE = FROM_ATOMS | dict.fromkeys(["atoms", "chains"], EXACT) | {"rg_ca": CLOSE}


@oracle(table="structures", rules=STRUCTURE)
def structures(model, _settings):
    """Of the model; rg over all selected atoms, rg_ca over C-alphas."""
    functions = {
        "residues": len,
        "atoms": lambda _: len(model.atom_xyz),
        "chains": lambda rows: len(set(model.chain[rows])),
        "breaks": lambda rows: breaks(model, rows),
        "rg": lambda _: radius_of_gyration(model.atom_xyz),
        "rg_ca": lambda _: radius_of_gyration(model.xyz["ca"][model.has["ca"]]),
        "co_relative": relative_contact_order(model),
    }
    return table([np.arange(len(model))], functions)


@oracle(table="structures", rules=OF_RUN, of_run=True)
def structures_from_rows(model, _settings, given):
    """What the run's own residues say of the model."""
    return table([np.arange(len(model))], from_run(given))
