"""What a file states of its entry: method, resolution and title."""

from pathlib import Path

import numpy as np

from ligands import is_read_by_gemmi
from reference import EXACT, Rule, Values, oracle

TEXT_MAX = 1024  # bytes
NOT_READ = "a file that gemmi does not read"


@oracle(
    table="structures", package="gemmi", golden=False,
    rules={"method": EXACT, "resolution": Rule("relative", 1e-6), "title": EXACT},
)  # fmt: skip
def headers(model, _settings):
    """The method, resolution and title that gemmi reads, with one blank between words."""
    import gemmi

    file = None
    if is_read_by_gemmi(Path(model.source)):
        try:
            file = gemmi.read_structure(model.source)
        except (RuntimeError, ValueError, UnicodeDecodeError):
            pass
    if file is None:
        file, excluded = gemmi.Structure(), {NOT_READ: np.array([True])}
    else:
        excluded = {}

    def text(tag):
        words = " ".join(file.info[tag].split()) if tag in file.info else ""
        return Values(np.array([words[:TEXT_MAX] or None], dtype=object), excluded)

    return {
        "method": text("_exptl.method"),
        "resolution": Values(np.array([file.resolution or np.nan]), excluded),
        "title": text("_struct.title"),
    }
