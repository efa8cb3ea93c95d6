"""The examples of graphs. Their arrays need NumPy alone; the others need PyTorch Geometric."""

import re
import sys
from pathlib import Path

import numpy
import pytest
import pytapeloop

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from graph_arrays import AMINO_ACIDS, EDGE_FEATURES, NODE_FEATURES, graph_arrays, graphs

CPU = {"backend": "cpu"}


def test_arrays_of_a_graph():
    nan = numpy.nan
    residues = {
        "res_index": numpy.array([0, 2, 5]),
        "aa": numpy.array(["C", "Z", "A"], object),
        "phi": numpy.array([nan, 90.0, 180.0]),
        "psi": numpy.array([-90.0, 0.0, nan]),
    }
    contacts = {
        "res_index_i": numpy.array([0, 2, 0]),
        "res_index_j": numpy.array([2, 5, 5]),
        "distance": numpy.array([3.8, 5.0, 7.5]),
        "separation": numpy.array([1.0, nan, 40.0]),
        "same_chain": numpy.array([True, False, True]),
    }
    graph = graph_arrays(residues, contacts)
    assert graph["edge_index"].tolist() == [[0, 1, 0, 1, 2, 2], [1, 2, 2, 0, 1, 0]]
    along = [[3.8, 1, 1], [5, 0, 0], [7.5, 32, 1]]
    back = [[3.8, -1, 1], [5, 0, 0], [7.5, -32, 1]]
    assert numpy.allclose(graph["edge_attr"], along + back)
    x = graph["x"]
    assert x.shape == (3, len(NODE_FEATURES)) and len(EDGE_FEATURES) == 3
    letters = [AMINO_ACIDS[row.argmax()] for row in x[:, : len(AMINO_ACIDS)]]
    assert letters == ["C", "X", "A"] and (x[:, : len(AMINO_ACIDS)].sum(axis=1) == 1).all()
    circle = [[0, 0, -1, 0], [1, 0, 0, 1], [0, -1, 0, 0]]
    assert numpy.allclose(x[:, len(AMINO_ACIDS) :], circle, atol=1e-6)
    assert (x.dtype, graph["edge_index"].dtype) == (numpy.float32, numpy.int64)
    assert graph["edge_attr"].dtype == numpy.float32


def test_graphs_of_files_have_both_directions_of_their_contacts(samples):
    # The peptide in the middle has no pair within 3 A.
    paths = [str(samples / name) for name in ("1a8o.pdb", "1yjp.cif", "1bd2.pdb.gz")]
    for cutoff in (8.0, 3.9, 3.0):
        found = dict(graphs(paths, cutoff, ["b_factor"], ["b_ca", "phi", "aa"], at_once=2, **CPU))
        assert list(found) == paths
        for path, graph in found.items():
            contacts = {"atom": "ca", "cutoff": cutoff}
            names = ["torsions", "b_factor", "contacts"]
            tables = pytapeloop.tables(
                path, names, names=["residues", "contacts"], contacts=contacts, **CPU
            )
            pairs = tables["contacts"].to_arrow()
            rows = tables["residues"].to_arrow()
            source, target = graph["edge_index"]
            edges = set(zip(source.tolist(), target.tolist()))
            ends = (pairs["res_index_i"].to_pylist(), pairs["res_index_j"].to_pylist())
            assert edges == set(zip(*ends)) | set(zip(*reversed(ends)))
            assert len(source) == len(edges) == len(graph["edge_attr"]) == 2 * len(pairs)
            assert len(graph["x"]) == len(rows)
            for name in ("b_ca", "phi"):
                assert numpy.array_equal(graph[name], rows[name].to_numpy(), equal_nan=True)
            assert graph["aa"].tolist() == rows["aa"].to_pylist()


def test_models_of_a_file_are_graphs_of_their_own(samples):
    path = str(samples / "1lcd.pdb.gz")
    found = list(graphs([path], models="all", **CPU))
    assert len(found) == 3
    assert len({graph["x"].shape for _, graph in found}) == 1
    assert len({graph["edge_index"].tobytes() for _, graph in found}) == 3


def torch_geometric():
    reason = "PyTorch Geometric is not installed"
    return pytest.importorskip("torch_geometric", reason=reason)


def test_a_data_loader_takes_the_graphs(samples):
    torch_geometric()
    from graphs import Graphs
    from torch_geometric.loader import DataLoader
    from torch_geometric.utils import is_undirected

    paths = [str(samples / name) for name in ("1a8o.pdb", "1ubi.pdb", "1yjp.cif", "5pti.cif.gz")]
    alone = {data.path: data for data in Graphs(paths, **CPU)}
    assert list(alone) == paths
    for workers in (0, 2):
        loader = DataLoader(Graphs(paths, **CPU), batch_size=2, num_workers=workers)
        batches = list(loader)
        found = [data for batch in batches for data in batch.to_data_list()]
        assert len(batches) == 2 and {data.path for data in found} == set(paths)
        for data in found:
            data.validate()
            assert is_undirected(data.edge_index)
            for name in ("x", "edge_index", "edge_attr"):
                assert data[name].equal(alone[data.path][name]), name


def test_training_brings_the_loss_down_and_is_repeatable(samples, capsys):
    torch_geometric()
    import train

    paths = sorted(str(it) for it in samples.iterdir() if re.search(r"\.(pdb|cif)(\.gz)?$", it.name))
    train.main(paths)
    first = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"loss (\S+),", first)]
    assert losses[-1] < 0.6 * losses[0]
    *_, held_out, frequent = map(float, re.findall(r"(\S+) right", first))
    assert held_out > frequent + 0.05
    train.main(paths)
    assert capsys.readouterr().out == first
