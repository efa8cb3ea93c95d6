"""Contacts with other chains, and protrusion."""

import numpy as np

from contacts import near_pairs
from reference import EXACT, Rule, Values, oracle
from tables import once

REACH, CONTACT = 12.0, 5.0  # A
SPHERE, ATOM_VOLUME = 10.0, 20.1  # A, A^3 (Pintar et al. 2002)


def nearest_of_another_chain(model):
    """Of each atom the squared distance in 1e-6 A^2 and the chain, exactly.

    Infinity and -1 where no other chain is within reach.
    """
    from scipy.spatial import cKDTree

    count = len(model.atom_xyz)
    lowest, which = np.full(count, np.inf), np.full(count, -1)
    chains = np.unique(model.atom_chain)
    if len(chains) < 2:
        return lowest, which
    xyz = model.atom_xyz / 1000
    for chain in chains:
        theirs = np.flatnonzero(model.atom_chain == chain)
        others = np.flatnonzero(model.atom_chain != chain)
        tree = cKDTree(xyz[theirs])
        distance, _ = tree.query(xyz[others], distance_upper_bound=REACH + 0.01)
        close = np.isfinite(distance)
        # All atoms as near as the nearest, within rounding: the lattice decides.
        balls = tree.query_ball_point(xyz[others[close]], distance[close] + 1e-6)
        for atom, ball in zip(others[close], balls, strict=True):
            delta = model.atom_xyz[theirs[ball]] - model.atom_xyz[atom]
            square = (delta * delta).sum(axis=1).min()
            # Chains come in order: of equals the first stays.
            if square < lowest[atom]:
                lowest[atom], which[atom] = square, chain
    return lowest, which


@once
def nearest(model):
    """Of each residue the squared distance in 1e-6 A^2 and the chain of that atom.

    Infinity and -1 where no other chain is within reach.
    """
    lowest, which = nearest_of_another_chain(model)
    squares, chain = np.full(len(model), np.inf), np.full(len(model), -1)
    of_rows = np.flatnonzero(model.atom_residue >= 0)
    order = of_rows[np.lexsort((which[of_rows], lowest[of_rows], model.atom_residue[of_rows]))]
    residue, first = np.unique(model.atom_residue[order], return_index=True)
    squares[residue], chain[residue] = lowest[order[first]], which[order[first]]
    chain[squares >= (REACH * 1000) ** 2] = -1
    return squares, chain


@oracle(package="scipy", rules={"iface_dmin": Rule("relative", 1e-6), "iface": EXACT})
def interface(model, _settings):
    """The nearest heavy atom of another chain; cKDTree."""
    squares, chain = nearest(model)
    return {
        "iface_dmin": Values(np.where(chain >= 0, np.sqrt(squares) / 1000, np.nan)),
        "iface": Values((squares < (CONTACT * 1000) ** 2).astype(float)),
    }


@oracle(package="scipy", rules={"iface_chain": EXACT}, of_run=True)
def interface_chain(model, _settings, given):
    """The author's name of that atom's chain, as the rows of the run give it."""
    _, chain = nearest(model)
    named = given.get("auth_asym_id", model.chain_id)
    names = dict(zip(model.chain.tolist(), named.tolist(), strict=True))
    text = np.array([names.get(number) for number in chain.tolist()], dtype=object)
    unnamed = (chain >= 0) & np.array([name is None for name in text], dtype=bool)
    return {"iface_chain": Values(text, {"a chain without rows, whose name is unknown": unnamed})}


@oracle(rules={"cx_mean": Rule("relative", 1e-5, 1e-5), "cx_max": Rule("relative", 1e-5, 1e-5)})
def protrusion(model, _settings):
    """(V - n V_a) / (n V_a), n heavy atoms of the model within 10 A, itself included."""
    ends = near_pairs(model.atom_xyz, SPHERE).ravel()
    filled = (1 + np.bincount(ends, minlength=len(model.atom_xyz))) * ATOM_VOLUME
    cx = (4 / 3 * np.pi * SPHERE**3 - filled) / filled
    counts = model.per_residue(np.ones(len(cx)))
    highest = np.full(len(model), -np.inf)
    of_rows = model.atom_residue >= 0
    np.maximum.at(highest, model.atom_residue[of_rows], cx[of_rows])
    with np.errstate(all="ignore"):
        mean = np.where(counts > 0, model.per_residue(cx) / counts, np.nan)
    highest[counts == 0] = np.nan
    return {"cx_mean": Values(mean), "cx_max": Values(highest)}
