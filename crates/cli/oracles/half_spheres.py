"""Half-sphere exposure: by Biopython, and by its definition on the lattice."""

import warnings

import numpy as np

from contacts import near_pairs
from reference import EXACT, Values, oracle

RADIUS = 12
COLUMNS = ["hse_a_up", "hse_a_down", "hse_b_up", "hse_b_down"]
GLYCINE_TURN = np.radians(-120)


def alpha_directions(model):
    """From CA(i-1), CA, CA(i+1): each C-alpha's direction "up", and which have one."""
    ca, there, linked = model.xyz["ca"], model.has["ca"], model.linked()
    has = np.zeros(len(model), dtype=bool)
    if len(model) > 2:
        has[1:-1] = there[:-2] & there[1:-1] & there[2:] & linked[1:-1] & linked[2:]
    direction = np.zeros((len(model), 3))
    for step in (-1, 1):
        away = (ca - np.roll(ca, -step, axis=0)).astype(float)
        length = np.sqrt((away * away).sum(axis=1, keepdims=True))
        direction += np.divide(away, length, out=np.zeros_like(away), where=length > 0)
    return direction, has


def beta_directions(model):
    """From CA to CB; for glycine, N turned about C-CA stands for CB."""
    has, ca = model.has, model.xyz["ca"]
    glycine = model.aa == "G"
    n, axis = ((model.xyz[name] - ca).astype(float) for name in ("n", "c"))
    length = np.sqrt((axis * axis).sum(axis=1, keepdims=True))
    axis = np.divide(axis, length, out=np.zeros_like(axis), where=length > 0)
    along = (n * axis).sum(axis=1, keepdims=True)
    turned = n * np.cos(GLYCINE_TURN) + np.cross(axis, n) * np.sin(GLYCINE_TURN)
    turned += axis * along * (1 - np.cos(GLYCINE_TURN))
    direction = np.where(glycine[:, None], turned, (model.xyz["cb"] - ca).astype(float))
    return direction, has["ca"] & np.where(glycine, has["n"] & has["c"], has["cb"])


def half_spheres(model, direction, has):
    """Counts up and down of the C-alphas within 12 A of each residue's."""
    ca = model.xyz["ca"]
    index = np.flatnonzero(model.has["ca"])
    pairs = index[near_pairs(ca[index], RADIUS)]
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    i, j = i[has[i]], j[has[i]]
    up = ((ca[j] - ca[i]) * direction[i]).sum(axis=1) > 0
    counts = (np.bincount(i[side], minlength=len(ca)).astype(float) for side in (up, ~up))
    return [np.where(has, c, np.nan) for c in counts]


@oracle(rules=dict.fromkeys(COLUMNS, EXACT))
def half_spheres_on_the_lattice(model, _settings):
    """The definition in NumPy: every residue that has a direction."""
    alpha = half_spheres(model, *alpha_directions(model))
    beta = half_spheres(model, *beta_directions(model))
    return {name: Values(v) for name, v in zip(COLUMNS, [*alpha, *beta], strict=True)}


# ---- Biopython


def biopython_model(model):
    """A Biopython model: a chain for each segment, row numbers as residue numbers.

    Residues are ALA, so that none is refused for its name, or GLY, which has a
    rule of its own where it has the atoms that Biopython fails without.
    """
    from Bio.PDB.StructureBuilder import StructureBuilder

    builder = StructureBuilder()
    builder.init_structure("dump")
    builder.init_model(0)
    builder.init_seg(" ")
    glycine = (model.aa == "G") & model.has["n"] & model.has["c"] & model.has["ca"]
    gly_without = (model.aa == "G") & ~glycine
    segments = model.segments()
    for row in range(len(model)):
        if row == 0 or segments[row] != segments[row - 1]:
            builder.init_chain(str(segments[row]))
        builder.init_residue("GLY" if glycine[row] else "ALA", " ", row, " ")
        for name in ("n", "ca", "c", "cb"):
            if model.has[name][row] and not (name == "cb" and gly_without[row]):
                upper = name.upper()
                position = model.xyz[name][row] / 1000
                builder.init_atom(upper, position, 0.0, 1.0, " ", f" {upper} ", element=upper[0])
    return builder.get_structure()[0]


def near(model, rows):
    """Whether each residue's C-alpha is nearer than 12 A to one of the rows'."""
    mask = np.zeros(len(model), dtype=bool)
    index = np.flatnonzero(model.has["ca"])
    wanted = np.isin(index, rows)
    pairs = near_pairs(model.xyz["ca"][index], RADIUS)
    mask[index[pairs[wanted[pairs[:, 0]], 1]]] = True
    mask[index[pairs[wanted[pairs[:, 1]], 0]]] = True
    return mask


def on_the_edge(model, direction, has):
    """Rows where rounding decides: a C-alpha at 12 A, at right angles, or at 0 A."""
    ca = model.xyz["ca"]
    index = np.flatnonzero(model.has["ca"])
    pairs = index[near_pairs(ca[index], RADIUS + 0.001)]
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    delta = (ca[j] - ca[i]).astype(float)
    square = (delta * delta).sum(axis=1)
    scale = np.sqrt(square * (direction[i] * direction[i]).sum(axis=1))
    along = (delta * direction[i]).sum(axis=1)
    cosine = np.divide(along, scale, out=np.zeros(len(i)), where=scale > 0)
    edge = (square == (RADIUS * 1000) ** 2) | (np.abs(cosine) < 1e-9) | (square == 0)
    mask = np.zeros(len(model), dtype=bool)
    mask[i[edge]] = True
    return mask & has


def too_large(settings, model):
    return len(model) > settings.biopython


@oracle(package="biopython", slow=True, depends=too_large, rules=dict.fromkeys(COLUMNS, EXACT))
def half_spheres_of_biopython(model, settings):
    """HSExposureCA and HSExposureCB.

    Biopython sees only residues that are linked to another by CA-CA < 4.3 A.
    """
    count = len(model)
    if too_large(settings, model):
        everywhere = {"model too large for Biopython": np.ones(count, dtype=bool)}
        return {name: Values(np.full(count, np.nan), everywhere) for name in COLUMNS}
    from Bio.PDB.HSExposure import HSExposureCA, HSExposureCB
    from Bio.PDB.Polypeptide import CaPPBuilder

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = biopython_model(model)
        seen = {r.id[1] for chain in CaPPBuilder().build_peptides(theirs) for r in chain}
        unseen = np.setdiff1d(np.flatnonzero(model.has["ca"]), list(seen))
        columns = {}
        for kind, find, directions in (
            ("a", HSExposureCA, alpha_directions),
            ("b", HSExposureCB, beta_directions),
        ):
            up, down = np.full(count, np.nan), np.full(count, np.nan)
            for residue, (above, below, *_) in find(theirs):
                up[residue.id[1]], down[residue.id[1]] = above, below
            direction, has = directions(model)
            alone = np.isin(np.arange(count), unseen)
            excluded = {
                "alone in its chain, not seen by Biopython": alone & has,
                "CA-CA beyond 4.3 A, not linked for Biopython": has & np.isnan(up),
                "near a residue that Biopython does not see": near(model, unseen) & has,
                "a C-alpha at 12 A, at 90 degrees or at 0 A": on_the_edge(model, direction, has),
            }
            columns[f"hse_{kind}_up"] = Values(up, excluded)
            columns[f"hse_{kind}_down"] = Values(down, excluded)
    return columns
