"""What the GPU's references in Python share: the work, the closed loop over slots, and
the points that `tapeloop bench` asks for.

A slot has `submit(mode)`, `finish(mode)`, which waits if it is `busy`, and for points
`spoil()` and `output()`, the bytes that it brought back.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from protocol import Refused

KERNELS = Path(__file__).resolve().parents[2] / "crates" / "bench" / "src" / "bench.cu"
BLOCK = 128
# Of `advance`: a step of it adds 1.
ADVANCE = (2.0, 1.0, 0.5, 0.5)
# The clocks of an idle card are low.
WARM_UP_MILLIS = 20


@dataclass(frozen=True)
class Work:
    """As in reference.cuh: a chain of `step`, or of `advance` where there are steps."""

    n: int
    stride: int = 1
    kernels: int = 1
    steps: int = 0

    @classmethod
    def of(cls, request):
        workload = request.one_of("workload", "chain", "advance")
        names = ["n", "stride", "kernels"] + ["steps"] * (workload == "advance")
        work = cls(**{name: request.number(name) for name in names})
        if work.steps and work.stride != 1:
            raise Refused("advance has stride=1")
        if work.n * work.stride >= 1 << 32:
            raise Refused("n * stride is out of range")
        return work

    @property
    def blocks(self):
        # A thread of `advance` takes four elements.
        threads = -(-self.n // 4) if self.steps else self.n
        return -(-threads // BLOCK)


def factor(k):
    """Of the k-th `step`."""
    return 2.0 if k % 2 == 0 else 0.5


def closed_loop(slots, mode, batches):
    """Batches through all slots in turn, each as soon as its slot is done: nanoseconds."""
    start = time.perf_counter_ns()
    for batch in range(batches):
        slot = slots[batch % len(slots)]
        slot.finish(mode)
        slot.submit(mode)
        slot.busy = True
    for slot in slots:
        slot.finish(mode)
    return time.perf_counter_ns() - start


def batches_for(millis, slots, mode):
    """Warms up for as long: how many batches take `millis`; no slot is left out."""
    batches = 4 * len(slots)
    took = closed_loop(slots, mode, batches)
    while took < millis * 1e6 / 2:
        batches *= 2
        took = closed_loop(slots, mode, batches)
    return max(len(slots), int(millis * 1e6 / (took / batches)))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Points:
    """Measures points, and keeps the last one set up."""

    def __init__(self, open_slot):
        self.open_slot = open_slot
        self.point, self.slots, self.batch_ns = None, [], 0
        self.hashed = (b"", fnv1a(b""))

    def answer(self, request):
        if request.what != "period":
            raise Refused(f"no request is {request.what}")
        mode = request.one_of("mode", "graph", "stream")
        point = (Work.of(request), request.number("slots"), mode)
        millis = request.number("millis")
        if point != self.point:
            self.open(*point)
        # Kept only if all goes well.
        self.point = None
        batches = max(len(self.slots), int(millis * 1e6 / self.batch_ns))
        # What is there afterwards, the loop has brought.
        for slot in self.slots:
            slot.spoil()
        self.batch_ns = closed_loop(self.slots, mode, batches) / batches
        digest = self.hash(b"".join(slot.output() for slot in self.slots))
        self.point = point
        return {"period_ns": f"{self.batch_ns:.1f}", "batches": batches, "hash": f"{digest:016x}"}

    def open(self, work, count, mode):
        # The memory of the last point first.
        self.point, self.slots = None, []
        self.slots = [self.open_slot(work, index) for index in range(count)]
        batches = batches_for(WARM_UP_MILLIS, self.slots, mode)
        self.batch_ns = WARM_UP_MILLIS * 1e6 / batches

    def hash(self, outputs):
        """A second for 12 MiB here: the same bytes are hashed once."""
        if outputs != self.hashed[0]:
            self.hashed = (outputs, fnv1a(outputs))
        return self.hashed[1]
