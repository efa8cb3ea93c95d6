import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample structures."""
    folder = os.environ.get("TAPELOOP_SAMPLES", Path(__file__).parents[2] / "samples")
    return Path(folder)


@pytest.fixture(scope="session")
def some(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small samples."""
    folder = tmp_path_factory.mktemp("structures")
    for name in ("1a8o.cif.gz", "1as5.cif.gz", "1ejg.pdb.gz", "1a1p.pdb.gz"):
        (folder / name).symlink_to(samples / name)
    return folder
