"""Ray Data. The tests of the class need no Ray; the others start a cluster on this machine."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest
import pytapeloop

SETTINGS = {"features": ["contact_number", "torsions"], "backend": "cpu"}
SMALL = ("1a8o.cif.gz", "1as5.cif.gz", "1ejg.pdb.gz", "1ubi.pdb", "1yjp.cif", "5pti.cif.gz")


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    # The GPU exists for Ray's scheduler alone.
    ray.init(
        num_cpus=3, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level="warning"
    )
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def many(samples, tmp_path_factory):
    """Paths of 40 structures, and of two inputs without rows."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(40):
        name = SMALL[number % len(SMALL)]
        (folder / f"{number:03}-{name}").symlink_to(samples / name)
    (folder / "016-broken.pdb").write_text("ATOM")
    (folder / "030-missing.pdb").symlink_to(folder / "nothing")
    return sorted(map(str, folder.iterdir()))


def of_size(ray, actors):
    return ray.data.ActorPoolStrategy(size=actors)


def ordered(table, expected=None):
    """Rows in the order of their inputs, without the column of rejected inputs."""
    if "rejected" in table.column_names:
        table = table.filter(pyarrow.compute.is_null(table["rejected"])).drop_columns("rejected")
    keys = [("source", "ascending"), ("model", "ascending"), ("res_index", "ascending")]
    table = table.sort_by(keys).combine_chunks()
    return table if expected is None else table.cast(expected.schema)


def rejected(table):
    column = table["rejected"]
    return {
        row["source"]: row["rejected"]
        for row in table.filter(pyarrow.compute.is_valid(column)).to_pylist()
    }


def of_files(paths):
    """The table that one call computes."""
    existing = [path for path in paths if os.path.exists(path)]
    table = pytapeloop.features(existing, on_reject="ignore", **SETTINGS).to_arrow()
    return ordered(table)


def test_the_package_does_not_import_ray():
    program = "import sys, pytapeloop; pytapeloop.ray.Features; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd="/").returncode == 0


def test_batches_of_each_format_have_the_same_rows(many):
    engine = pytapeloop.ray.Features(**SETTINGS)
    paths, expected = many[:12], of_files(many[:12])
    batch = pyarrow.table({"path": paths})
    numpy_batch = {"path": batch["path"].to_numpy()}
    for form in (batch, batch.to_pandas(), numpy_batch):
        assert ordered(engine(form), expected).equals(expected)
    files = pyarrow.table({"path": paths, "bytes": [Path(path).read_bytes() for path in paths]})
    for form in (files, files.to_pandas()):
        assert ordered(engine(form), expected).equals(expected)
    named = pytapeloop.ray.Features(path_column="name", bytes_column="file", **SETTINGS)
    assert ordered(named(files.rename_columns(["name", "file"])), expected).equals(expected)


def test_inputs_without_rows_are_rows_of_their_own(samples, many):
    engine = pytapeloop.ray.Features(**SETTINGS)
    found = engine({"path": many})
    reasons = rejected(found)
    (broken, missing) = sorted(reasons)
    assert broken.endswith("016-broken.pdb") and missing.endswith("030-missing.pdb")
    assert reasons[broken].startswith("input: line 1: ") and reasons[broken].endswith(")")
    assert reasons[missing] == "io: no such file or folder"
    # Batches with and without such inputs, and those without inputs, have one schema.
    assert found.schema.equals(engine({"path": many[:1]}).schema, check_metadata=True)
    assert found.schema.equals(engine({"path": [broken, missing]}).schema, check_metadata=True)
    assert engine({"path": []}).schema.equals(found.schema, check_metadata=True)
    assert found.schema.field("phi").metadata[b"unit"] == b"degrees"
    # Columns of texts that are dictionaries.
    contacts = pytapeloop.ray.Features(table="contacts", contacts={"atom": "ca"}, backend="cpu")
    pairs = contacts({"path": [str(samples / "1ubi.pdb"), broken]})
    assert rejected(pairs) == {broken: reasons[broken]} and pairs.num_rows > 300


def test_a_batch_may_have_no_row_of_the_annotations(samples, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("structure,chain,residue,x\n1ubi,A,5,2\n")
    engine = pytapeloop.ray.Features(annotations=str(table), **SETTINGS)
    for name, values in (("1ubi.pdb", 1), ("1yjp.cif", 0)):
        column = engine({"path": [str(samples / name)]})["x"]
        assert len(column) - column.null_count == values


def test_mistakes_are_errors_that_name_them(many):
    with pytest.raises(pytapeloop.ConfigError, match="unknown name `torsion`"):
        pytapeloop.ray.Features("torsion")
    with pytest.raises(pytapeloop.ConfigError, match='"residue"'):
        pytapeloop.ray.Features(table="residue", backend="cpu")
    engine = pytapeloop.ray.Features(**SETTINGS)
    with pytest.raises(KeyError, match="no column 'path'.*path_column"):
        engine({"paths": many})
    with pytest.raises(TypeError, match="path None"):
        engine(pyarrow.table({"path": [many[0], None]}))
    with pytest.raises(TypeError, match="NoneType"):
        engine({"path": many[:1], "bytes": [None]})


def test_an_actor_that_is_killed_in_mid_run_loses_nothing(cluster, many, tmp_path):
    """The test kills an actor that has computed a batch and not returned it. Ray takes half a minute to
    replace one."""
    victims = {many[10]}

    class Waits(pytapeloop.ray.Features):
        def __init__(self, **settings):
            super().__init__(**settings)
            (tmp_path / f"made-{os.getpid()}").touch()

        def __call__(self, batch):
            rows = super().__call__(batch)
            for path in victims.intersection(batch["path"]):
                waiting = tmp_path / f"waits-{Path(path).name}"
                if not waiting.exists():
                    (tmp_path / "pid").write_text(str(os.getpid()))
                    (tmp_path / "pid").rename(waiting)
                    signal.pause()
            return rows

    killed = []

    def kill():
        while not is_over.wait(0.01):
            for waiting in tmp_path.glob("waits-*"):
                pid = int(waiting.read_text())
                if pid not in killed:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)

    is_over = threading.Event()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        files = cluster.data.from_items([{"path": path} for path in many])
        rows = files.map_batches(
            Waits, fn_constructor_kwargs=SETTINGS, compute=of_size(cluster, 2), batch_size=4
        )
        found = pyarrow.concat_tables(cluster.get(rows.to_arrow_refs()))
    finally:
        is_over.set()
        killer.join()
    assert len(killed) == 1
    made = {int(it.name.partition("-")[2]) for it in tmp_path.glob("made-*")}
    assert set(killed) < made and len(made) >= 2
    expected = of_files(many)
    assert ordered(found, expected).equals(expected)
    assert found.num_rows == expected.num_rows + 2
    (broken, missing) = sorted(rejected(found))
    assert broken.endswith("broken.pdb") and missing.endswith("missing.pdb")


# An actor of Ray Data has one CPU unless it is told otherwise.
@pytest.mark.parametrize(
    "cpus, gpus, threads", [(1, 0, 1), (2, 0, 2), (1, 1, 3), (1, 0.4, 1)]
)
def test_an_actor_has_threads_for_its_share_of_the_machine(cluster, samples, cpus, gpus, threads):
    class Counts(pytapeloop.ray.Features):
        def count(self):
            names = (Path(f"/proc/self/task/{task}/comm") for task in os.listdir("/proc/self/task"))
            return sum(name.read_text().startswith("tapeloop-pool") for name in names)

    actor = cluster.remote(num_cpus=cpus, num_gpus=gpus)(Counts).remote(**SETTINGS)
    assert cluster.get(actor.count.remote()) == threads
    cluster.kill(actor)


def test_files_that_ray_reads_are_written_as_parquet(cluster, samples, tmp_path):
    files = cluster.data.read_binary_files(
        [str(samples / name) for name in SMALL], include_paths=True
    )
    rows = files.map_batches(
        pytapeloop.ray.Features,
        fn_constructor_kwargs=SETTINGS,
        compute=of_size(cluster, 1),
        batch_size=2,
    )
    rows.write_parquet(str(tmp_path))
    found = pyarrow.parquet.read_table(tmp_path)
    expected = of_files([str(samples / name) for name in SMALL])
    assert ordered(found, expected).equals(expected)


def test_the_guide_runs_as_it_stands(cluster, samples, tmp_path, monkeypatch):
    guide = (Path(__file__).parents[2] / "docs/guides/cluster.md").read_text()
    (code,) = re.findall("^```python ray\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "samples").symlink_to(samples)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    found = pyarrow.parquet.read_table("rows")
    paths = sorted(map(str, samples.glob("*.pdb*")))
    expected = ordered(pytapeloop.features(paths, ["sasa", "dssp"], backend="cpu").to_arrow())
    assert ordered(found, expected).equals(expected)


def test_a_wrong_setting_ends_the_job_and_is_named(cluster, many):
    files = cluster.data.from_items([{"path": many[0]}])
    wrong = {"features": "torsion", "backend": "cpu"}
    rows = files.map_batches(pytapeloop.ray.Features, fn_constructor_kwargs=wrong, concurrency=1)
    with pytest.raises(Exception, match="unknown name `torsion`"):
        rows.take_all()
    # The driver is no actor.
    assert len(pytapeloop.ray.Features(**SETTINGS)({"path": many[:1]})) > 0
