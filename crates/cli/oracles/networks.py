"""Measures on contact graphs: centrality, clusters, contact order."""

import warnings

import numpy as np

from contacts import near_pairs, positions
from reference import EXACT, Rule, Values, oracle
from tables import once

CUTOFF, ORDER_CUTOFF = 8, 6  # A
GAP = 1e-6  # two eigenvalues that differ by less of the larger are the same
DENSE = 1000  # the largest matrix of which all elements are stored
CLOSE = Rule("absolute", 1e-4)


def chain_graph(model, rows):
    """The rows of a chain that have a C-alpha, and their adjacency matrix."""
    from scipy.sparse import csr_array

    nodes = rows[model.has["ca"][rows]]
    pairs = near_pairs(model.xyz["ca"][nodes], CUTOFF)
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    shape = (len(nodes), len(nodes))
    return nodes, csr_array((np.ones(len(i)), (i, j)), shape=shape)


def principal(adjacency):
    """The eigenvector of the largest eigenvalue, and by how much of it the next one differs."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    count = adjacency.shape[0]
    if count == 1:
        return np.ones(1), np.inf
    if count <= DENSE:
        values, vectors = eigh(adjacency.toarray(), subset_by_index=[count - 2, count - 1])
    else:
        start = np.random.default_rng(0).random(count)
        values, vectors = eigsh(adjacency, k=4, which="LA", v0=start)
    order = np.argsort(values)
    values, vector = values[order], vectors[:, order[-1]]
    gap = (values[-1] - values[-2]) / values[-1] if values[-1] > 0 else 0.0
    return np.abs(vector), gap


@once
def eigenvectors(model):
    """Of each residue, the component of its chain's eigenvector, and the chain's gap."""
    values, gaps = np.full(len(model), np.nan), np.full(len(model), np.nan)
    for _, rows in model.chains():
        nodes, adjacency = chain_graph(model, rows)
        if len(nodes):
            values[nodes], gaps[nodes] = principal(adjacency)
    return values, gaps


@oracle(package="scipy", rules={"eigenvector": CLOSE})
def eigenvector(model, _settings):
    """SciPy's eigh and, for long chains, eigsh; null where two eigenvalues are the same."""
    values, gaps = eigenvectors(model)
    values = np.where(gaps < GAP, np.nan, values)
    # Rounding decides next to the limit.
    return {"eigenvector": Values(values, optional=(gaps >= GAP) & (gaps < 1.01 * GAP))}


@oracle(package="networkx", slow=True, rules={"eigenvector": CLOSE})
def eigenvector_of_networkx(model, _settings):
    """eigenvector_centrality_numpy, of connected graphs."""
    import networkx

    values = np.full(len(model), np.nan)
    same, parted = np.zeros(len(model), dtype=bool), np.zeros(len(model), dtype=bool)
    _, gaps = eigenvectors(model)
    for _, rows in model.chains():
        nodes, adjacency = chain_graph(model, rows)
        graph = networkx.from_scipy_sparse_array(adjacency)
        if len(nodes) < 3 or not networkx.is_connected(graph):
            parted[nodes] = True
        elif gaps[nodes[0]] < 1.01 * GAP:
            same[nodes] = True
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = networkx.eigenvector_centrality_numpy(graph)
            values[nodes] = [found[node] for node in range(len(nodes))]
    excluded = {
        "two largest eigenvalues the same": same,
        "graph in parts, or of one or two residues": parted,
    }
    return {"eigenvector": Values(values, excluded)}


def clusters_of(model, chosen):
    """The connected component of each chosen residue's C-alpha, -1 for the others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    labels = np.full(len(model), -1)
    nodes = np.flatnonzero(chosen & model.has["ca"])
    if len(nodes):
        i, j = near_pairs(model.xyz["ca"][nodes], CUTOFF).T
        shape = (len(nodes), len(nodes))
        graph = coo_array((np.ones(len(i)), (i, j)), shape=shape)
        labels[nodes] = connected_components(graph, directed=False)[1]
    return labels


def selected(model, names):
    """Residues of a one-letter code, or of a name, their own or their parent's."""
    chosen = np.zeros(len(model), dtype=bool)
    for name in names:
        if len(name) == 1:
            chosen |= model.aa == name
        else:
            chosen |= (model.comp == name) | (model.parent == name)
    return chosen


@oracle(package="scipy", rules={"cluster": EXACT})
def cluster(model, settings):
    """Components of the selected residues, numbered by the first of each."""
    if not settings.select:
        return {}
    labels = clusters_of(model, selected(model, settings.select)).astype(float)
    # SciPy numbers components in the order of their first nodes.
    return {"cluster": Values(np.where(labels < 0, np.nan, labels))}


def contact_orders(model):
    """Of each residue, sum of differences and number of its atom-pair contacts."""
    position = positions(model)
    of_rows = model.atom_residue >= 0
    residue, chain = model.atom_residue[of_rows], model.atom_chain[of_rows]
    sums, counts = np.zeros(len(model)), np.zeros(len(model))
    pairs = near_pairs(model.atom_xyz[of_rows], ORDER_CUTOFF)
    i, j = residue[pairs].T
    kept = (i != j) & (chain[pairs[:, 0]] == chain[pairs[:, 1]])
    i, j = i[kept], j[kept]
    for end in (i, j):
        apart = np.abs(position[i] - position[j])
        sums += np.bincount(end, apart, minlength=len(model))
        counts += np.bincount(end, minlength=len(model))
    return sums, counts


@oracle(package="scipy", rules={"co": Rule("relative", 1e-6)})
def contact_order(model, _settings):
    """Mean difference in sequence over heavy-atom contacts in the chain; cKDTree."""
    sums, counts = contact_orders(model)
    values = np.full(len(model), np.nan)
    return {"co": Values(np.divide(sums, counts, out=values, where=counts > 0))}
