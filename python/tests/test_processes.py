"""Threads, forks, signals, and the end of the interpreter."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import pytapeloop


def python(program, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    # Not in a folder from which Python would import the sources.
    return subprocess.Popen(command, text=True, cwd="/", stderr=subprocess.PIPE, **options)


def ended(process, code=0):
    _, problems = process.communicate(timeout=60)
    assert process.returncode == code, problems
    return problems


def test_threads_iterate_at_once_and_an_engine_serves_one(some):
    engine = pytapeloop.Features("sasa", backend="cpu")
    expected = len(engine.table(some))
    found = []

    def read():
        batches = pytapeloop.stream(some, "sasa", backend="cpu", threads=1)
        found.append(sum(batch.num_rows for batch in batches))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected, expected]

    open_stream = engine.stream(some)
    next(open_stream)
    with pytest.raises(pytapeloop.TapeloopError, match="another stream"):
        engine.table(some)
    open_stream.close()
    assert len(engine.table(some)) == expected


def test_a_stream_that_is_left_ends_its_run(some):
    engine = pytapeloop.Features("torsions", backend="cpu", tables={"rows_per_group": 1})
    for _ in range(20):
        next(engine.stream(some))
    assert len(engine.table(some)) > 0


def test_an_engine_is_refused_after_a_fork_and_its_child_ends(some):
    engine = pytapeloop.Features("sasa", backend="cpu")
    left_open = engine.stream(some, progress=True)
    next(left_open)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            engine.table(some)
        except pytapeloop.TapeloopError as error:
            code = 0 if "forked" in str(error) else 2
        try:
            del engine
            left_open.close()
            # An engine of its own works.
            code += 0 if len(pytapeloop.features(some, "sasa", backend="cpu")) else 4
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_children_of_forks_at_any_moment_of_a_stream_end(samples, tmp_path):
    for number in range(4000):
        (tmp_path / f"{number}.pdb").symlink_to(samples / "1a8o.pdb")
    engine = pytapeloop.Features("rg", backend="cpu", tables={"rows_per_group": 1})
    for _ in range(2):
        stream = engine.stream(tmp_path, "structures")
        for _ in range(100):
            next(stream)
            child = os.fork()
            if child == 0:
                # Ends a child that waits for a lock of a thread that it has not.
                signal.alarm(10)
                stream.close()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stream.close()


def count(path):
    return len(pytapeloop.features(path, "sasa", backend="cpu"))


def test_a_spawned_process_has_an_engine_of_its_own(samples):
    path = str(samples / "1a8o.pdb")
    assert in_a_process(count, path) == count(path)


def test_the_interpreter_ends_with_batches_in_flight(some):
    program = """
        import sys, pytapeloop
        engine = pytapeloop.Features(backend="cpu", tables={"rows_per_group": 1})
        stream = engine.stream(sys.argv[1])
        next(stream)
    """
    assert ended(python(program, some)) == ""


def test_ctrl_c_ends_a_stream(samples, tmp_path):
    program = """
        import sys, pytapeloop
        print("ready", flush=True)
        pytapeloop.features("@" + sys.argv[1], "sasa", backend="cpu")
    """
    # A list whose writer is idle: the run waits for it.
    waiting = tmp_path / "list"
    os.mkfifo(waiting)
    process = python(program, waiting, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    with open(waiting, "w") as writer:
        writer.write(f"{samples / '1a8o.pdb'}\n")
        writer.flush()
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in ended(process, -signal.SIGINT)


def test_a_worker_process_is_found_in_the_package(samples):
    path = samples / "1a8o.pdb"
    alone = pytapeloop.features(path, "sasa", backend="cpu").to_arrow()
    supervised = pytapeloop.features(path, "sasa", backend="cpu", supervise=True).to_arrow()
    assert supervised["sasa"].equals(alone["sasa"])


def held():
    """Resident memory in kilobytes, open files, and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * resource.getpagesize() >> 10
    # A thread that was joined may be listed for a moment.
    for _ in range(100):
        threads = len(os.listdir("/proc/self/task"))
        time.sleep(0.01)
        if len(os.listdir("/proc/self/task")) == threads:
            break
    return memory, len(os.listdir("/proc/self/fd")), threads


def in_a_process(work, *arguments):
    """The result of a function in a new process, whose memory no other test has used."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def ten_thousand_calls():
    residue = [("N", 0.0, 0.0), ("CA", 1.46, 0.0), ("C", 2.0, 1.42), ("O", 1.3, 2.4)]
    atoms = pytapeloop.Atoms(
        coordinates=[[x, y, 0.0] for _, x, y in residue],
        names=[name for name, _, _ in residue],
        residues=["GLY"] * len(residue),
        chains=["A"] * len(residue),
        numbers=[1] * len(residue),
    )
    engine = pytapeloop.Features("torsions", backend="cpu", threads=1)

    def calls(count):
        for _ in range(count // 2):
            assert len(engine.table([atoms])) == 1
            assert sum(rows.num_rows for rows in engine.stream([atoms])) == 1

    wanted = int(os.environ.get("TAPELOOP_CALLS", "0"))
    calls(200)
    before = held()
    started, made = time.monotonic(), 0
    while made < wanted or wanted == 0 and made < 10_000 and time.monotonic() < started + 10:
        calls(200)
        made += 200
    return before, held(), made


def test_ten_thousand_calls_leave_nothing_behind():
    """Those that fit in ten seconds, and 10,000 with ``TAPELOOP_CALLS=10000``."""
    before, after, made = in_a_process(ten_thousand_calls)
    # A thread that was ending may be among those of before.
    assert after[1] <= before[1] and after[2] <= before[2]
    assert after[0] - before[0] < 1024, f"kilobytes more after {made} calls"


def engines(some):
    def calls(count):
        for _ in range(count):
            assert len(pytapeloop.features(some, "torsions", backend="cpu", threads=2)) > 0
            batches = pytapeloop.stream(some, "torsions", backend="cpu", threads=2)
            assert sum(rows.num_rows for rows in batches) > 0

    calls(15)
    before = held()
    calls(30)
    return before, held()


def test_engines_leave_nothing_behind(some):
    before, after = in_a_process(engines, some)
    # A thread that was ending may be among those of before.
    assert after[1] <= before[1] and after[2] <= before[2]
    assert after[0] - before[0] < 8 << 10, "kilobytes more after 60 engines"


def test_the_program_is_in_the_package():
    from pytapeloop._program import program

    printed = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["tapeloop", pytapeloop.__version__]
