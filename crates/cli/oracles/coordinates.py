"""Coordinates of backbone atoms and C-betas."""

import numpy as np

from reference import EXACT, Values, oracle
from tables import BACKBONE


@oracle(rules={f"{atom}_{axis}": EXACT for atom in BACKBONE for axis in "xyz"}, golden=False)
def coordinates(model, _settings):
    """The atoms' positions in A, as float32."""
    columns = {}
    for atom in BACKBONE:
        xyz = np.where(model.has[atom][:, None], (model.xyz[atom] / 1000).astype(np.float32), np.nan)
        columns |= {f"{atom}_{axis}": Values(xyz[:, at]) for at, axis in enumerate("xyz")}
    return columns
