"""Writes the trajectories of this folder with MDAnalysis 2.11 (pip install MDAnalysis)."""

import pathlib
import warnings

import MDAnalysis
import numpy

FRAMES = 3
here = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")
universe = MDAnalysis.Universe(here / "../../../samples/1ubi.pdb")
lines = (here / "../../../samples/1ubi.pdb").read_text().splitlines()
lines = [line for line in lines if line.startswith(("ATOM", "HETATM"))]
assert len(lines) == len(universe.atoms)


def milli(text):
    """A coordinate in 0.001 A, rounded to the 0.01 A that XTC keeps."""
    value = round(float(text) * 1000)
    return (value + 5) // 10 * 10


atoms = numpy.array([[milli(line[at : at + 8]) for at in (30, 38, 46)] for line in lines])
for ending in ("xtc", "dcd"):
    with MDAnalysis.Writer(str(here / f"1ubi.{ending}"), len(atoms), dt=2.0) as writer:
        for frame in range(FRAMES):
            shift = 10 * ((7 * numpy.arange(len(atoms)) + 3 * frame) % 5) + 1000 * frame
            universe.atoms.positions = (atoms + shift[:, None]) / 1000
            universe.trajectory.ts.frame = frame
            universe.dimensions = [60, 60, 60, 90, 90, 90]
            writer.write(universe)
