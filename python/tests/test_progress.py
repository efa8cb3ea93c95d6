"""Progress: where it is shown, and what."""

import io
import os
import re
import sys
import threading
import types

import pytest
import pytapeloop
from pytapeloop import _program, _progress


class Screen(io.StringIO):
    """Standard error that may be a terminal, with an event once something was written."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal
        self.written = threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.written.set()
        return super().write(text)


def show_on(screen, monkeypatch):
    # Not of sys itself: pytest sets that anew after the fixtures.
    own = types.SimpleNamespace(stderr=screen, modules=sys.modules)
    monkeypatch.setattr(_progress, "sys", own)


@pytest.fixture(params=["terminal", "file"])
def screen(request, monkeypatch):
    screen = Screen(request.param == "terminal")
    show_on(screen, monkeypatch)
    monkeypatch.setattr(_progress, "AFTER", 0.0)
    return screen


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock.now)
    return clock


class Notebook:
    """What a package takes for IPython with a kernel."""

    def __init__(self, monkeypatch):
        self.outputs = []
        shell = types.SimpleNamespace(kernel=object())
        package = types.ModuleType("IPython")
        package.get_ipython = lambda: shell
        package.display = types.ModuleType("IPython.display")
        package.display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", package.display)

    def display(self, bundle, raw, display_id):
        assert raw and display_id
        self.outputs.append([bundle["text/plain"]])
        own = self.outputs[-1]
        return types.SimpleNamespace(
            update=lambda bundle, raw: own.append(bundle["text/plain"]) if raw else None
        )


def listed_after(screen, tmp_path, samples):
    """A list of one file, whose writer waits until progress was shown."""
    path = tmp_path / "list"
    os.mkfifo(path)

    def write():
        with open(path, "w") as writer:
            screen.written.wait(timeout=60)
            writer.write(f"{samples / '1a8o.pdb'}\n")

    threading.Thread(target=write, daemon=True).start()
    return f"@{path}"


LINE = r"\d+ s: 0 inputs, 0 structures/s, 0 residues/s"


def test_it_is_shown_while_a_table_is_computed(samples, tmp_path, screen):
    paths = listed_after(screen, tmp_path, samples)
    progress = None if screen.is_terminal else True
    assert len(pytapeloop.features(paths, "torsions", backend="cpu", progress=progress)) > 0
    text = screen.getvalue()
    if screen.is_terminal:
        assert re.match(rf"\r{LINE}\x1b\[K", text) and text.endswith("\r\x1b[K")
        assert "\n" not in text
    else:
        assert re.match(rf"{LINE}\n", text)


def test_it_is_shown_while_the_program_runs(samples, tmp_path, screen):
    paths = listed_after(screen, tmp_path, samples)
    progress = None if screen.is_terminal else True
    settings = {"features": "torsions", "backend": "cpu"}
    record = pytapeloop.run(inputs=paths, output=tmp_path / "out", progress=progress, **settings)
    assert record["written"]["structures"] == 1
    text = screen.getvalue()
    assert re.match(rf"\r?{LINE}", text) and "{" not in text, "no JSON"
    with pytest.raises(pytapeloop.TapeloopError, match="missing.pdb: ") as caught:
        pytapeloop.run(inputs=tmp_path / "missing.pdb", output=tmp_path / "other", progress=True)
    assert "{" not in str(caught.value)


def test_that_the_program_compiles_is_no_problem_of_the_run(screen):
    lines = ['{"compiling":{"compiled":1,"kernels":34,"seconds":0.1}}\n', "warning: one\n"]
    process = types.SimpleNamespace(stderr=iter(lines), wait=lambda: 0)
    assert _program._problems(process, _progress.Progress(True)) == "warning: one\n"


def test_nothing_is_shown_elsewhere_nor_if_it_is_off(samples, tmp_path, screen):
    progress = False if screen.is_terminal else None
    path = samples / "1a8o.pdb"
    settings = {"features": "torsions", "backend": "cpu", "progress": progress}
    assert len(pytapeloop.features(path, **settings)) > 0
    assert sum(batch.num_rows for batch in pytapeloop.stream(path, **settings)) > 0
    pytapeloop.tables(path, **settings)
    pytapeloop.run(inputs=path, output=tmp_path / "out", **settings)
    assert screen.getvalue() == ""
    with pytest.raises(ValueError, match="progress .*'bar'"):
        pytapeloop.features(path, "torsions", backend="cpu", progress="bar")


def test_a_line_of_a_terminal_is_gone_when_the_caller_has_rows(some, screen):
    settings = {"backend": "cpu", "tables": {"rows_per_group": 1}}
    structures = {path.name: path.read_bytes() for path in sorted(some.iterdir())}
    shown = 0
    for _ in pytapeloop.stream(structures, "torsions", progress=True, **settings):
        text = screen.getvalue()
        shown += "of 4 inputs" in text
        assert text.endswith("\r\x1b[K" if screen.is_terminal else "\n")
    assert shown > 1


def test_inputs_of_paths_are_counted_meanwhile(some):
    engine = pytapeloop.Features("torsions", backend="cpu", tables={"rows_per_group": 1})
    totals = set()
    # The count of a run that ends first is given up.
    for _ in range(200):
        stream = engine._engine.stream_paths([str(some)], ["residues"], True)
        while stream.next(lambda total, *_: totals.add(total)) is not None:
            pass
        stream.close()
        if totals - {None}:
            break
    assert totals - {None} == {4}


def test_a_notebook_has_one_output_that_keeps_the_last_counts(some, monkeypatch):
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr(_progress, "AFTER", 0.0)
    structures = [path.read_bytes() for path in sorted(some.iterdir())]
    table = pytapeloop.features(structures, "torsions", backend="cpu")
    (texts,) = notebook.outputs
    residues = len(table)
    assert texts[-1].startswith("0 s: 4 of 4 inputs, ") and "ETA" not in texts[-1]
    assert residues > 0
    pytapeloop.features(structures, "torsions", backend="cpu", progress=False)
    assert len(notebook.outputs) == 1


def test_lines_have_rates_over_all_streams_from_the_first_second_on(clock, monkeypatch):
    screen = Screen(is_terminal=False)
    show_on(screen, monkeypatch)
    progress = _progress.Progress(True, 3000)
    progress.next_stream()
    clock.now += 0.9
    progress.show(None, 500, 499, 100_000, 1)
    assert screen.getvalue() == ""
    clock.now += 1.1
    progress.show(None, 1000, 998, 200_000, 2)
    progress.next_stream()
    clock.now += 4.9
    progress.show(None, 0, 0, 0, 0)
    clock.now += 3.1
    progress.show(None, 2000, 1000, 100_000, 0)
    progress.end()
    assert screen.getvalue().splitlines() == [
        "2 s: 1,000 of 3,000 inputs, 499 structures/s, 100,000 residues/s, 2 rejected, ETA 4 s",
        "10 s: 2,000 of 3,000 inputs, 200 structures/s, 30,000 residues/s, 2 rejected, ETA 5 s",
    ]


def test_a_line_is_cut_to_the_width_of_the_terminal(clock, monkeypatch):
    screen = Screen(is_terminal=True)
    show_on(screen, monkeypatch)
    monkeypatch.setenv("COLUMNS", "20")
    progress = _progress.Progress(None)
    clock.now += 2
    progress.show(None, 1000, 998, 200_000, 0)
    assert screen.getvalue() == "\r2 s: 1,000 inputs, \x1b[K"
