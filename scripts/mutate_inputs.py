#!/usr/bin/env python3
"""Run tapeloop over mutated structure files, and fail if one of them does harm.

Every file is one of samples/ after some mutations: flipped bits, cuts, tokens and
lines that repeat, numbers that trade places or become odd ones, gzip streams that
are damaged. File number N of a seed has the same bytes on every machine.

The files are run in groups. A run is at fault if it panics, is ended by a signal,
exits with a code that does not fit its record, loses an input, or takes more time or memory
than its limit. A group at fault is run again, file by file, with the limits for
one file: 2 seconds and 256 MB (10^6 bytes, peak of the resident set) for each
100 kB of the file that have begun. The exit code is 1 if any file is at fault.

  cargo build --release --bin tapeloop
  scripts/mutate_inputs.py [--count 20000] [--seed 1] [--first N] [--keep FOLDER]
                           [--program FILE] [-- OPTIONS OF tapeloop run]
"""

import argparse
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Larger samples would spend the time on reading and not on variety.
SAMPLE_BYTES_MAX = 300_000
LIMIT_BYTES = 100_000
# What one mutation adds at most, or a token that repeats would repeat as a whole.
ADDED_BYTES_MAX = 100_000
# What a group takes for each of its files before the files are run one by one.
GROUP_SECONDS_PER_FILE = 0.1
# A run beyond this is ended by the system, so that the machine goes on.
ADDRESS_SPACE_BYTES_MAX = 4 << 30
ODD_BYTES = b"\0\n\r\t '\"#;_.?-+0123456789AZaz\x7f\xff"
ODD_NUMBERS = [b"nan", b"inf", b"-0.000", b"1e308", b"9999.999", b"-9999", b"2147483648", b"0", b"?", b"."]
TOKEN = re.compile(rb"[^\s]+")
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


def samples():
    """The unpacked text and the suffix of each sample, by name."""
    found = []
    for path in sorted((ROOT / "samples").iterdir()):
        name = path.name.removesuffix(".gz")
        if not name.endswith((".pdb", ".cif")):
            continue
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(text) <= SAMPLE_BYTES_MAX:
            found.append((text, name[-4:]))
    return found


def pick(rng, pattern, text):
    """A match of the pattern at or after a random place."""
    return pattern.search(text, rng.randrange(len(text))) or pattern.search(text)


def flip_bits(rng, text):
    for _ in range(rng.choice([1, 2, 20])):
        at = rng.randrange(len(text))
        text[at] ^= 1 << rng.randrange(8)


def set_bytes(rng, text):
    for _ in range(rng.choice([1, 2, 8])):
        text[rng.randrange(len(text))] = rng.choice(ODD_BYTES)


def cut_end(rng, text):
    del text[rng.randrange(len(text)) :]


def cut_span(rng, text):
    at = rng.randrange(len(text))
    del text[at : at + rng.randint(1, 200)]


def repeat_token(rng, text):
    token = pick(rng, TOKEN, text)
    if token:
        times = min(rng.choice([1, 2, 10, 1000]), ADDED_BYTES_MAX // len(token.group()))
        between = rng.choice([b"", b" "])
        text[token.end() : token.end()] = (between + token.group()) * times


def repeat_lines(rng, text):
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    span = lines[at : at + rng.randint(1, 20)]
    size = sum(map(len, span))
    lines[at:at] = span * min(rng.randint(1, 10), ADDED_BYTES_MAX // size)
    text[:] = b"".join(lines)


def swap_lines(rng, text):
    lines = text.splitlines(keepends=True)
    for _ in range(rng.choice([1, 2, 5])):
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    text[:] = b"".join(lines)


def swap_numbers(rng, text):
    for _ in range(rng.choice([1, 2, 10])):
        a, b = pick(rng, NUMBER, text), pick(rng, NUMBER, text)
        if a and b and a.end() <= b.start():
            first, second = a.group(), b.group()
            text[b.start() : b.end()] = first
            text[a.start() : a.end()] = second


def odd_number(rng, text):
    for _ in range(rng.choice([1, 2, 10])):
        number = pick(rng, NUMBER, text)
        if number:
            odd = rng.choice(ODD_NUMBERS)
            # In the columns of a PDB file, or as a token of any length.
            width = len(number.group())
            text[number.start() : number.end()] = odd.rjust(width)[:width] if rng.random() < 0.5 else odd


MUTATIONS = [
    flip_bits,
    set_bytes,
    cut_end,
    cut_span,
    repeat_token,
    repeat_lines,
    swap_lines,
    swap_numbers,
    odd_number,
]


def mutated(seed, number, originals):
    """The bytes and the suffix of a file."""
    rng = random.Random(f"{seed}/{number}")
    original, suffix = originals[number % len(originals)]
    text = bytearray(original)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if text:
            rng.choice(MUTATIONS)(rng, text)
    if rng.random() >= 0.1:
        return bytes(text), suffix
    packed = bytearray(gzip.compress(text, compresslevel=1, mtime=0))
    if rng.random() < 0.5:
        rng.choice([flip_bits, cut_end, cut_span])(rng, packed)
    return bytes(packed), suffix + ".gz"


class Fault(Exception):
    """What is wrong with a run."""


def run(program, options, files, folder, seconds_max):
    """Runs the files; returns the seconds, the peak in bytes and the rejected inputs."""
    listed = folder / "files.txt"
    listed.write_text("".join(f"{file}\n" for file in files))
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [program, "run", "--backend", "cpu", "--quiet", "--input", f"@{listed}"]
    command += ["--output", str(out), *options]
    limits = (ADDRESS_SPACE_BYTES_MAX, ADDRESS_SPACE_BYTES_MAX)
    log = folder / "stderr.txt"
    start = time.monotonic()
    with log.open("wb") as stderr:
        child = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
        )
    signal.alarm(max(1, int(seconds_max + 1)))
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except TimeoutError:
        child.kill()
        child.wait()
        raise Fault(f"it takes more than {seconds_max:.1f} s") from None
    finally:
        signal.alarm(0)
    seconds = time.monotonic() - start
    # Popen does not know that the child was waited for.
    child.returncode = status
    said = log.read_text(errors="backslashreplace")
    end = f": {said[-500:]!r}" if said else ""
    if os.WIFSIGNALED(status):
        raise Fault(f"it is ended by signal {os.WTERMSIG(status)}{end}")
    if "panicked" in said:
        raise Fault(f"it panics: {said[said.index('panicked') :][:500]!r}")
    record = out / "run.json"
    counts = json.loads(record.read_text())["counts"] if record.exists() else {}
    # A run in which every input is rejected exits with code 1.
    is_empty = os.WEXITSTATUS(status) == 1 and counts.get("rejected") == len(files)
    if os.WEXITSTATUS(status) not in (0, 3) and not is_empty:
        raise Fault(f"it exits with code {os.WEXITSTATUS(status)}{end}")
    if seconds > seconds_max:
        raise Fault(f"it takes {seconds:.1f} s, more than {seconds_max:.1f}")
    if counts["inputs"] != len(files):
        raise Fault(f"{counts['inputs']} of {len(files)} inputs are counted")
    return seconds, usage.ru_maxrss * 1024, counts["rejected"]


def run_single(args, file, folder):
    """Runs one file within the limits of its size."""
    shares = max(1, -(-file.stat().st_size // LIMIT_BYTES))
    seconds_max = 2 * shares * args.slack
    bytes_max = 256_000_000 * shares
    seconds, peak, _ = run(args.program, args.options, [file], folder, seconds_max)
    if peak > bytes_max:
        raise Fault(f"it takes {peak / 1e6:.0f} MB, more than {bytes_max / 1e6:.0f}")
    return seconds, peak


def on_alarm(_signal, _frame):
    raise TimeoutError


def main():
    own = sys.argv[1:]
    options = own[own.index("--") + 1 :] if "--" in own else []
    own = own[: own.index("--")] if "--" in own else own
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", default=str(ROOT / "target/release/tapeloop"))
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", type=int, default=200)
    parser.add_argument("--slack", type=float, default=1.0, help="factor of the time limits, for builds without optimization")
    parser.add_argument("--keep", type=Path, help="folder for the files at fault")
    args = parser.parse_args(own)
    args.options = options
    signal.signal(signal.SIGALRM, on_alarm)
    originals = samples()
    faults, rejected, slowest, largest = [], 0, 0.0, 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for first in range(args.first, args.first + args.count, args.group):
            files = []
            for number in range(first, min(first + args.group, args.first + args.count)):
                content, suffix = mutated(args.seed, number, originals)
                files.append(folder / f"{number:06}{suffix}")
                files[-1].write_bytes(content)
            seconds_max = (2 + GROUP_SECONDS_PER_FILE * len(files)) * args.slack
            try:
                seconds, peak, count = run(args.program, options, files, folder, seconds_max)
                rejected += count
                slowest, largest = max(slowest, seconds), max(largest, peak)
                at_fault = peak > 256_000_000
            except Fault as fault:
                print(f"files {first} to {first + len(files) - 1}: {fault}", flush=True)
                at_fault = True
            for file in files:
                if at_fault:
                    try:
                        run_single(args, file, folder)
                    except Fault as fault:
                        print(f"AT FAULT {file.name}: {fault}", flush=True)
                        faults.append(file.name)
                        if args.keep:
                            args.keep.mkdir(parents=True, exist_ok=True)
                            shutil.copy(file, args.keep)
                file.unlink()
    print(
        f"{args.count} files of seed {args.seed} in {time.monotonic() - start:.0f} s: "
        f"{len(faults)} at fault, {rejected} rejected; a group of {args.group} takes at most "
        f"{slowest:.1f} s and {largest / 1e6:.0f} MB"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
