#!/usr/bin/env python3
"""The work of `tapeloop bench` in PyTorch: slots on streams of their own, as plain calls
and as CUDA graphs. It answers as README.md says.

    python3 torch_loop.py --serve
"""

import ctypes
import functools
import struct
import sys

import torch

from closed_loop import ADVANCE, BLOCK, KERNELS, Points, factor
from protocol import Refused, serve


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
        self.x_host = values.to(torch.float32).pin_memory()
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
        # The memory above was made on another stream.
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.batch()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.batch()
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
        # The fastest that Python allows: no context manager, no other call.
        torch.cuda.set_stream(self.stream)
        if mode == "graph":
            self.graph.replay()
        else:
            self.batch()
        self.done.record(self.stream)

    def finish(self, _mode):
        if self.busy:
            while not self.done.query():
                pass
        self.busy = False

    def spoil(self):
        self.y_host.view(torch.uint8).fill_(0xFF)

    def output(self):
        return ctypes.string_at(self.y_host.data_ptr(), self.y_host.nbytes)


def hello():
    if not torch.cuda.is_available():
        raise Refused("no device")
    name = torch.cuda.get_device_name(0)
    return {"name": "PyTorch", "version": torch.__version__, "device": name}


if __name__ == "__main__":
    if sys.argv[1:] != ["--serve"]:
        sys.exit(__doc__)
    with torch.no_grad():
        sys.exit(serve(hello, Points(Slot).answer))
