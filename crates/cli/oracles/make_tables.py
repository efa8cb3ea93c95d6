#!/usr/bin/env python3
"""Compute the features of tapeloop again, by the packages that define them, and compare.

The packages are fed with the atoms that tapeloop selected, from a dump (tables.py
says what is in it; `tapeloop validate FILE... --keep DIR` writes DIR/dump),
so that they judge the arithmetic and not the reading of files.

    make_tables.py DUMP --check RUN_DIR    the agreement table of a run's Parquet
    make_tables.py DUMP --cross            references that share a column, with each other
    make_tables.py DUMP --out DIR          golden tables, for tests without Python

The agreement table has a line a column and oracle: rows compared, null in both,
excluded (the reasons follow), wrong, the share that agrees, the worst difference
(relative where the rule is), and PASS or FAIL. What a run does not have, and
oracles whose package is not installed, are listed. Exits with 1 where anything
fails.

Settings of the features are those that the run's report names. A few can differ
from the defaults; of the others, references are of the defaults alone.
"""

import argparse
import fnmatch
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from agreement import check
from golden import write_golden
from reference import ORACLES, References
from tables import Run, config_of

# In the order of the feature set. Of oracles with one column the first is golden.
MODULES = (
    "contacts", "half_spheres", "surface", "torsions", "side_chains", "secondary", "sheets",
    "b_factors", "interfaces", "depths", "chain_pairs", "networks", "ligands", "coordinates", "summaries",
    "sequences", "headers",
)  # fmt: skip
for module in MODULES:
    importlib.import_module(module)


# Options of the script, and the settings of a run that they are.
SETTINGS = {"points": "sasa.points", "dssp": "dssp.version", "select": "cluster.select"}
DEFAULTS = {"points": 256, "dssp": 2, "select": []}
CONTACTS = {"atom": "none", "cutoff": 10.0, "nearest": 0, "chains": "all"}
# What references are of, whatever a run says.
ASSUMED = {
    "cluster.chains": "all", "contact_number.chains": "all", "contact_order.cutoff": 6.0,
    "contact_order.separation": "sequence",
    "dssp.chains": "all", "hse_a.chains": "all", "hse_a.radius": 12.0, "hse_b.chains": "all",
    "hse_b.radius": 12.0, "interface_residues.cutoff": 5.0, "ligand.cutoff": 4.5,
    "protrusion.chains": "all", "protrusion.radius": 10.0, "rsa.scale": "tien2013",
    "sasa.chains": "all",
    "sasa.probe": 1.4, "smooth.chains": "all", "smooth.radius": 10.0, "smooth.weighted": False,
    "wcn.chains": "all",
}  # fmt: skip


def take_settings(settings, config):
    """Fill in what the command line leaves open, and name what is not as assumed."""
    for option, key in SETTINGS.items():
        if getattr(settings, option) is None:
            default = DEFAULTS[option]
            setattr(settings, option, type(default)(config.get(key, default)))
    settings.depth_chains = config.get("residue_depth.chains", "all")
    by_slices = config.get("sasa.algorithm") == "lee-richards"
    settings.slices = int(config.get("sasa.slices", 20)) if by_slices else None
    settings.radii = config.get("sasa.radii", "protor")
    settings.contacts = {key: config.get(f"contacts.{key}", CONTACTS[key]) for key in CONTACTS}
    for key, value in ASSUMED.items():
        if config.get(key, value) != value:
            print(f"the run has {key} = {config[key]}, and references are of {value}")


# Columns that had another name, each with the one that it has now.
RENAMED = {"hydrogen_bonds": "backbone_hydrogen_bonds"}


def check_patterns(parser, patterns):
    """End the program if a pattern matches no column of any oracle."""
    columns = [column for oracle in ORACLES for column in oracle.rules]
    for pattern in patterns:
        if not fnmatch.filter(columns, pattern):
            new = RENAMED.get(pattern)
            hint = f"; the table interfaces names it {new} now" if new else ""
            parser.error(f"--only {pattern}: no oracle has such a column{hint}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dump", type=Path, help="folder with residues.tsv and atoms.tsv")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", type=Path, metavar="RUN_DIR", help="output of a run to compare")
    mode.add_argument("--cross", action="store_true", help="references with each other")
    mode.add_argument("--out", type=Path, metavar="DIR", help="write golden tables there")
    parser.add_argument("--points", type=int, help="SASA test points (default: the run's, or 256)")
    parser.add_argument(
        "--dssp", type=int, choices=(2, 4), help="version (default: the run's, or 2)"
    )
    parser.add_argument(
        "--select", nargs="+", metavar="RESIDUE", help="of clusters (default: the run's, or none)"
    )
    parser.add_argument(
        "--biopython", type=int, default=300, metavar="N",
        help="largest model, in residues, that Biopython computes (default: 300)",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="PATTERN", help="oracles of these columns, as hb_*"
    )
    parser.add_argument("--cache", metavar="DIR", help="keep slow references there")
    parser.add_argument("--differences", metavar="FILE", help="write all that differs there")
    parser.add_argument("--examples", type=int, default=5, help="rows named where it fails")
    parser.add_argument("--times", action="store_true", help="print the seconds of each oracle")
    settings = parser.parse_args()
    check_patterns(parser, settings.only or [])
    take_settings(settings, config_of(settings.check) if settings.check else {})

    references = References(settings)
    if settings.out:
        write_golden(references, settings.out, settings.dump)
        return 0
    run = Run(settings.check) if settings.check else None
    return 0 if check(references, settings.dump, run, settings) else 1


if __name__ == "__main__":
    sys.exit(main())
