"""What a reference is: columns that a package computed, and how close a run must be."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Rule:
    """How a column is compared.

    kind: "exact"; "absolute" or "relative" by `tolerance` (relative with an
    absolute floor of `floor`); "angle", absolute around the circle of 360;
    `share` of the rows must agree.
    """

    kind: str = "exact"
    tolerance: float = 0.0
    floor: float = 0.0
    share: float = 1.0

    def errors(self, ours, theirs):
        """Return errors, in what the tolerance is in, and which are too large."""
        if ours.dtype == object:
            wrong = ours != theirs
            return wrong.astype(float), wrong
        error = np.abs(ours - theirs)
        if self.kind == "angle":
            error = np.minimum(error, 360 - error)
        if self.kind == "relative":
            wrong = error > np.maximum(self.tolerance * np.abs(ours), self.floor)
            scale = np.maximum(np.abs(ours), max(self.floor / self.tolerance, 1e-300))
            return error / scale, wrong
        return error, error > self.tolerance

    def __str__(self):
        text = {"exact": "exact", "relative": f"{self.tolerance:g} relative"}.get(
            self.kind, f"{self.tolerance:g}"
        )
        return text if self.share == 1 else f"{text}, {100 * self.share:g}%"


EXACT = Rule()


@dataclass
class Values:
    """A column as the package gives it; NaN, or None in text, is null.

    `excluded` gives rows that are not compared, by reason. Where `optional` is
    true, the run may have null.
    """

    values: np.ndarray
    excluded: dict = field(default_factory=dict)
    optional: np.ndarray = None


@dataclass
class Oracle:
    """A function from a model to {column: Values}.

    `of_run`: it starts from other columns of the run, which it is given (where
    there is no run, from references), and is never kept in the cache.
    """

    name: str
    table: str
    package: str
    rules: dict
    compute: object
    of_run: bool
    slow: bool

    def title(self):
        return f"{self.package} {version(self.package) or ''}".strip() if self.package else "NumPy"


ORACLES = []


def oracle(rules, table="residues", package=None, of_run=False, slow=False):
    """Register a function as the oracle of some columns."""

    def register(function):
        ORACLES.append(
            Oracle(function.__name__, table, package, rules, function, of_run, slow)
        )
        return function

    return register


def version(package):
    """A package's version, None where it is not installed."""
    if package == "mkdssp":
        if not shutil.which("mkdssp"):
            return None
        text = subprocess.run(["mkdssp", "--version"], capture_output=True, text=True).stdout
        return text.split()[2] if len(text.split()) > 2 else ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
