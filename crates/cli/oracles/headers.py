"""What a file states of its entry: method, resolution and title."""

import gzip
from pathlib import Path

import numpy as np

from ligands import is_read_by_gemmi
from reference import EXACT, Rule, Values, oracle

TEXT_MAX = 1024  # bytes
NOT_READ = "a file that gemmi does not read"


def lines_of(path):
    """The lines of a file, which may be compressed."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return content.decode("latin1").splitlines()


def is_shifted(line):
    """Whether a title starts before column 11, where gemmi's begins."""
    return line.startswith("TITLE ") and line[6:8].strip() != ""


@oracle(
    table="structures", package="gemmi", golden=False,
    rules={"method": EXACT, "resolution": Rule("relative", 1e-6), "title": EXACT},
)  # fmt: skip
def headers(model, _settings):
    """The method, resolution and title that gemmi reads, with one blank between words."""
    import gemmi

    path, file, excluded = Path(model.source), gemmi.Structure(), {}
    try:
        if not is_read_by_gemmi(path):
            raise ValueError
        file = gemmi.read_structure(str(path))
        if any(is_shifted(line) for line in lines_of(path)):
            excluded = {"a title that starts before column 11": np.array([True])}
    except (RuntimeError, ValueError):
        excluded = {NOT_READ: np.array([True])}

    def text(tag):
        words = " ".join(file.info[tag].split()) if tag in file.info else ""
        return Values(np.array([words[:TEXT_MAX] or None], dtype=object), excluded)

    return {
        "method": text("_exptl.method"),
        "resolution": Values(np.array([file.resolution or np.nan]), excluded),
        "title": text("_struct.title"),
    }
