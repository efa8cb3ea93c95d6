"""What a reference is: columns that a package computed, and how close a run must be."""

import hashlib
import importlib.metadata
import pickle
import shutil
import subprocess
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from tables import fingerprint


@dataclass(frozen=True)
class Rule:
    """How a column is compared.

    kind: "exact"; "absolute" or "relative" by `tolerance` (relative with an
    absolute floor of `floor`); "angle", absolute around the circle and in (-180, 180];
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
            return error, (error > self.tolerance) | (theirs <= -180) | (theirs > 180)
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
    there is no run, from references). `slow`: worth keeping in a cache, for as
    long as what `depends` returns for settings and model stays the same. `golden`:
    golden tables have its columns. `needs`: other packages that it imports, besides
    those that every script needs.
    """

    name: str
    table: str
    package: str
    needs: tuple
    rules: dict
    compute: object
    of_run: bool
    slow: bool
    depends: object
    golden: bool

    def missing(self):
        """The packages that are not installed, of those that it imports."""
        packages = (self.package, *self.needs) if self.package else self.needs
        return [package for package in packages if version(package) is None]

    def title(self):
        return f"{self.package} {version(self.package) or ''}".strip() if self.package else "NumPy"


ORACLES = []


def oracle(
    rules, table="residues", package=None, needs=(), of_run=False, slow=False, depends=None, golden=True
):  # fmt: skip
    """Register a function as the oracle of some columns."""

    def register(function):
        name, on = function.__name__, depends or (lambda _settings, _model: None)
        its = Oracle(name, table, package, needs, rules, function, of_run, slow, on, golden)
        ORACLES.append(its)
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


class Cache:
    """Slow references kept in a folder, by oracle, package, code and atoms."""

    def __init__(self, folder):
        self.folder = Path(folder) if folder else None
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, oracle, title, model, settings):
        if not (self.folder and oracle.slow):
            return oracle.compute(model, settings)
        code = Path(oracle.compute.__code__.co_filename).read_text()
        parts = [oracle.name, title, str(oracle.depends(settings, model)), code, fingerprint(model)]
        path = self.folder / hashlib.sha256("|".join(parts).encode()).hexdigest()
        if path.exists():
            return pickle.loads(path.read_bytes())
        columns = oracle.compute(model, settings)
        path.write_bytes(pickle.dumps(columns))
        return columns


class References:
    """The oracles that can run here, and the time that each took."""

    def __init__(self, settings):
        self.settings = settings
        self.cache = Cache(settings.cache)
        self.seconds = Counter()
        self.oracles, self.skipped = [], []
        for oracle in ORACLES:
            if settings.only and not any(
                fnmatch(c, p) for p in settings.only for c in oracle.rules
            ):
                continue
            (self.skipped if oracle.missing() else self.oracles).append(oracle)
        self.titles = {o.name: o.title() for o in self.oracles}

    def rule(self, oracle, column):
        rule = oracle.rules[column]
        return rule(self.settings) if callable(rule) else rule

    def compute(self, oracle, model, given):
        start = time.perf_counter()
        if oracle.of_run:
            columns = oracle.compute(model, self.settings, given)
        else:
            columns = self.cache.get(oracle, self.titles[oracle.name], model, self.settings)
        self.seconds[oracle.name] += time.perf_counter() - start
        return columns

    def golden(self, model):
        """{table: {column: values}} by the first oracle of each."""
        found = defaultdict(dict)
        for oracle in self.oracles:
            if not oracle.golden or set(oracle.rules) <= set(found[oracle.table]):
                continue
            for name, values in self.compute(oracle, model, found["residues"]).items():
                found[oracle.table].setdefault(name, values.values)
        return found
