#!/usr/bin/env python3
"""Features on one CPU thread: tapeloop beside the tools that people use today.

Reads a folder of structures once with gemmi (heavy polymer atoms, one conformer
a residue), then times each tool and tapeloop in turn (A B A B ...), and prints
the best of each, in atoms a second, with their ratio. Kernel rates are of
structures that are in memory: for tapeloop that is the compute stage of
run.json. Everything runs on one core, which should have nothing else to do.

    pip install gemmi==0.7.5 numpy freesasa==2.2.1 zsasa==0.11.0 mdtraj==1.11.1.post2 biotite==1.6.0
    apt-get install dssp
    taskset -c 0 python3 benches/reference/cpu_features.py FOLDER target/release/tapeloop

The column `must` is the ratio that has to hold; a row without one only informs.
A tool that is not installed is skipped by name. RustSASA's is the crate beside this
file, which cargo builds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np

import tools
from tools import Ran, Settings, Skipped, Structures, needs

MKDSSP_FILES = 20  # it takes seconds a file


def zsasa(precision):
    def tool(structures, scratch, settings):
        return tools.zsasa(structures, scratch, replace(settings, precision=precision))

    return tool


def mdtraj_trajectory(package, structure):
    topology = package.Topology()
    xyz = []
    for chain in structure[0]:
        in_topology = topology.add_chain()
        for residue in chain:
            row = topology.add_residue(residue.name, in_topology)
            for atom in residue:
                topology.add_atom(atom.name, package.element.carbon, row)
                xyz.append(atom.pos.tolist())
    return package.Trajectory(np.array([xyz], dtype=np.float32) / 10, topology)


def mdtraj_whole(structures, _scratch, _settings):
    name = needs("mdtraj")
    import mdtraj as package

    trajectories = [mdtraj_trajectory(package, s) for _, s in structures.models]

    def run():
        start = time.perf_counter()
        strings = ["".join(package.compute_dssp(t, simplified=False)[0]) for t in trajectories]
        return Ran(time.perf_counter() - start, sum(s.count("H") for s in strings))

    return f"{name}, compute_dssp", structures.atoms, run


def mdtraj_kernel(structures, _scratch, _settings):
    name = needs("mdtraj")
    import mdtraj as package
    from mdtraj.geometry import _geometry
    from mdtraj.geometry.hbond import _prep_kabsch_sander_arrays

    arrays = []
    for _, structure in structures.models:
        trajectory = mdtraj_trajectory(package, structure)
        chains = np.array([r.chain.index for r in trajectory.top.residues], dtype=np.int32)
        arrays.append((*_prep_kabsch_sander_arrays(trajectory)[:4], chains))

    def run():
        start = time.perf_counter()
        strings = [_geometry._dssp(*a) for a in arrays]
        return Ran(time.perf_counter() - start, sum(s.count("H") for s in strings))

    return f"{name}, its C kernel alone", structures.atoms, run


# Not what its users call: shown beside the others, with no ratio to hold.
INFORMATIVE = {mdtraj_kernel}


def mkdssp(structures, scratch, _settings):
    program = shutil.which("mkdssp")
    if not program:
        raise Skipped("no mkdssp")
    release = subprocess.check_output([program, "--version"], text=True).split()[2]
    files, atoms = [], 0
    for number, xyz in enumerate(structures.xyz[:MKDSSP_FILES]):
        path = scratch / f"{number}.pdb"
        header = "HEADER    PROTEIN                                 01-JAN-00   1ABC\n"
        body = structures.models[number][1].make_pdb_string(gemmi.PdbWriteOptions(minimal=True))
        path.write_text(header + body)
        files.append(path)
        atoms += len(xyz)

    def run():
        start, helical = time.perf_counter(), 0
        for path in files:
            command = [program, "--quiet", "--output-format", "dssp", path, path.with_suffix(".dssp")]
            subprocess.run(command, check=False, capture_output=True)
        seconds = time.perf_counter() - start
        for path in files:
            rows = path.with_suffix(".dssp")
            lines = rows.read_text().splitlines() if rows.exists() else []
            helical += sum(line[16:17] == "H" for line in lines)
        return Ran(seconds, helical)

    return f"mkdssp {release}, {len(files)} files", atoms, run


# ---- tapeloop


class Tapeloop:
    """Runs of the program on one thread, over the same folder."""

    def __init__(self, program, folder, scratch):
        self.program, self.folder, self.scratch = program, folder, scratch

    def run(self, features, settings):
        """Return seconds of the whole run, of the compute stage, and atoms."""
        out = self.scratch / "run"
        command = [self.program, "run", "--input", self.folder, "--output", out, "--overwrite"]
        command += ["--quiet", "--backend", "cpu", "--threads", "1"]
        for setting in [f"features={json.dumps(features)}", *settings]:
            command += ["--set", setting]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode not in (0, 3):  # 3: with rejected inputs
            raise Skipped(done.stderr.strip().splitlines()[0])
        report = json.loads((out / "run.json").read_text())
        return seconds, report["stage_seconds"]["compute"], report["counts"]["atoms"]


def cases(points):
    """Title, tools, tapeloop's features and settings, kernel alone, ratio that must hold."""
    sasa = ["sasa"], [f"sasa.points={points}"]
    contacts = ["contact_number"], ["contact_number.cb=[]"]
    exact = [zsasa("f32"), zsasa("f64")]
    every = "all", [f"sasa.points={points}"]
    return [
        (f"SASA, {points} points, kernel", [tools.rustsasa_kernel, tools.freesasa], *sasa, True, 4),
        (f"SASA, {points} points, files to table", exact, *sasa, False, 4),
        ("DSSP", [mdtraj_whole, mdtraj_kernel, mkdssp], ["dssp"], [], True, 4),
        ("contact numbers at 8, 10 and 12 A", [tools.biotite_contacts], *contacts, True, 3),
        ("all features against SASA alone, files to table", exact, *every, False, 1),
    ]


def compare(tool, structures, scratch, ours, case, arguments):
    title, _, features, settings, kernel, required = case
    if tool in INFORMATIVE:
        required = None
    name, atoms, run = tool(structures, scratch, Settings(arguments.points))
    theirs_s, ours_s, our_atoms, totals = [], [], None, set()
    for _ in range(arguments.rounds):
        seconds, total, _ = run()
        theirs_s.append(seconds)
        totals.add(total)
        if ours:
            try:
                whole, compute, our_atoms = ours.run(features, settings)
                ours_s.append(compute if kernel else whole)
            except Skipped as why:
                print(f"{title}: not run by tapeloop: {why}")
                ours = None
    if len(totals) > 1:
        raise SystemExit(f"{name} does not repeat: {totals}")
    theirs = atoms / min(theirs_s)
    row = {"case": title, "tool": name, "atoms": atoms, "atoms_per_s": theirs, "total": totals.pop()}
    line = f"{title:48} {name:40} {theirs / 1e6:9.3f}"
    if ours:
        rate = our_atoms / min(ours_s)
        row |= {"tapeloop_atoms_per_s": rate, "ratio": rate / theirs}
        line += f" {rate / 1e6:9.3f} {rate / theirs:7.2f}"
        if required is not None:
            row["required"] = required
            verdict = "holds" if rate / theirs >= required else "MISSED"
            line += f" {required:>5} {verdict}"
    print(line, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of structure files")
    parser.add_argument("tapeloop", nargs="?", help="the program; without it the others alone")
    parser.add_argument("--points", type=int, default=100, help="SASA points (default: 100)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--json", type=Path, help="write the rows there too")
    parser.add_argument("--only", help="cases whose title has this in it")
    arguments = parser.parse_args()

    # Threads of NumPy and of the tools would take other cores.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    structures = Structures(sorted(arguments.folder.iterdir()))
    residues = sum(map(len, structures.ca))
    print(f"{len(structures.models)} structures, {structures.atoms} atoms, {residues} C-alphas;", end=" ")
    print(f"load {os.getloadavg()[0]:.2f}; best of {arguments.rounds}, M atoms/s")
    print(f"{'case':48} {'tool':40} {'theirs':>9} {'tapeloop':>9} {'ratio':>7} {'must':>5}")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        ours = Tapeloop(arguments.tapeloop, arguments.folder, scratch) if arguments.tapeloop else None
        for case in cases(arguments.points):
            if arguments.only and arguments.only not in case[0]:
                continue
            for tool in case[1]:
                try:
                    rows.append(compare(tool, structures, scratch, ours, case, arguments))
                except Skipped as why:
                    print(f"{case[0]:48} skipped: {why}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    missed = [row for row in rows if row.get("ratio", 1) < row.get("required", 0)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
