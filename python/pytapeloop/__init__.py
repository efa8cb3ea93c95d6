"""Per-residue features of protein structures, on a GPU or on the CPU, as Arrow tables.

>>> import pytapeloop
>>> table = pytapeloop.features("structures/", features=["sasa", "torsions"])
>>> table["sasa"]  # a column with its unit, which numpy.asarray takes
>>> table.to_polars()  # or to_pandas(), to_arrow(), or any library that takes Arrow tables

``describe`` lists the features, and ``plot`` draws columns along a sequence. ``features`` returns one
table, ``tables`` several, ``stream`` an iterator of record batches, and ``run`` writes files as the
command ``tapeloop run`` does. ``methods`` is what a publication says of such files. ``Features`` keeps its engine for several
calls, and ``ray.Features`` does so in the actors of Ray Data. Settings are the keys of the config
file, such as ``backend="cpu"`` or ``sasa={"points": 256}``; docs/CONFIG.md lists them, and its
pages have their units and defaults.

``Replay`` runs CUDA kernels of your own: recorded once as a graph, and replayed for each batch of
arrays.

The package ``tapeloop`` on PyPI is another project.
"""

from . import ray
from ._describe import describe
from ._features import Features, RejectedWarning, features, stream, tables
from ._inputs import Atoms
from ._native import Column, ConfigError, RecordBatch, Table, TapeloopError, __version__
from ._plot import Plot, plot
from ._program import methods, run
from ._replay import Constant, Input, Job, Launch, Output, Replay, Scratch

__all__ = [
    "Atoms",
    "Column",
    "ConfigError",
    "Constant",
    "Features",
    "Input",
    "Job",
    "Launch",
    "Output",
    "Plot",
    "RecordBatch",
    "RejectedWarning",
    "Replay",
    "Scratch",
    "Table",
    "TapeloopError",
    "__version__",
    "describe",
    "features",
    "methods",
    "plot",
    "ray",
    "run",
    "stream",
    "tables",
]
