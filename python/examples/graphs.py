"""Streams graphs of protein structures into a PyTorch Geometric ``DataLoader``.

    python graphs.py STRUCTURE ...

prints the shapes of its batches. It needs ``torch``, ``torch_geometric``, ``numpy`` and ``pyarrow``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from graph_arrays import graphs
from torch.utils.data import IterableDataset, get_worker_info
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader


class Graphs(IterableDataset):  # type: ignore[type-arg]
    """The graphs of files, in the order of the paths. Workers of a ``DataLoader`` share the paths.

    Args:
        paths: Paths of files, each once.
        options: What ``graph_arrays.graphs`` takes besides them.
    """

    def __init__(self, paths: Sequence[str], **options: Any) -> None:
        self.paths = list(paths)
        self.options = options

    def __iter__(self) -> Iterator[Data]:
        # The engine is made here, in the worker: one that was made before a fork is refused.
        worker = get_worker_info()
        paths = self.paths[worker.id :: worker.num_workers] if worker else self.paths
        for path, arrays in graphs(paths, **self.options):
            # The arrays of columns are views of memory that is not writable.
            tensors = {name: torch.tensor(array) for name, array in arrays.items()}
            yield Data(path=path, **tensors)


if __name__ == "__main__":
    loader = DataLoader(Graphs(sys.argv[1:], at_once=4), batch_size=4, num_workers=2)
    for batch in loader:
        x, edges = list(batch.x.shape), list(batch.edge_index.shape)
        print(f"{batch.num_graphs} graphs: x {x}, edge_index {edges}")
