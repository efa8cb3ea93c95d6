#!/usr/bin/env python3
"""Runs the engine and PyTorch in one process, each while the other works.

    python3 scripts/torch_in_process.py libcapi.so [--seconds N] [--torch-device N] [--backend cpu]

The library is `crates/engine/examples/capi.rs`, which says how to build it; this script is also the
example of its use. While the engine works on threads of its own, and a ring on another
thread of this script, the main thread captures and replays CUDA graphs with PyTorch,
whose captures restrict the whole process. Then both take turns on one thread. The engine
has the first GPU, and PyTorch may have another one. Prints a line that begins with PASS or
FAIL for each check and exits with 1 if one failed. With --backend cpu, and without PyTorch,
only the library itself is checked.
"""

import argparse
import ctypes
import sys
import threading
import time

ERROR_BYTES = 4096
# The batches of one call of the library.
BATCHES = 1_000
# The GPU of PyTorch, for every thread that uses it.
TORCH_DEVICE = 0


class Tapeloop:
    """The library's functions; a failure is an exception with the error's text."""

    def __init__(self, path, backend):
        self.library = ctypes.CDLL(path)
        self.library.tapeloop_open.restype = ctypes.c_void_p
        error = ctypes.create_string_buffer(ERROR_BYTES)
        self.handle = self.library.tapeloop_open(
            backend.encode(), error, ctypes.c_size_t(ERROR_BYTES)
        )
        if self.handle is None:
            raise RuntimeError(error.value.decode())

    def run(self, front, batches):
        """Runs and checks batches; `front` is "engine" or "ring"."""
        call = getattr(self.library, f"tapeloop_run_{front}")
        error = ctypes.create_string_buffer(ERROR_BYTES)
        handle, size = ctypes.c_void_p(self.handle), ctypes.c_size_t(ERROR_BYTES)
        # ctypes lets other threads of Python run meanwhile.
        if call(handle, ctypes.c_uint32(batches), error, size) != 0:
            raise RuntimeError(error.value.decode())

    def close(self):
        self.library.tapeloop_close(ctypes.c_void_p(self.handle))


class Checks:
    """Prints the outcome of each check."""

    def __init__(self):
        self.failed = 0

    def check(self, name, work):
        try:
            said = work()
            print(f"PASS {name}{': ' + said if said else ''}", flush=True)
        except Exception as error:
            self.failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)


def capture_and_replay(torch, round):
    """One graph with an allocation inside, and another beside it; checks its result."""
    x = torch.full((1 << 14,), float(round % 100), device="cuda")
    graph = torch.cuda.CUDAGraph()
    # The mode by default, and here by name: captures of mode global.
    with torch.cuda.graph(graph, capture_error_mode="global"):
        y = x * 2
        z = torch.cat([y, y + 1])
    x.fill_(float(round % 100) + 5)
    beside = torch.empty(1 << 12, device="cuda").fill_(7.0)
    graph.replay()
    torch.cuda.synchronize()
    expected = 2 * (float(round % 100) + 5)
    half = x.numel()
    right = (z[:half] == expected).all() and (z[half:] == expected + 1).all()
    if not bool(right) or float(beside.sum()) != 7.0 * (1 << 12):
        raise AssertionError(f"a graph of PyTorch gave a wrong result in round {round}")


def check_torch(torch):
    """PyTorch's device, memory and events on this thread."""
    if torch.cuda.current_device() != TORCH_DEVICE:
        raise AssertionError(f"the current device is {torch.cuda.current_device()}")
    x = torch.arange(1000, device="cuda", dtype=torch.float32)
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    if float((x * 2).sum()) != 999_000.0:
        raise AssertionError("a sum of PyTorch is wrong")


def while_the_engine_works(torch, tapeloop, front, seconds):
    """Captures while batches run on another thread."""
    failures, batches = [], 0
    end = time.monotonic() + seconds

    def work():
        nonlocal batches
        try:
            while time.monotonic() < end:
                tapeloop.run(front, BATCHES)
                batches += BATCHES
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    rounds = 0
    try:
        while thread.is_alive() or rounds < 20:
            capture_and_replay(torch, rounds)
            rounds += 1
    finally:
        thread.join()
    if failures:
        raise failures[0]
    check_torch(torch)
    return f"{batches} batches, {rounds} captures"


def open_in_a_capture(torch, path):
    """The whole life of an engine on another thread inside one capture."""
    failures = []

    def live():
        try:
            tapeloop = Tapeloop(path, "cuda")
            tapeloop.run("engine", 100)
            tapeloop.run("ring", 100)
            tapeloop.close()
        except Exception as error:
            failures.append(error)

    x = torch.ones(1 << 14, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        y = x + 1
        thread = threading.Thread(target=live)
        thread.start()
        thread.join()
        z = y * 3
    graph.replay()
    torch.cuda.synchronize()
    if failures:
        raise failures[0]
    if not bool((z == 6).all()):
        raise AssertionError("the graph that was captured meanwhile is wrong")


def inside_a_capture(torch, tapeloop):
    """Calls on the very thread whose capture is open."""
    x = torch.ones(1 << 14, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        y = x + 1
        tapeloop.run("ring", 100)
        tapeloop.run("engine", 100)
        z = y * 3
    graph.replay()
    torch.cuda.synchronize()
    if not bool((z == 6).all()):
        raise AssertionError("the graph that was captured round the calls is wrong")
    check_torch(torch)


def take_turns(torch, tapeloop, batches):
    """Each by turns on this thread."""
    for round in range(20):
        for front in ("ring", "engine"):
            tapeloop.run(front, batches)
            check_torch(torch)
        capture_and_replay(torch, round)


def on_a_fresh_thread(torch, tapeloop):
    """A thread that PyTorch has not used before the engine does."""
    failures = []

    def work():
        try:
            tapeloop.run("ring", 10)
            torch.cuda.set_device(TORCH_DEVICE)
            check_torch(torch)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="libcapi.so")
    parser.add_argument("--seconds", type=float, default=5, help="time of the longer checks")
    parser.add_argument("--torch-device", type=int, default=0, help="the GPU of PyTorch")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    arguments = parser.parse_args()
    checks = Checks()

    if arguments.backend == "cpu":
        tapeloop = Tapeloop(arguments.library, "cpu")
        for front in ("engine", "ring"):
            checks.check(front, lambda: tapeloop.run(front, BATCHES))
        tapeloop.close()
        return 1 if checks.failed else 0

    try:
        import torch
    except ImportError as error:
        print(f"FAIL PyTorch: {error}")
        return 1
    global TORCH_DEVICE
    TORCH_DEVICE = arguments.torch_device
    torch.cuda.set_device(TORCH_DEVICE)
    name = torch.cuda.get_device_name(TORCH_DEVICE)
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, GPU {TORCH_DEVICE}: {name}")
    check_torch(torch)
    path, seconds = arguments.library, arguments.seconds
    try:
        tapeloop = Tapeloop(path, "cuda")
    except RuntimeError as error:
        print(f"FAIL open: {error}")
        return 1
    checks.check("PyTorch after open", lambda: check_torch(torch))
    for front in ("engine", "ring"):
        name = f"captures while the {front} works"
        checks.check(name, lambda: while_the_engine_works(torch, tapeloop, front, seconds))
    checks.check("turns on one thread", lambda: take_turns(torch, tapeloop, 50))
    checks.check("a fresh thread", lambda: on_a_fresh_thread(torch, tapeloop))
    checks.check("an engine's life in a capture", lambda: open_in_a_capture(torch, path))
    checks.check("calls inside an own capture", lambda: inside_a_capture(torch, tapeloop))
    tapeloop.close()
    checks.check("PyTorch after close", lambda: check_torch(torch))
    checks.check("a capture after close", lambda: capture_and_replay(torch, 1))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
