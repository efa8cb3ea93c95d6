#!/usr/bin/env python3
"""The work of benches/replay in PyTorch: four slots on four streams, eager and as
CUDA graphs. Prints one line of JSON for each case, and fails on a wrong output; or
answers `tapeloop bench` as README.md says.

    python3 torch_loop.py [--reps N] [--millis N] [--samples N]
    python3 torch_loop.py --serve
"""

import argparse
import ctypes
import functools
import json
import statistics
import struct
import sys
import time

import torch

from closed_loop import ADVANCE, BLOCK, KERNELS, Points, Work, batches_for, closed_loop, factor
from protocol import Refused, serve

WORK = Work(n=4096)
SLOTS = 4


@functools.cache
def advance():
    """The kernel, as PyTorch compiles it."""
    compile_kernel = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None:
        raise Refused(f"PyTorch {torch.__version__} compiles no kernels")
    return compile_kernel(KERNELS.read_text(), "advance")


def bits(value):
    """PyTorch gives a kernel floats as doubles, and ints as they are."""
    return struct.unpack("<i", struct.pack("<f", value))[0]


class Slot:
    """One slot: pinned memory, device memory, a stream, and the graph of a batch."""

    def __init__(self, work, index):
        self.work = work
        values = (torch.arange(work.n * work.stride) * 7 + index * 13) % 1021
        self.input = values.to(torch.float32)
        self.output_copy = torch.empty(work.n, dtype=torch.float32)
        self.expected = self.input[:: work.stride].clone()
        for k in range(work.kernels):
            if work.steps:
                self.expected += work.steps
            else:
                self.expected = self.expected * factor(k) + 1.0
        self.x_host = self.input.clone().pin_memory()
        self.y_host = torch.zeros(work.n, dtype=torch.float32).pin_memory()
        self.x = torch.zeros(len(values), dtype=torch.float32, device="cuda")
        self.first = self.x[:: work.stride]
        self.y, *self.scratch = (
            torch.zeros(work.n, dtype=torch.float32, device="cuda") for _ in range(3)
        )
        self.ones = torch.ones(work.n, dtype=torch.float32, device="cuda")
        self.stream = torch.cuda.Stream()
        self.done = torch.cuda.Event()
        self.busy = False
        # Whether data comes from other memory, and goes there.
        self.host_copies = False
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
        """A kernel for each operation: PyTorch's own for `step`."""
        work = self.work
        value = self.first
        for k in range(work.kernels):
            out = self.y if k + 1 == work.kernels else self.scratch[k % 2]
            if work.steps:
                scalars = [work.n, work.steps, *map(bits, ADVANCE)]
                advance()((work.blocks, 1, 1), (BLOCK, 1, 1), [value, out, *scalars])
            else:
                torch.add(self.ones, value, alpha=factor(k), out=out)
            value = out

    def submit(self, mode):
        if self.host_copies:
            self.x_host.copy_(self.input)
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

    def finish(self, mode):
        if self.busy:
            if mode == "documented":
                self.done.synchronize()
            else:
                while not self.done.query():
                    pass
            if self.host_copies:
                self.output_copy.copy_(self.y_host)
        self.busy = False

    def spoil(self):
        self.y_host.view(torch.uint8).fill_(0xFF)

    def output(self):
        return ctypes.string_at(self.y_host.data_ptr(), self.y_host.nbytes)


def check(slots, mode, name):
    """Runs a batch of every slot, and leaves outputs that cannot be right."""
    for slot in slots:
        slot.x_host.copy_(slot.input)
        slot.spoil()
        slot.submit(mode)
    check_left(slots, name)
    for slot in slots:
        slot.spoil()


def check_left(slots, name):
    torch.cuda.synchronize()
    if not all(torch.equal(slot.y_host, slot.expected) for slot in slots):
        sys.exit(f"{name}: wrong outputs")


def line(name, slots, host_copies, **figures):
    case = {"who": "torch", "case": name, "bytes": 4 * WORK.n, "bytes_down": 4 * WORK.n}
    case |= {"kernels": WORK.kernels, "slots": slots, "host_copies": host_copies}
    print(json.dumps(case | figures), flush=True)


def period(slots, name, mode, host_copies, options):
    check(slots, mode, name)
    for slot in slots:
        slot.host_copies = host_copies
    batches = batches_for(options.millis, slots, mode)
    periods = [closed_loop(slots, mode, batches) / batches for _ in range(options.reps)]
    for slot in slots:
        slot.host_copies = False
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


def hello():
    if not torch.cuda.is_available():
        raise Refused("no device")
    name = torch.cuda.get_device_name(0)
    return {"name": "PyTorch", "version": torch.__version__, "device": name}


def run_cases(options):
    device = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    print(json.dumps({"who": "torch", "case": "device"} | device), flush=True)
    slots = [Slot(WORK, index) for index in range(SLOTS)]
    # The clocks of an idle card are low.
    start = time.perf_counter()
    while time.perf_counter() - start < 0.2:
        closed_loop(slots, "graph", 500)
    period(slots, "stream", "stream", False, options)
    period(slots, "graph", "graph", False, options)
    period(slots, "graph", "graph", True, options)
    period(slots, "graph_documented", "documented", False, options)
    period(slots, "graph_documented", "documented", True, options)
    latency(slots, "latency_stream", "stream", options)
    latency(slots, "latency_graph", "graph", options)
    latency(slots, "latency_graph_documented", "documented", options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--millis", type=float, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    with torch.no_grad():
        if options.serve:
            return serve(hello, Points(Slot).answer)
        if not torch.cuda.is_available():
            sys.exit("skipped: no device")
        run_cases(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
