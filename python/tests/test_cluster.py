"""The guide to clusters, with the program of the package: a loop stands for the scheduler's array, and
its parts are one run's rows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import pytapeloop

GUIDE = (Path(__file__).parents[2] / "docs/guides/cluster.md").read_text()
BLOCKS = re.findall("^```([a-z ]+)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(samples, tmp_path_factory):
    """A folder with the samples, in which the commands of the guide have run."""
    folder = tmp_path_factory.mktemp("cluster")
    shutil.copytree(samples, folder / "samples")
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{programs}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    printed = None
    for info, text in BLOCKS:
        text = re.sub(r"^tapeloop ", "pytapeloop ", text, flags=re.MULTILINE)
        if info == "text" and printed is not None:
            assert printed.split() == text.split()
        elif info in ("sh", "python"):
            command = ["sh", "-e"] if info == "sh" else [sys.executable]
            ran = subprocess.run(
                [*command, "-c", text], cwd=folder, env=environment, capture_output=True, text=True
            )
            assert ran.returncode == 0, f"{text}\n{ran.stderr}"
            printed = ran.stdout
        else:
            printed = None
    return folder


@pytest.mark.parametrize("name", ["residues", "chains", "structures"])
def test_the_shards_have_the_rows_of_one_run(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    if not Path("whole").exists():
        features = ["contact_number", "torsions", "dssp", "rg"]
        pytapeloop.run(inputs="samples", output="whole", backend="cpu", features=features)
    keys = {"residues": ["res_index"], "chains": ["auth_asym_id", "label_asym_id"], "structures": []}
    order = [(key, "ascending") for key in ["source", "model", *keys[name]]]
    parts = [pyarrow.parquet.read_table(path / name) for path in sorted(Path("out").iterdir())]
    assert len(parts) == 4 and all(part.num_rows > 0 for part in parts)
    whole = pyarrow.parquet.read_table(Path("whole") / name)
    # The shards have all features, which take long in a build without optimization.
    found = pyarrow.concat_tables(parts).select(whole.column_names)
    assert found.num_rows == whole.num_rows > 20 and found.num_columns >= 11
    assert found.sort_by(order).combine_chunks().equals(whole.sort_by(order).combine_chunks())
