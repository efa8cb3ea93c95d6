#!/usr/bin/env python3
"""Tables and verdicts from the lines of scripts/compare_replay.sh.

    scripts/compare_replay.py LINES.jsonl

Ratios are of figures of one round, and their median over the rounds counts.
"""

import json
import statistics
import sys
from collections import defaultdict

PROGRAMS = ("cpp", "rust", "torch")
SMALL = 16 << 10
LARGE = 8 << 20

# The layer whose latency counts: the caller-driven pipeline, once it is there.
LATENCY = ("latency_pipeline_", "latency_")
FAILED = []


class Lines:
    """Figures by program, case, size, kernels, slots and host copies, then round."""

    def __init__(self, path):
        self.figures = defaultdict(dict)
        self.devices = {}
        with open(path) as file:
            for text in file:
                self.take(json.loads(text))

    def take(self, line):
        if line["case"] == "device":
            kept = ("device", "driver", "backend", "commit", "runtime", "torch")
            self.devices[line["who"]] = {key: line[key] for key in kept if key in line}
            return
        for name in ("period_ns", "p50_ns", "host_p50_ns"):
            if name in line:
                shape = (line["bytes"], line["kernels"], line["slots"], line["host_copies"])
                self.figures[(line["who"], line["case"], *shape)][line["round"]] = line

    def rounds(self, who, case, size=SMALL, kernels=12, slots=4, copies=False):
        """The main figure of a case, by round; empty if it was not run."""
        lines = self.figures.get((who, case, size, kernels, slots, copies), {})
        return {number: main(line) for number, line in lines.items()}


def main(line):
    return next(line[name] for name in ("period_ns", "p50_ns", "host_p50_ns") if name in line)


def shown(nanoseconds):
    return f"{nanoseconds / 1000:.2f}"


def size_name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size / 1024:g} KiB"


def print_cases(lines):
    """Every case but those of the sweep, the programs side by side."""
    rows = defaultdict(dict)
    for (who, case, size, kernels, slots, copies), by_round in lines.figures.items():
        if not case.startswith("sweep_"):
            rows[(case, size, kernels, slots, copies)][who] = by_round
    kinds = {"period_ns": "a batch, closed loop", "p50_ns": "latency", "host_p50_ns": "host time"}
    for figure, title in kinds.items():
        print(f"\n{title}, us: median over rounds of each round's median (least - most; p99; openings)")
        print(f"{'case':<34}{'up':>8}{'k':>4}{'slots':>6}{'copies':>7}", end="")
        print("".join(f" {who:>42}" for who in PROGRAMS))
        for (case, size, kernels, slots, copies), by_who in rows.items():
            first = next(iter(next(iter(by_who.values())).values()))
            if figure not in first:
                continue
            print(f"{case:<34}{size_name(size):>8}{kernels:>4}{slots:>6}", end="")
            print(f"{'host' if copies else '-':>7}", end="")
            print("".join(f" {cell(by_who.get(who)):>42}" for who in PROGRAMS))


def cell(by_round):
    if not by_round:
        return "-"
    values = [main(line) for line in by_round.values()]
    tails = [line.get("p99_ns", line.get("host_p99_ns")) for line in by_round.values()]
    tail = "" if tails[0] is None else f"; {statistics.median(tails) / 1000:.1f}"
    if "opening_least_ns" in (line := next(iter(by_round.values()))):
        tail += f"; {line['opening_least_ns'] / 1000:.1f}..{line['opening_most_ns'] / 1000:.1f}"
    least, most = min(values) / 1000, max(values) / 1000
    return f"{shown(statistics.median(values))} ({least:.2f} - {most:.2f}{tail})"


def print_sweep(lines):
    variants = ("copy", "mapped_up", "mapped_down", "mapped")
    sizes = sorted({key[2] for key in lines.figures if key[1] == "sweep_copy"})
    if not sizes:
        return
    print("\nlatency of copies against mapped buffers, 3 kernels, us")
    print(f"{'bytes each way':<16}" + "".join(f"{variant:>13}" for variant in variants))
    # The sizes from the least on at which a variant beat the copy; it has lost at
    # the first that is missing here.
    won = {variant: [] for variant in variants[1:]}
    for index, size in enumerate(sizes):
        medians = {}
        for variant in variants:
            figures = lines.rounds("rust", f"sweep_{variant}", size, 3, 1).values()
            if figures:
                medians[variant] = statistics.median(figures)
        texts = (shown(medians[v]) if v in medians else "-" for v in variants)
        print(f"{size_name(size):<16}" + "".join(f"{text:>13}" for text in texts))
        for variant, sizes_won in won.items():
            faster = medians.get(variant, 0) < medians.get("copy", 0)
            if faster and len(sizes_won) == index:
                sizes_won.append(size)
    for variant, sizes_won in won.items():
        upto = f"up to {size_name(sizes_won[-1])}" if sizes_won else "at no size"
        print(f"  {variant}: faster than the copy {upto}")


def print_ladder(lines):
    """The ladder's calls for each node that they change."""
    print("\nupdates of a graph, host time, ns: whole call, nodes, for each node")
    for (who, case, *_), by_round in lines.figures.items():
        first = next(iter(by_round.values()))
        if "nodes" in first:
            whole = statistics.median(main(line) for line in by_round.values())
            nodes, rung = first["nodes"], first.get("rung", "")
            print(f"  {who:<6}{case:<34}{whole:>9.0f}{nodes:>4}{whole / nodes:>9.0f}  {rung}")


def ratio(above, below):
    """The median of the ratios of each round, the least and the most."""
    ratios = [above[number] / below[number] for number in above if below.get(number)]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def verdict(what, above, below, limit=None, at_least=False):
    """Prints a ratio against its limit; without a limit for information."""
    found = ratio(above, below)
    sign = ">=" if at_least else "<="
    bound = "" if limit is None else f"{sign} {limit:g}"
    if found is None:
        print(f"  {'MISSING' if limit is not None else 'missing':<8}{what:<70}{bound:>8}")
        if limit is not None:
            FAILED.append(f"{what} (not measured)")
        return
    middle, least, most = found
    word = "info"
    if limit is not None:
        held = middle >= limit if at_least else middle <= limit
        word = "pass" if held else "FAIL"
        if not held:
            FAILED.append(what)
    print(f"  {word:<8}{what:<70}{bound:>8}{middle:>8.3f}  ({least:.3f} - {most:.3f})")


def print_verdicts(lines):
    get = lines.rounds
    print("\nratios: limit, median over rounds, (least - most)")
    print("a. 12 kernels, 16 KiB each way, 4 slots")
    graph = get("rust", "graph")
    verdict("rust graph / C++ graph", graph, get("cpp", "graph"), 1.10)
    for name in ("kernels_per_slot", "mapped", "kernels_per_stage", "stream"):
        verdict(f"rust {name} / C++ {name}", get("rust", name), get("cpp", name))
    verdict("rust explicit / C++ graph", get("rust", "explicit"), get("cpp", "graph"))
    verdict("rust stream / rust graph", get("rust", "stream"), graph, 4, at_least=True)
    documented = get("torch", "graph_documented")
    what = "PyTorch graph, used as documented / rust graph"
    verdict(what, documented, graph, 2, at_least=True)
    verdict("PyTorch graph, copies captured and events polled / rust graph",
            get("torch", "graph"), graph)
    copied = get("cpp", "graph", copies=True)
    for case in ("graph", "pipeline_graph", "engine_graph"):
        what = f"with host copies: rust {case} / C++ graph"
        verdict(what, get("rust", case, copies=True), copied)
    for case in ("graph_documented", "graph"):
        what = f"with host copies: PyTorch {case} / rust pipeline_graph"
        verdict(what, get("torch", case, copies=True), get("rust", "pipeline_graph", copies=True))

    print("b. 8 MiB up, 12 kernels, 4 MiB down, 3 slots")
    stages = {who: slowest_stage(lines, who) for who in ("cpp", "rust")}
    large = {"size": LARGE, "slots": 3}
    for name in ("graph", "explicit", "kernels_per_slot", "kernels_per_stage"):
        limit = 1.06 if name == "graph" else None
        figures = get("rust", name, **large)
        verdict(f"rust {name} / slowest stage of C++", figures, stages["cpp"], limit)
    verdict("rust graph / slowest stage of rust", get("rust", "graph", **large), stages["rust"])
    verdict("C++ graph / slowest stage of C++", get("cpp", "graph", **large), stages["cpp"])

    print("c. latency of one batch, 16 KiB, p50")
    layer = next(name for name in LATENCY if latency(lines, name + "graph") or name == LATENCY[-1])
    plain = get("cpp", "latency_graph", slots=1)
    one = latency(lines, layer + "graph")
    verdict(f"rust {layer}graph / C++ launch + sync", one, plain, 1.15)
    what = f"rust {layer}mapped / rust {layer}graph"
    verdict(what, latency(lines, layer + "mapped"), one, 0.8)
    what = "rust latency_mapped / rust latency_graph"
    verdict(what, latency(lines, "latency_mapped"), latency(lines, "latency_graph"))
    verdict("C++ mapped / C++ graph", get("cpp", "latency_mapped", slots=1), plain)
    hosted = get("cpp", "latency_graph", slots=1, copies=True)
    verdict(f"rust {layer}graph / C++ launch + sync + host copies", one, hosted)
    for case in ("latency_graph", "latency_graph_poll", "latency_engine_ticket"):
        verdict(f"rust {case} / C++ launch + sync", latency(lines, case), plain)

    print("d. host time of a launch and its mark, 1 to 100 kernels: most / least")
    for who, case, limit in (("rust", "host_kernels", 1.2), ("rust", "host_batch", None),
                             ("cpp", "host_kernels", None), ("cpp", "host_batch", None)):
        chains = [get(who, case, kernels=kernels, slots=1) for kernels in (1, 3, 10, 30, 100)]
        # A figure moves by microseconds now and then: medians first.
        medians = [statistics.median(chain.values()) for chain in chains if chain]
        whole = len(medians) == len(chains)
        most, least = ({0: max(medians)}, {0: min(medians)}) if whole else ({}, {})
        verdict(f"{who} {case}", most, least, limit)


def latency(lines, case):
    plain = lines.rounds("rust", case, slots=1)
    # The layers above the executor always copy in and out.
    return plain or lines.rounds("rust", case, slots=1, copies=True)


def slowest_stage(lines, who):
    names = ("stage_upload", "stage_kernels", "stage_download")
    stages = [lines.rounds(who, name, LARGE, slots=3) for name in names]
    common = set.intersection(*(set(stage) for stage in stages))
    return {number: max(stage[number] for stage in stages) for number in common}


def report(path):
    lines = Lines(path)
    for who, device in lines.devices.items():
        print(f"{who:<6}" + ", ".join(f"{key} {value}" for key, value in device.items()))
    print_cases(lines)
    print_ladder(lines)
    print_sweep(lines)
    print_verdicts(lines)
    if lines.devices.get("rust", {}).get("backend") != "cuda":
        FAILED.append("the engine ran without a GPU")
    print(f"\nfailed: {'; '.join(FAILED)}" if FAILED else "\nall limits hold")
    return 1 if FAILED else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(report(sys.argv[1]))
