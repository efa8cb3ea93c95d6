#!/usr/bin/env python3
"""Runs tapeloop over millions of small structures, and over the same ones with kills in between.

    scripts/long_run.py PROGRAM FOLDER [--count N] [--kills N] [--minutes N] [-- OPTIONS OF tapeloop run]

The script makes the structures, stretches of samples, in FOLDER: tar archives, compressed ones, ZIP archives,
packed sets and single files, which one list names. A first run computes them undisturbed, while the script
notes the memory, file handles, threads and processor time of the process. A second one is killed (SIGKILL)
again and again and resumed, and must leave the same bytes.

With --minutes the script stops after so many minutes, and exits with code 75: the same command goes on.
It exits with code 1 if bytes differ, or if memory, handles or threads grow or the rate falls.
Needs Linux, Python's standard library, make_set.py and the samples; no Rust.
"""

import argparse
import filecmp
import gzip
import json
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import make_set

SHARDS = 200
# Each tenth of the shards has all kinds of inputs alike.
KINDS = "tar gz packed gz zip gz packed gz packed gz tar gz packed gz zip gz packed gz loose gz".split()
LOOSE_PER_FOLDER = 1000
# One structure of so many is broken, so that inputs are rejected.
BROKEN_EACH = 1000
# What a structure takes on the disk, as input and in the tables of both runs.
DISK_BYTES = 7000
TRY_AGAIN = 75

# What may change from the first half of a run to its last tenth.
MEMORY_GROWTH_MAX = 1.25
# The start of a short run takes less than its end.
MEMORY_GROWTH_MIN_BYTES = 32_000_000
HANDLES_GROWTH_MAX = 1.1
RATE_MIN = 0.8
# Below it, the clock of the processor time and the start decide the rate.
TENTH_CPU_S_MIN = 2


class TimeIsUp(Exception):
    pass


class Set:
    """The inputs in a folder, and which of them are made."""

    def __init__(self, folder, program, count, residues, seed):
        self.folder, self.program, self.count, self.seed = folder, program, count, seed
        found = make_set.structures(random.Random(seed), 700, residues)
        if not found:
            raise SystemExit(f"--residues {residues}: no sample in {make_set.SAMPLES} is as long; give fewer")
        broken = b"ATOM  this is no atom\nEND\n"
        self.texts = [(text, gzip.compress(text, 6, mtime=0), gzip_padded(text)) for _, text in found]
        self.broken = (broken, gzip.compress(broken, mtime=0), gzip_padded(broken))

    def members(self, shard):
        """The names and texts of a shard: as they are, gzipped, and as gzipped parts of a tar archive."""
        chance = random.Random(self.seed * SHARDS + shard)
        for number in range(self.count * shard // SHARDS, self.count * (shard + 1) // SHARDS):
            texts = self.texts[chance.randrange(len(self.texts))]
            broken = number % BROKEN_EACH == BROKEN_EACH // 2
            yield f"peptide-{number:010}.pdb", self.broken if broken else texts

    def make(self, deadline):
        """Makes what is missing, and returns the list of all inputs."""
        inputs = self.folder / "inputs"
        inputs.mkdir(exist_ok=True)
        names = []
        for shard in range(SHARDS):
            kind = KINDS[shard % len(KINDS)]
            ending = {"tar": ".tar", "gz": ".tar.gz", "zip": ".zip"}.get(kind, "")
            path = inputs / f"{kind}-{shard:03}{ending}"
            if not path.exists():
                if time.monotonic() > deadline:
                    raise TimeIsUp
                # A shard has its name once it is complete.
                unfinished = inputs / f"unfinished{ending}"
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.unlink(missing_ok=True)
                getattr(self, kind)(unfinished, self.members(shard))
                unfinished.rename(path)
            if kind == "loose":
                names += sorted(str(file.relative_to(inputs)) for file in path.glob("*/*"))
            else:
                names.append(path.name)
        listed = inputs / "list.txt"
        if not listed.exists():
            listed.write_text("".join(f"{name}\n" for name in names))
        return listed

    @staticmethod
    def tar(path, members):
        with open(path, "wb") as file:
            for name, (text, _, _) in members:
                file.write(make_set.tar_header(name, len(text)))
                file.write(make_set.padded(text))
            file.write(make_set.TAR_END)

    @staticmethod
    def gz(path, members):
        # Members of gzip data may follow each other: the texts are compressed once.
        with open(path, "wb") as file:
            for name, (text, _, compressed) in members:
                file.write(gzip_stored(make_set.tar_header(name, len(text))))
                file.write(compressed)
            file.write(gzip_stored(make_set.TAR_END))

    @staticmethod
    def zip(path, members):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
            for name, (text, _, _) in members:
                file.writestr(zipfile.ZipInfo(name), text)

    @staticmethod
    def loose(path, members):
        for at, (name, (text, compressed, _)) in enumerate(members):
            folder = path / f"{at // LOOSE_PER_FOLDER:04}"
            if at % LOOSE_PER_FOLDER == 0:
                folder.mkdir(parents=True)
            if at % 2:
                (folder / f"{name}.gz").write_bytes(compressed)
            else:
                (folder / name).write_bytes(text)

    def packed(self, path, members):
        archive = path.parent / "to-pack.tar"
        self.tar(archive, members)
        command = [self.program, "pack", archive, "-o", path]
        packed = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # 3: some inputs are rejected.
        if packed.returncode not in (0, 3):
            raise SystemExit(f"{self.program} pack: exit code {packed.returncode}\n{packed.stderr}")
        archive.unlink()


def gzip_padded(text):
    return gzip.compress(make_set.padded(text), 6, mtime=0)


def gzip_stored(data):
    """A member of gzip data that is not compressed."""
    block = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + block + data + struct.pack("<II", zlib.crc32(data), len(data))


class Journal:
    """What was seen of the runs, in a file, so that a later call of the script goes on."""

    def __init__(self, path):
        self.path = path
        self.lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, **line):
        self.lines.append(line)
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")

    def of(self, run, key):
        return [line for line in self.lines if line["run"] == run and key in line]


def record_of(out):
    """The run.json of a run, which is replaced again and again."""
    try:
        return json.loads((out / "run.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def inputs_written(out):
    return record_of(out).get("written", {}).get("inputs", 0)


def look(pid):
    """What a process uses now; None if it has ended."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if "VmRSS" not in status:
            return None
        handles = len(os.listdir(f"/proc/{pid}/fd"))
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return {
        "rss_bytes": 1024 * int(status["VmRSS"].split()[0]),
        # Without the pages of files that are mapped, which the system takes back when it needs them.
        "anonymous_bytes": 1024 * int(status["RssAnon"].split()[0]),
        "handles": handles,
        "threads": int(status["Threads"]),
        "cpu_s": (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
    }


class Runs:
    """The runs over a set: `whole` and `killed`."""

    def __init__(self, args, folder, listed, deadline):
        self.args, self.folder, self.listed, self.deadline = args, folder, listed, deadline
        self.journal = Journal(folder / "journal.jsonl")
        self.interval = 0.02 if args.count < 100_000 else 0.5

    def command(self, name):
        per_part = max(1, min(65536, self.args.count // 100))
        parts = ["--set", f"tables.inputs_per_part={per_part}"]
        command = [self.args.program, "run", f"@{self.listed}", "-o", self.folder / name, "--resume"]
        return [*command, *parts, *self.args.options]

    def go_on(self, name, kill_at=None):
        """Starts or resumes a run. Kills it once `kill_at` inputs are in complete parts, and a moment later."""
        out = self.folder / name
        log = self.folder / f"{name}.log"
        before = self.journal.of(name, "s")[-1] if self.journal.of(name, "s") else {"s": 0, "cpu_s": 0}
        start = time.monotonic()
        with open(log, "a") as errors:
            child = subprocess.Popen(
                self.command(name), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=errors
            )
        while child.poll() is None:
            seen, written = look(child.pid), inputs_written(out)
            if seen:
                seen["cpu_s"] += before["cpu_s"]
                self.journal.add(run=name, s=before["s"] + time.monotonic() - start, inputs=written, **seen)
            if kill_at is not None and written >= kill_at:
                # Anywhere within the next part or so.
                rate = max(written, 1) / self.journal.of(name, "s")[-1]["s"]
                time.sleep(random.random() * min(60, self.args.count / 100 / rate))
                child.kill()
                if child.wait() == -signal.SIGKILL:
                    self.journal.add(run=name, killed_at=inputs_written(out))
                return
            if time.monotonic() > self.deadline:
                child.send_signal(signal.SIGKILL if name == "killed" else signal.SIGINT)
                child.wait()
                self.journal.add(run=name, stopped_at=inputs_written(out))
                raise TimeIsUp
            time.sleep(self.interval)
        # 3: some inputs are rejected.
        if child.returncode not in (0, 3):
            last = "".join(log.read_text().splitlines(keepends=True)[-20:])
            raise SystemExit(f"{name}: exit code {child.returncode}; {log} ends with\n{last}")
        written = inputs_written(out)
        last = self.journal.of(name, "s")
        if last and last[-1]["inputs"] < written:
            self.journal.add(**(last[-1] | {"s": before["s"] + time.monotonic() - start, "inputs": written}))

    def finished(self, name):
        return record_of(self.folder / name).get("state") == "finished"

    def finish(self):
        while not self.finished("whole"):
            self.go_on("whole")
        # The moments are the same in each call of the script.
        chance = random.Random(self.args.seed)
        kills = self.args.kills
        moments = [self.args.count * (k + chance.random()) / (kills + 0.5) for k in range(kills)]
        while not self.finished("killed"):
            killed = len(self.journal.of("killed", "killed_at"))
            self.go_on("killed", moments[killed] if killed < kills else None)


def tenths(lines, count):
    """For each tenth of the inputs: the seconds, the structures a second, and what the process used."""
    # When so many inputs were first complete.
    points = [(0, lines[0]["s"], lines[0]["cpu_s"])]
    for line in lines:
        if line["inputs"] > points[-1][0]:
            points.append((line["inputs"], line["s"], line["cpu_s"]))

    def at(inputs):
        for (low, *from_), (high, *to) in zip(points, points[1:]):
            if inputs <= high:
                share = (inputs - low) / (high - low)
                return [a + share * (b - a) for a, b in zip(from_, to)]
        return points[-1][1:]

    rows = []
    for tenth in range(10):
        (start, cpu_start), (end, cpu_end) = at(count * tenth / 10), at(count * (tenth + 1) / 10)
        within = [line for line in lines if start <= line["s"] <= end] or [
            min(lines, key=lambda line: abs(line["s"] - end))
        ]
        row = {"s": end - start, "cpu_s": cpu_end - cpu_start}
        for key in ("rss_bytes", "anonymous_bytes"):
            row[key] = statistics.median(line[key] for line in within)
        for key in ("handles", "threads"):
            row[key] = max(line[key] for line in within)
            row[f"usual_{key}"] = statistics.median(line[key] for line in within)
        rows.append(row)
    return rows


def report(rows, count):
    """Prints the tenths, and returns what got worse."""
    print("tenth  structures/s  CPU s per 1,000  memory, MB  of it anonymous  handles  threads")
    for number, row in enumerate(rows, 1):
        each = count / 10
        print(
            f"{number:5}  {each / max(row['s'], 1e-9):12,.0f}  {1000 * row['cpu_s'] / each:15.3f}"
            f"  {row['rss_bytes'] / 1e6:10,.0f}  {row['anonymous_bytes'] / 1e6:15,.0f}"
            f"  {row['handles']:7}  {row['threads']:7}"
        )
    half, last = rows[:5], rows[-1]
    most = {key: max(row[key] for row in half) for key in half[0]}
    worse = []
    grown = last["anonymous_bytes"] - most["anonymous_bytes"]
    if grown > max((MEMORY_GROWTH_MAX - 1) * most["anonymous_bytes"], MEMORY_GROWTH_MIN_BYTES):
        worse.append("memory grows: its last tenth takes over a quarter more than the first half")
    # A leak raises the median; a peak may be chance.
    if last["usual_handles"] > HANDLES_GROWTH_MAX * most["handles"]:
        worse.append("file handles grow: the last tenth has more than the first half")
    if last["usual_threads"] > most["threads"]:
        worse.append("threads grow: the last tenth has more than the first half")
    # Of the processor time, which other processes change less than the wall time.
    usual = statistics.median(row["cpu_s"] for row in rows)
    if usual < TENTH_CPU_S_MIN:
        print(f"The rates say nothing: a tenth takes less than {TENTH_CPU_S_MIN} s of processor time.")
    elif usual < RATE_MIN * last["cpu_s"]:
        worse.append("the rate falls: the last tenth takes a quarter more processor time than the median")
    return worse


def differences(whole, killed):
    """Compares the files of both runs. Returns what differs, the number of files and their bytes."""
    files = [{path.relative_to(out) for path in out.rglob("*") if path.is_file()} for out in (whole, killed)]
    wrong = [f"{name}: only one of the runs has it" for name in sorted(files[0] ^ files[1])]
    both = sorted(files[0] & files[1])
    for name in both:
        # The record has times, and the name of the folder.
        if name.name != "run.json" and not filecmp.cmp(whole / name, killed / name, shallow=False):
            wrong.append(f"{name}: its bytes differ")
    for key in ("written", "columns"):
        if record_of(whole)[key] != record_of(killed)[key]:
            wrong.append(f"run.json: `{key}` differs")
    return wrong, len(both), sum((whole / name).stat().st_size for name in both)


def checked_folder(args):
    """The folder, which must be new or of an earlier call with the same settings."""
    folder = Path(args.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    settings = {key: getattr(args, key) for key in ("count", "residues", "kills", "seed", "options")}
    path = folder / "settings.json"
    if path.exists():
        if json.loads(path.read_text()) != settings:
            raise SystemExit(f"{path}: other settings; give the same ones, or another folder")
        return folder
    if any(folder.iterdir()):
        raise SystemExit(f"{folder}: not empty, and not of this script; give another folder")
    free, needed = shutil.disk_usage(folder).free, DISK_BYTES * args.count
    if free < needed:
        text = f"{folder}: {free / 1e9:.1f} GB are free, and {needed / 1e9:.1f} GB are needed"
        raise SystemExit(f"{text}; give a smaller --count, or a folder elsewhere")
    path.write_text(json.dumps(settings))
    return folder


def main():
    mine, options = sys.argv[1:], []
    if "--" in mine:
        at = mine.index("--")
        mine, options = mine[:at], mine[at + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], usage=__doc__.split("\n")[2].strip(), epilog=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", help="the program tapeloop")
    parser.add_argument("folder", help="where the inputs and tables are written; 7 kB for each structure")
    parser.add_argument("--count", type=int, default=10_000_000, help="number of structures, at least 200")
    parser.add_argument("--residues", type=int, default=10, help="residues of a structure")
    parser.add_argument("--kills", type=int, default=10, help="number of kills of the second run")
    parser.add_argument("--minutes", type=float, help="how long this call may take")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(mine)
    args.options = options
    if args.count < SHARDS:
        parser.error(f"--count {args.count}: at least {SHARDS}, the number of archives and folders")
    program = shutil.which(args.program)
    if not program:
        parser.error(f"{args.program}: no program; build one with `cargo build --release --bin tapeloop`")
    args.program = str(Path(program).resolve())
    deadline = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")

    folder = checked_folder(args)
    try:
        start = time.monotonic()
        listed = Set(folder, args.program, args.count, args.residues, args.seed).make(deadline)
        print(f"The inputs are there after {time.monotonic() - start:.0f} s.", flush=True)
        runs = Runs(args, folder, listed, deadline)
        runs.finish()
    except TimeIsUp:
        print("The time is up; the same command goes on.")
        return TRY_AGAIN

    journal = runs.journal
    lines = journal.of("whole", "s")
    print(f"{args.count:,} structures, {args.residues} residues each, in {lines[-1]['s']:,.0f} s:")
    wrong = report(tenths(lines, args.count), args.count)
    stops = len(journal.of("whole", "stopped_at"))
    if stops:
        print(f"The time limit stopped this run {stops} times; it was resumed.")
    kills = [line["killed_at"] for line in journal.of("killed", "killed_at")]
    print(f"The second run was killed {len(kills)} times, at these inputs in complete parts: {kills}")
    if len(kills) < args.kills:
        wrong.append(f"the run ended before the last of {args.kills} kills; give a larger --count")
    written = record_of(folder / "whole")["written"]
    broken = sum(number % BROKEN_EACH == BROKEN_EACH // 2 for number in range(args.count))
    for key, value in (("inputs", args.count), ("rejected", broken)):
        if written[key] != value:
            wrong.append(f"whole: {written[key]} {key}, of {value}")
    different, files, size = differences(folder / "whole", folder / "killed")
    if not different:
        print(f"Both runs have the same bytes: {files} files, {size / 1e9:.3f} GB.")
    for line in wrong + different[:20]:
        print(f"wrong: {line}")
    return 1 if wrong or different else 0


if __name__ == "__main__":
    sys.exit(main())
