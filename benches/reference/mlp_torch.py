#!/usr/bin/env python3
"""Compares `crates/engine/examples/mlp.rs` with PyTorch's graph of the same network, in turns.

    python3 mlp_torch.py target/release/examples/mlp [--batches N] [--turns N]

A batch of PyTorch is one launch of a CUDA graph (upload, three products, two relu, download)
and a wait, after its input was copied into pinned memory. The example prints the same: the
median time of its batches from the submission of a filled slot until it is found done.
"""

import argparse
import re
import statistics
import subprocess
import time

import torch

WIDTHS = [784, 1024, 1024, 10]
ITEMS = 256


def graph_of_network():
    """The pinned input, the graph of a batch, and its stream."""
    weights = [torch.randn(a, b, device="cuda") / a**0.5 for a, b in zip(WIDTHS, WIDTHS[1:])]
    pinned = [torch.empty(ITEMS, width, pin_memory=True) for width in (WIDTHS[0], WIDTHS[-1])]
    x = torch.empty(ITEMS, WIDTHS[0], device="cuda")

    def batch():
        x.copy_(pinned[0], non_blocking=True)
        y = x
        for layer, weight in enumerate(weights):
            y = y @ weight
            if layer < 2:
                y.relu_()
        pinned[1].copy_(y, non_blocking=True)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            batch()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        batch()
    return pinned[0], graph, stream


def time_torch(source, pinned, graph, stream, batches):
    """The median time of a batch in microseconds."""
    times = []
    with torch.cuda.stream(stream):
        for _ in range(batches):
            pinned.copy_(source)
            start = time.perf_counter()
            graph.replay()
            stream.synchronize()
            times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def time_example(program, batches):
    said = subprocess.run([program, str(batches), "1"], check=True, capture_output=True, text=True)
    return float(re.search(r"each ([0-9.]+) us", said.stdout).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the example mlp")
    parser.add_argument("--batches", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    pinned, graph, stream = graph_of_network()
    source = torch.rand(ITEMS, WIDTHS[0])
    ratios = []
    for turn in range(arguments.turns):
        by_torch = time_torch(source, pinned, graph, stream, arguments.batches)
        by_example = time_example(arguments.program, arguments.batches)
        ratios.append(by_example / by_torch)
        print(f"turn {turn + 1}: PyTorch {by_torch:.1f} us, example {by_example:.1f} us, ratio {ratios[-1]:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f} on {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
