#!/usr/bin/env python3
"""The work of benches/replay in PyTorch: four slots on four streams, eager and as
CUDA graphs. Prints one line of JSON for each case, and fails on a wrong output.

    python3 torch_loop.py [--reps N] [--millis N] [--samples N]
"""

import argparse
import json
import statistics
import sys
import time

import torch

N = 4096
KERNELS = 12
SLOTS = 4


def factor(k):
    return 2.0 if k % 2 == 0 else 0.5


class Slot:
    """One slot: pinned memory, device memory, a stream, and the graph of a batch."""

    def __init__(self, index):
        values = [float((i * 7 + index * 13) % 1021) for i in range(N)]
        self.input = torch.tensor(values, dtype=torch.float32)
        self.output = torch.empty(N, dtype=torch.float32)
        self.expected = self.input.clone()
        for k in range(KERNELS):
            self.expected = self.expected * factor(k) + 1.0
        self.x_host = self.input.clone().pin_memory()
        self.y_host = torch.zeros(N, dtype=torch.float32).pin_memory()
        self.x, self.y, *self.scratch = (
            torch.zeros(N, dtype=torch.float32, device="cuda") for _ in range(4)
        )
        self.ones = torch.ones(N, dtype=torch.float32, device="cuda")
        self.stream = torch.cuda.Stream()
        self.done = torch.cuda.Event()
        self.busy = False
        # The memory above was made on another stream.
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.batch()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.batch()
        self.kernels = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.kernels, stream=self.stream):
            self.chain()
        torch.cuda.synchronize()

    def batch(self):
        """Both copies, and the kernels between."""
        self.x.copy_(self.x_host, non_blocking=True)
        self.chain()
        self.y_host.copy_(self.y, non_blocking=True)

    def chain(self):
        """A kernel for each operation."""
        value = self.x
        for k in range(KERNELS):
            out = self.y if k + 1 == KERNELS else self.scratch[k % 2]
            torch.add(self.ones, value, alpha=factor(k), out=out)
            value = out

    def submit(self, mode):
        if mode == "documented":
            # As PyTorch's documentation uses graphs: new data is copied into the
            # static input and out of the static output, around the replay.
            with torch.cuda.stream(self.stream):
                self.x.copy_(self.x_host, non_blocking=True)
                self.kernels.replay()
                self.y_host.copy_(self.y, non_blocking=True)
                self.done.record()
            return
        # The quickest that Python allows: no context manager, no call but these.
        torch.cuda.set_stream(self.stream)
        if mode == "graph":
            self.graph.replay()
        else:
            self.batch()
        self.done.record(self.stream)

    def finish(self, mode, host_copies):
        if self.busy:
            if mode == "documented":
                self.done.synchronize()
            else:
                while not self.done.query():
                    pass
            if host_copies:
                self.output.copy_(self.y_host)
        self.busy = False


def check(slots, mode, name):
    """Runs a batch of every slot, and leaves outputs that cannot be right."""
    for slot in slots:
        slot.x_host.copy_(slot.input)
        slot.y_host.fill_(-1.0)
        slot.submit(mode)
    check_left(slots, name)
    for slot in slots:
        slot.y_host.fill_(-1.0)


def check_left(slots, name):
    torch.cuda.synchronize()
    if not all(torch.equal(slot.y_host, slot.expected) for slot in slots):
        sys.exit(f"{name}: wrong outputs")


def closed_loop(slots, mode, host_copies, batches):
    start = time.perf_counter_ns()
    for batch in range(batches):
        slot = slots[batch % SLOTS]
        slot.finish(mode, host_copies)
        if host_copies:
            slot.x_host.copy_(slot.input)
        slot.submit(mode)
        slot.busy = True
    for slot in slots:
        slot.finish(mode, host_copies)
    return time.perf_counter_ns() - start


def line(name, slots, host_copies, **figures):
    case = {"who": "torch", "case": name, "bytes": 4 * N, "bytes_down": 4 * N}
    case |= {"kernels": KERNELS, "slots": slots, "host_copies": host_copies}
    print(json.dumps(case | figures), flush=True)


def period(slots, name, mode, host_copies, options):
    check(slots, mode, name)
    target = options.millis * 1e6
    batches = 4 * SLOTS
    took = closed_loop(slots, mode, host_copies, batches)
    while took < target / 2:
        batches *= 2
        took = closed_loop(slots, mode, host_copies, batches)
    batches = max(SLOTS, int(batches * target / took))
    periods = [
        closed_loop(slots, mode, host_copies, batches) / batches for _ in range(options.reps)
    ]
    check_left(slots, name)
    line(
        name,
        SLOTS,
        host_copies,
        period_ns=round(statistics.median(periods), 1),
        min_ns=round(min(periods), 1),
        max_ns=round(max(periods), 1),
    )


def latency(slots, name, mode, options):
    slot = slots[0]
    check([slot], mode, name)
    samples = []
    for sample in range(-options.samples // 10, options.samples):
        start = time.perf_counter_ns()
        slot.submit(mode)
        slot.stream.synchronize()
        if sample >= 0:
            samples.append(time.perf_counter_ns() - start)
    check_left([slot], name)
    samples.sort()
    at = {f"p{part}_ns": samples[len(samples) * part // 100] for part in (50, 90, 99)}
    line(name, 1, False, **at)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--millis", type=float, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("skipped: no device")
    device = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    print(json.dumps({"who": "torch", "case": "device"} | device), flush=True)
    with torch.no_grad():
        slots = [Slot(index) for index in range(SLOTS)]
        # The clocks of an idle card are low.
        start = time.perf_counter()
        while time.perf_counter() - start < 0.2:
            closed_loop(slots, "graph", False, 500)
        period(slots, "stream", "stream", False, options)
        period(slots, "graph", "graph", False, options)
        period(slots, "graph", "graph", True, options)
        period(slots, "graph_documented", "documented", False, options)
        period(slots, "graph_documented", "documented", True, options)
        latency(slots, "latency_stream", "stream", options)
        latency(slots, "latency_graph", "graph", options)
        latency(slots, "latency_graph_documented", "documented", options)


if __name__ == "__main__":
    main()
