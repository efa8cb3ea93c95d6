#!/usr/bin/env python3
"""The tools of tools.py, as `tapeloop bench` asks for their rates: see README.md.

    python3 cpu_tools.py --serve

Each point runs in a process of its own, which is kept for the point's repetitions.
"""

import multiprocessing
import os
import platform
import sys
import tempfile
from pathlib import Path

import tools
from protocol import Refused, serve

PARTS = {
    "sasa_kernel": {
        "freesasa": tools.freesasa,
        "rustsasa": tools.rustsasa_kernel,
        "biotite": tools.biotite_sasa,
    },
    "sasa_files": {
        "zsasa": tools.zsasa,
        "rustsasa": tools.rustsasa_files,
        "lahuta": tools.lahuta_sasa,
    },
    "contacts": {
        "biotite": tools.biotite_contacts,
        "gemmi": tools.gemmi_contacts,
        "lahuta": tools.lahuta_contacts,
    },
    "read": {
        "gemmi": tools.gemmi_read,
        "biotite": tools.biotite_read,
        "lahuta": tools.lahuta_read,
    },
}
NAMES = ("freesasa", "rustsasa", "zsasa", "lahuta", "biotite", "gemmi")


def versions():
    found = {name: tools.version(name) for name in NAMES if name != "rustsasa"}
    try:
        tools.rustsasa_program()
        found["rustsasa"] = tools.rustsasa_version()
    except tools.Skipped:
        found["rustsasa"] = None
    return {name: found[name] or "missing" for name in NAMES}


def measure(connection, others_end, tool, structures, settings):
    """A point's process: a run for each message that comes."""
    # Else the other end's closing could not be seen here.
    others_end.close()
    if settings.threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as scratch:
        try:
            _, atoms, run = tool(structures, Path(scratch), settings)
            while connection.recv():
                seconds, check, failed = run()
                answer = {"seconds": f"{seconds:.6f}", "atoms": atoms, "check": check}
                connection.send(answer | ({"failed": failed} if failed else {}))
        except EOFError:
            pass
        except tools.Skipped as why:
            connection.send(Refused(str(why)))
        except Exception as error:
            connection.send(Refused(f"{type(error).__name__}: {error}"))


class Rates:
    """Measures points; keeps the structures of the last list, and the last process."""

    def __init__(self):
        self.list, self.structures = None, None
        self.point, self.process, self.connection = None, None, None

    def answer(self, request):
        if request.what == "tools":
            return versions()
        if request.what != "rate":
            raise Refused(f"no request is {request.what}")
        part, name = request.one_of("part", *PARTS), request.one_of("tool", *NAMES)
        tool = PARTS[part].get(name)
        if tool is None:
            raise Refused(f"{name} is not run for {part}")
        path = request.text("list")
        threads = request.number("threads", least=0) or len(os.sched_getaffinity(0))
        precision = "f64"
        if "precision" in request.values:
            precision = request.one_of("precision", "f32", "f64")
        settings = tools.Settings(request.number("points"), threads, precision)
        point = (part, name, path, settings)
        if point != self.point:
            self.close()
            self.open(tool, path, settings)
            self.point = point
        return self.run()

    def open(self, tool, path, settings):
        if path != self.list:
            try:
                paths = [Path(line) for line in Path(path).read_text().splitlines() if line]
            except OSError as error:
                raise Refused(f"{path}: {error.strerror}") from None
            try:
                self.list, self.structures = None, tools.Structures(paths)
            except tools.Skipped as why:
                raise Refused(why) from None
            if not self.structures.atoms:
                raise Refused(f"{path} names no structures")
            self.list = path
        # Forked, so that the structures are there.
        context = multiprocessing.get_context("fork")
        self.connection, others = context.Pipe()
        arguments = (others, self.connection, tool, self.structures, settings)
        self.process = context.Process(target=measure, args=arguments)
        self.process.start()
        others.close()

    def run(self):
        try:
            self.connection.send(True)
            answer = self.connection.recv()
        except (EOFError, OSError):
            answer = Refused("the tool's process ended")
        if isinstance(answer, Refused):
            self.close()
            raise answer
        return answer

    def close(self):
        self.point = None
        if self.process:
            self.connection.close()
            self.process.join()
            self.process = None


def hello():
    return {
        "name": "CPU tools",
        "python": platform.python_version(),
        "threads": len(os.sched_getaffinity(0)),
    }


def main():
    if sys.argv[1:] != ["--serve"]:
        sys.exit(__doc__)
    rates = Rates()
    try:
        return serve(hello, rates.answer)
    finally:
        rates.close()


if __name__ == "__main__":
    sys.exit(main())
