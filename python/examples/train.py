"""Trains a small graph network that predicts which residues are buried from sequence and contacts.

    python train.py STRUCTURE ...

Buried is a relative solvent-accessible area (``rsa``) below 0.25. Each fourth structure is held out.
Related structures may be on both sides, so divide a set of your own by clusters of sequences. The
same files give the same figures on one machine. It needs what ``graphs.py`` needs.
"""

from __future__ import annotations

import sys

import torch
from graphs import Graphs
from torch.nn import functional
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv

BURIED_BELOW = 0.25
EPOCHS = 40
SEED = 7


class Network(torch.nn.Module):
    """Two rounds of sums over neighbours, weighted by 4 A over the distance. Returns logits of shape
    ``[nodes]``."""

    def __init__(self, features: int, width: int = 48) -> None:
        super().__init__()
        self.first = GraphConv(features, width)
        self.second = GraphConv(width, width)
        self.last = torch.nn.Linear(width, 1)

    def forward(self, batch: Batch) -> torch.Tensor:
        weight = 4 / batch.edge_attr[:, 0].clamp(min=1)
        x = functional.relu(self.first(batch.x, batch.edge_index, weight))
        x = functional.relu(self.second(x, batch.edge_index, weight))
        return self.last(x).squeeze(1)


def evaluated(network: Network, batch: Batch) -> tuple[torch.Tensor, float]:
    """The loss, and the share of residues that are predicted right, of those with an area."""
    has_area = ~batch.rsa.isnan()
    is_buried = (batch.rsa < BURIED_BELOW)[has_area]
    logits = network(batch)[has_area]
    loss = functional.binary_cross_entropy_with_logits(logits, is_buried.float())
    return loss, ((logits > 0) == is_buried).float().mean().item()


def main(paths: list[str]) -> None:
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    # Batches are too small for several threads, and sums depend on their number.
    torch.set_num_threads(1)
    data = list(Graphs(paths, features=["rsa"], columns=["rsa"]))
    held_out = Batch.from_data_list(data[::4])
    train = [graph for place, graph in enumerate(data) if place % 4]
    loader = DataLoader(train, batch_size=4, shuffle=True)
    network = Network(data[0].num_node_features)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for epoch in range(1, EPOCHS + 1):
        network.train()
        losses = []
        for batch in loader:
            loss, _ = evaluated(network, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        network.eval()
        with torch.no_grad():
            _, right = evaluated(network, held_out)
        if epoch == 1 or epoch % 10 == 0:
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch:2}: loss {mean:.3f}, held out {right:.3f} right")
    areas = held_out.rsa[~held_out.rsa.isnan()]
    share = (areas < BURIED_BELOW).float().mean().item()
    print(f"the more frequent answer alone: {max(share, 1 - share):.3f} right")


if __name__ == "__main__":
    main(sys.argv[1:])
