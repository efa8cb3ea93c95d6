"""Tools that people use on one CPU, as cpu_features.py and cpu_tools.py run them.

A tool takes structures, a scratch folder and settings, and gives its name, the atoms that
a run takes, and what runs it once.
"""

import gzip
import importlib.metadata
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

try:
    import gemmi
    import numpy as np
except ImportError:
    gemmi = np = None

HERE = Path(__file__).resolve().parent
PROBE = 1.4
# Elements' radii in A, as tapeloop's where the atom is in no table.
RADII = {"C": 1.88, "N": 1.64, "O": 1.46, "S": 1.77, "P": 1.80, "Se": 1.90}
CUTOFFS = (8.0, 10.0, 12.0)


class Skipped(Exception):
    """What a tool lacks."""


@dataclass(frozen=True)
class Settings:
    points: int = 100
    threads: int = 1
    precision: str = "f64"  # of zsasa


class Ran(NamedTuple):
    seconds: float
    check: int  # what must not change
    failed: int = 0  # structures that the tool made nothing of


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def needs(package):
    try:
        importlib.import_module(package)
    except ImportError:
        raise Skipped(f"no {package}") from None
    return f"{package} {version(package)}"


class Structures:
    """What gemmi read: atoms, C-alphas, and the models themselves."""

    def __init__(self, paths):
        needs("gemmi")
        needs("numpy")
        self.models, self.xyz, self.radii, self.ca = [], [], [], []
        for path in paths:
            try:
                structure = gemmi.read_structure(str(path))
            except (ValueError, RuntimeError):
                continue
            if not len(structure):
                continue
            structure.setup_entities()
            structure.remove_ligands_and_waters()
            structure.remove_hydrogens()
            structure.remove_alternative_conformations()
            atoms = [site.atom for site in structure[0].all()]
            if not atoms:
                continue
            self.models.append((path, structure))
            self.xyz.append(np.array([a.pos.tolist() for a in atoms]))
            self.radii.append(np.array([RADII.get(a.element.name, 1.80) for a in atoms]))
            self.ca.append(np.array([a.pos.tolist() for a in atoms if a.name == "CA"]))
        self.atoms = sum(map(len, self.xyz))

    @property
    def paths(self):
        return [path for path, _ in self.models]

    def write_packed(self, path):
        """As rustsasa reads them."""
        with open(path, "wb") as out:
            for xyz, radii in zip(self.xyz, self.radii, strict=True):
                out.write(np.uint32(len(xyz)).tobytes())
                out.write(np.concatenate([xyz, radii[:, None]], axis=1).astype("<f4").tobytes())

    def write_list(self, path):
        path.write_text("".join(f"{structure}\n" for structure in self.paths))

    def linked_in(self, scratch):
        """A folder of them, for a tool that takes one."""
        folder = Path(tempfile.mkdtemp(dir=scratch))
        for number, path in enumerate(self.paths):
            (folder / f"{number:06}_{path.name}").symlink_to(path.absolute())
        return folder


# ---- Over structures, in Python


class Each:
    """Calls `work` for each item: it gives a number, or fails."""

    def __init__(self, work, items, threads):
        self.work, self.items = work, items
        self.pool = None
        if threads > 1:
            # Forked, so that the items are there.
            context = multiprocessing.get_context("fork")
            self.pool = context.Pool(threads, set_shared, (self,))

    def one(self, index):
        try:
            return self.work(self.items[index]), 0
        except Exception:
            return 0, 1

    def __call__(self):
        start = time.perf_counter()
        indices = range(len(self.items))
        if self.pool:
            results = self.pool.map(of_shared, indices, chunksize=4)
        else:
            results = [self.one(index) for index in indices]
        seconds = time.perf_counter() - start
        return Ran(seconds, round(sum(r[0] for r in results)), sum(r[1] for r in results))


def set_shared(each):
    global SHARED
    SHARED = each


def of_shared(index):
    return SHARED.one(index)


# ---- Areas


def freesasa(structures, _scratch, settings):
    name = needs("freesasa")
    import freesasa as package

    package.setVerbosity(package.nowarnings)
    values = {"algorithm": package.ShrakeRupley, "probe-radius": PROBE}
    parameters = package.Parameters({**values, "n-points": settings.points, "n-threads": 1})

    def area(item):
        xyz, radii = item
        return package.calcCoord(xyz.ravel(), radii, parameters).totalArea()

    items = list(zip(structures.xyz, structures.radii, strict=True))
    return f"{name}, kernel", structures.atoms, Each(area, items, settings.threads)


def biotite_sasa(structures, _scratch, settings):
    name = needs("biotite")
    import biotite.structure as package

    def area(item):
        array, radii = item
        found = package.sasa(
            array, PROBE, ignore_ions=False, point_number=settings.points, vdw_radii=radii
        )
        return float(np.nansum(found))

    items = []
    for xyz, radii in zip(structures.xyz, structures.radii, strict=True):
        array = package.AtomArray(len(xyz))
        array.coord[:] = xyz
        items.append((array, radii))
    return f"{name}, sasa", structures.atoms, Each(area, items, settings.threads)


def rustsasa_program():
    """Cargo builds it; RUSTSASA names one that is built."""
    built = os.environ.get("RUSTSASA")
    if built:
        return Path(built)
    if not shutil.which("cargo"):
        raise Skipped("no cargo to build rust-sasa with")
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target" / "reference"))
    manifest = HERE / "rustsasa" / "Cargo.toml"
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", manifest]
    if subprocess.run([*command, "--target-dir", target], check=False).returncode:
        raise Skipped("rust-sasa was not built")
    return target / "release" / "rustsasa"


def rustsasa_version():
    manifest = (HERE / "rustsasa" / "Cargo.toml").read_text()
    return re.search(r'rust-sasa = "=([\d.]+)"', manifest)[1]


def rustsasa(part, written, structures, scratch, settings):
    program = rustsasa_program()
    structures_file = scratch / f"rustsasa.{part}"
    written(structures, structures_file)
    numbers = [str(settings.points), str(settings.threads)]

    def run():
        done = subprocess.check_output([program, part, structures_file, *numbers], text=True)
        seconds, total, failed = done.split()
        return Ran(float(seconds), round(float(total)), int(failed))

    return f"RustSASA {rustsasa_version()}, {part}", structures.atoms, run


def rustsasa_kernel(*arguments):
    return rustsasa("kernel", Structures.write_packed, *arguments)


def rustsasa_files(*arguments):
    return rustsasa("files", Structures.write_list, *arguments)


def run_program(command, table, area_of, files):
    """A run of a program that writes a line of JSON for each file."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    areas = [area_of(json.loads(line)) for line in table.read_text().splitlines()]
    failed = files - sum(area is not None for area in areas)
    return Ran(seconds, round(sum(filter(None, areas))), failed)


def zsasa(structures, scratch, settings):
    name = needs("zsasa")
    import zsasa as package

    program = Path(package.__file__).parent / "zsasa"
    table = scratch / "zsasa.jsonl"
    command = [program, "batch", structures.linked_in(scratch), "-o", table, "--format=jsonl", "-q"]
    command += [f"--threads={settings.threads}", f"--n-points={settings.points}"]
    command += [f"--precision={settings.precision}"]

    def run():
        files = len(structures.models)
        return run_program(command, table, lambda row: row.get("total_area"), files)

    return f"{name}, {settings.precision}, files to table", structures.atoms, run


def lahuta_sasa(structures, scratch, settings):
    name = needs("lahuta")
    import lahuta as package

    program = Path(package.__file__).parents[1] / "bin" / "lahuta"
    paths, table = scratch / "lahuta.txt", scratch / "lahuta.jsonl"
    structures.write_list(paths)
    command = [program, "--progress", "0", "sasa-sr", "--file-list", paths, "--is_af2_model"]
    command += ["--points", settings.points, "--threads", settings.threads, "--output", table]

    def run():
        files = len(structures.models)
        ran = run_program(list(map(str, command)), table, lambda row: sum(row["sasa"]), files)
        if ran.failed:
            raise Skipped("lahuta sasa-sr takes AlphaFold's models only")
        return ran

    return f"{name}, sasa-sr, files to table", structures.atoms, run


# ---- Contact numbers of C-alphas


def biotite_contacts(structures, _scratch, settings):
    name = needs("biotite")
    from biotite.structure import CellList

    def contacts(ca):
        total = 0
        for cutoff in CUTOFFS:
            found = CellList(ca, cell_size=cutoff).get_atoms(ca, cutoff)
            total += int(((found >= 0).sum(axis=1) - 1).sum())
        return total

    clouds = [ca.astype(np.float32) for ca in structures.ca if len(ca)]
    return f"{name}, CellList", structures.atoms, Each(contacts, clouds, settings.threads)


def gemmi_contacts(structures, _scratch, settings):
    name = needs("gemmi")

    def contacts(item):
        model, positions = item
        total = 0
        for cutoff in CUTOFFS:
            search = gemmi.NeighborSearch(model, gemmi.UnitCell(), cutoff).populate()
            near = [len(search.find_atoms(p, "\0", radius=cutoff)) - 1 for p in positions]
            total += sum(near)
        return total

    items = []
    for ca in structures.ca:
        if len(ca):
            positions = [gemmi.Position(*xyz) for xyz in ca]
            items.append((model_of(positions), positions))
    return f"{name}, NeighborSearch", structures.atoms, Each(contacts, items, settings.threads)


def model_of(positions):
    """A gemmi model with a C-alpha at each position."""
    chain = gemmi.Chain("A")
    for number, position in enumerate(positions):
        residue, atom = gemmi.Residue(), gemmi.Atom()
        residue.name, residue.seqid = "ALA", gemmi.SeqId(number + 1, " ")
        atom.name, atom.element, atom.pos = "CA", gemmi.Element("C"), position
        residue.add_atom(atom)
        chain.add_residue(residue)
    model = gemmi.Model(1)
    model.add_chain(chain)
    return model


def lahuta_contacts(structures, _scratch, settings):
    name = needs("lahuta")
    from lahuta.lib.lahuta.neighbors import radius_neighbors_flat

    def contacts(ca):
        total = 0
        for cutoff in CUTOFFS:
            _, starts = radius_neighbors_flat(ca, cutoff)
            total += int(np.diff(starts).sum())
        return total

    clouds = [ca for ca in structures.ca if len(ca)]
    return f"{name}, radius_neighbors", structures.atoms, Each(contacts, clouds, settings.threads)


# ---- Reading files


def gemmi_read(structures, _scratch, settings):
    name = needs("gemmi")

    def atoms(path):
        return gemmi.read_structure(str(path))[0].count_atom_sites()

    return f"{name}, read_structure", structures.atoms, Each(atoms, structures.paths, settings.threads)


def biotite_read(structures, _scratch, settings):
    name = needs("biotite")
    from biotite.structure.io import pdb, pdbx

    # Of elements that it guessed.
    warnings.simplefilter("ignore")

    def atoms(path):
        opened = gzip.open if path.suffix == ".gz" else open
        kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
        with opened(path, "rt") as file:
            if kind in ("cif", "mmcif"):
                return pdbx.get_structure(pdbx.CIFFile.read(file), model=1).array_length()
            return pdb.PDBFile.read(file).get_structure(model=1).array_length()

    return f"{name}, get_structure", structures.atoms, Each(atoms, structures.paths, settings.threads)


def lahuta_read(structures, _scratch, settings):
    name = needs("lahuta")
    from lahuta import LahutaSystem

    def atoms(path):
        return LahutaSystem(str(path)).n_atoms

    return f"{name}, LahutaSystem", structures.atoms, Each(atoms, structures.paths, settings.threads)
