"""The notebook of the guides: its cells run, and give the outputs that are stored in it.

``TAPELOOP_WRITE_NOTEBOOK=1 pytest tests/test_notebook.py`` stores them anew.
"""

import base64
import os
from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[2] / "docs/guides/notebook.ipynb"


def shown(cell):
    """The words and the kinds of a cell's outputs. What shows progress is left out: it depends on
    the time."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream":
            found += output.text.split()
        elif output.output_type == "execute_result":
            found += output.data["text/plain"].split()
        elif "image/png" in output.data:
            found.append("image/png")
    return found


def test_the_notebook_runs_and_shows_what_is_stored(monkeypatch):
    # Tables are as wide as the terminal.
    monkeypatch.setenv("COLUMNS", "80")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    new = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = nbclient.NotebookClient(
        new, timeout=300, kernel_name="python3", resources=resources, record_timing=False
    )
    client.execute()
    if os.environ.get("TAPELOOP_WRITE_NOTEBOOK"):
        for cell in new.cells:
            if cell.cell_type == "code":
                cell.outputs = [it for it in cell.outputs if shown(nbformat.from_dict({"outputs": [it]}))]
        new.metadata = stored.metadata
        nbformat.write(new, NOTEBOOK)
        stored = new
    pictures = 0
    for cell, expected in zip(new.cells, stored.cells):
        if cell.cell_type == "code":
            assert shown(cell) == shown(expected), cell.source
            for output in cell.outputs:
                picture = output.get("data", {}).get("image/png")
                pictures += picture is not None and len(base64.b64decode(picture)) > 10_000
    assert pictures == 1
