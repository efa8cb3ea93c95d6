"""Ligands and metals near residues, and the area that ligands, ions and glycans bury."""

from pathlib import Path

import numpy as np

from reference import EXACT, Rule, Values, oracle
from surface import about_one_point, freesasa_areas
from tables import digest, once

REACH, CONTACT = 12.0, 4.5  # A
# Hydrogen, noble gases, halogens, chalcogens, pnictogens and others that are no metals, with the
# metalloids B, Si, Ge, As, Sb and Te; 0 is an unknown element.
NO_METALS = {0, 1, 2, *range(5, 11), *range(14, 19), *range(32, 37), *range(51, 55), 85, 86}


@once
def near_pairs(model):
    """Row, atom of a ligand and squared distance (1e-6 A^2) of all pairs within reach."""
    from scipy.spatial import cKDTree

    of_rows = np.flatnonzero(model.atom_residue >= 0)
    xyz, others = model.atom_xyz[of_rows], model.ligands.xyz
    if not len(xyz) or not len(others):
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0)
    near = cKDTree(others / 1000).query_ball_point(xyz / 1000, REACH + 0.01)
    atoms = np.repeat(np.arange(len(xyz)), [len(found) for found in near])
    theirs = np.concatenate([np.array(found, dtype=int) for found in near])
    delta = xyz[atoms] - others[theirs]
    squares = (delta * delta).sum(axis=1)
    close = squares < (REACH * 1000) ** 2
    return model.atom_residue[of_rows][atoms[close]], theirs[close], squares[close]


def lowest(count, rows, squares):
    """Of each row the lowest squared distance in A; NaN where there is none."""
    least = np.full(count, np.inf)
    np.minimum.at(least, rows, squares)
    return np.where(np.isfinite(least), np.sqrt(least) / 1000, np.nan), least


@oracle(
    package="scipy",
    rules={
        "ligand_dmin": Rule("relative", 1e-6), "metal_dmin": Rule("relative", 1e-6),
        "ligand_contacts": EXACT, "ligand_comp": EXACT, "ligand_seq": EXACT,
    },
)  # fmt: skip
def ligands(model, _settings):
    """The nearest heavy atom of a ligand and the nearest metal, and pairs within 4.5 A; cKDTree."""
    if model.ligands is None:
        return {}
    count, (rows, theirs, squares) = len(model), near_pairs(model)
    own = model.ligands
    of_ligand = (own.kind == "ligand")[theirs]
    distance, least = lowest(count, rows[of_ligand], squares[of_ligand])
    which = np.full(count, len(own.xyz))
    nearest = of_ligand & (squares == least[rows])
    # Of equals the first ligand; its atoms are together.
    np.minimum.at(which, rows[nearest], theirs[nearest])
    comp, seq = np.full(count, None, dtype=object), np.full(count, np.nan)
    found = which < len(own.xyz)
    comp[found], seq[found] = own.comp[which[found]], own.seq[which[found]]
    pairs = np.bincount(
        rows[of_ligand & (squares < (CONTACT * 1000) ** 2)], minlength=count
    ).astype(float)
    is_metal = ~np.isin(own.element, list(NO_METALS))[theirs]
    metal, _ = lowest(count, rows[is_metal], squares[is_metal])
    return {
        "ligand_dmin": Values(distance),
        "metal_dmin": Values(metal),
        "ligand_contacts": Values(pairs),
        "ligand_comp": Values(comp),
        "ligand_seq": Values(seq),
    }


def points_and_ligands(settings, model):
    own = model.ligands
    ligands = () if own is None else (own.xyz, own.radius, own.kind == "glycan")
    return settings.points, settings.slices, digest(model.atom_radius, *ligands)


@oracle(
    package="freesasa", slow=True, depends=points_and_ligands,
    rules=dict.fromkeys(["sasa_bound", "glycan_sasa_delta"], about_one_point),
)  # fmt: skip
def bound_surface(model, settings):
    """calcCoord: with all that is no polymer; without it less with glycans."""
    own = model.ligands
    if own is None:
        return {}

    def areas(others):
        xyz = np.concatenate([model.atom_xyz, own.xyz[others]])
        radii = np.concatenate([model.atom_radius, own.radius[others]])
        found = freesasa_areas(xyz, radii, settings.points, settings.slices)[: len(model.atom_xyz)]
        return model.per_residue(found)

    glycans = own.kind == "glycan"
    delta = np.zeros(len(model))
    if glycans.any():
        delta = areas(np.zeros(len(own.xyz), dtype=bool)) - areas(glycans)
    return {
        "sasa_bound": Values(areas(np.ones(len(own.xyz), dtype=bool))),
        "glycan_sasa_delta": Values(delta),
    }


# ---- The table of ligands


@oracle(
    package="freesasa", slow=True, depends=points_and_ligands, table="ligands",
    rules=dict.fromkeys(["sasa_alone", "sasa_buried"], about_one_point),
)  # fmt: skip
def ligand_surface(model, settings):
    """calcCoord: each ligand alone, less its atoms in the model with all others."""
    own = model.ligands
    if own is None or not len(own.xyz):
        return {}
    xyz = np.concatenate([model.atom_xyz, own.xyz])
    radii = np.concatenate([model.atom_radius, own.radius])
    bound = freesasa_areas(xyz, radii, settings.points, settings.slices)[len(model.atom_xyz) :]
    alone = np.zeros(len(own.xyz))
    for ligand in np.unique(own.ligand):
        atoms = own.ligand == ligand
        alone[atoms] = freesasa_areas(own.xyz[atoms], own.radius[atoms], settings.points, settings.slices)
    return {
        "sasa_alone": Values(own.per_ligand(alone)),
        "sasa_buried": Values(own.per_ligand(alone - bound)),
    }


@oracle(package="scipy", table="ligands", rules={"contact_residues": EXACT, "atoms": EXACT})
def ligand_contacts(model, _settings):
    """The residues with an atom within 4.5 A of one of the ligand's; cKDTree."""
    own = model.ligands
    if own is None or not len(own.xyz):
        return {}
    rows, theirs, squares = near_pairs(model)
    close = squares < (CONTACT * 1000) ** 2
    pairs = np.unique(np.column_stack([own.ligand[theirs[close]], rows[close]]), axis=0)
    count = len(own.firsts())
    return {
        "contact_residues": Values(np.bincount(pairs[:, 0], minlength=count).astype(float)),
        "atoms": Values(np.bincount(own.ligand, minlength=count).astype(float)),
    }


def joined(count, pairs):
    """The group of each of `count` items that pairs join, numbered by their first items."""
    import networkx

    graph = networkx.Graph(pairs)
    graph.add_nodes_from(range(count))
    group = np.zeros(count, dtype=int)
    groups = sorted(networkx.connected_components(graph), key=min)
    for number, members in enumerate(groups):
        group[list(members)] = number
    return group


def names_of(chain, seq, ins, comp):
    number = [None if np.isnan(s) else int(s) for s in np.asarray(seq, dtype=float)]
    return list(zip(chain, number, ins, comp, strict=True))


@oracle(
    package="gemmi", needs=("biotite", "networkx"), table="ligands",
    rules={"kind": EXACT, "molecule": EXACT},
)  # fmt: skip
def ligand_links(model, _settings):
    """Links as gemmi reads them, saccharides as Biotite has them.

    Where links are missing: SciPy's pairs within 1.7 A. NetworkX joins.
    """
    import gemmi
    from biotite.structure.info import carbohydrate_names
    from scipy.spatial import cKDTree

    own = model.ligands
    if own is None or not len(own.xyz) or not is_read_by_gemmi(Path(model.source)):
        return {}
    file = gemmi.read_structure(model.source)
    file.setup_entities()
    found = next((m for m in file if str(m.num) == str(model.number)), file[0])
    firsts = own.firsts()
    count = len(firsts)
    names = names_of(*(column[firsts] for column in (own.chain_id, own.seq, own.ins, own.comp)))
    index = {}
    for at, name in enumerate(names):
        index.setdefault(name, at)

    # What gemmi knows of a residue: its atoms' altlocs by position.
    altloc = np.full(len(own.xyz), "", dtype=object)
    places = {(own.ligand[a], *own.xyz[a].tolist()): a for a in range(len(own.xyz))}
    known, polymer = set(), set()
    for chain in found:
        for residue in chain:
            name = (chain.name, residue.seqid.num, residue.seqid.icode.strip(), residue.name)
            known.add(name)
            if name not in index:
                polymer.add(name)
                continue
            at = index[name]
            for atom in residue:
                place = tuple(round(1000 * c) for c in atom.pos.tolist())
                if (at, *place) in places:
                    altloc[places[at, *place]] = atom.altloc.replace("\0", "")

    sugars = set(carbohydrate_names())
    is_sugar = np.array([name[3] in sugars for name in names])
    is_metal = ~np.isin(own.element, list(NO_METALS))
    pairs, is_attached = [], np.zeros(count, dtype=bool)
    for link in file.connections:
        if link.type == gemmi.ConnectionType.Covale and link.asu != gemmi.Asu.Different:
            ends = [
                (end.chain_name, seqid.num, seqid.icode.strip(), end.res_id.name)
                for end in (link.partner1, link.partner2)
                for seqid in [end.res_id.seqid]
            ]
            own_ends = [index[end] for end in ends if end in index]
            if len(own_ends) == 2:
                pairs.append(tuple(own_ends))
            elif len(own_ends) == 1 and any(end in polymer for end in ends):
                is_attached[own_ends[0]] |= is_sugar[own_ends[0]]
    organic = np.flatnonzero(~is_metal)
    tree = cKDTree(own.xyz[organic] / 1000)
    nearest = {}
    for a, b in organic[tree.query_pairs(1.71, output_type="ndarray")].tolist():
        together = altloc[a] == altloc[b] or not altloc[a] or not altloc[b]
        if own.ligand[a] != own.ligand[b] and together:
            pair = tuple(sorted((int(own.ligand[a]), int(own.ligand[b]))))
            square = int(((own.xyz[a] - own.xyz[b]) ** 2).sum())
            nearest[pair] = min(square, nearest.get(pair, square))
    # Below 1 A they are in one place by turns.
    pairs += [pair for pair, square in nearest.items() if 1000**2 <= square < 1700**2]
    polar = model.atom_xyz[np.isin(model.atom_element, [7, 8])]
    for ligand in np.flatnonzero(is_sugar):
        c1 = c1_of(found, names[ligand])
        near = ((polar - c1[:, None]) ** 2).sum(axis=2) < 1700**2
        is_attached[ligand] |= bool(near.any())
    is_glycan = np.zeros(count, dtype=bool)
    groups = joined(count, [(a, b) for a, b in pairs if is_sugar[a] and is_sugar[b]])
    for ligand in np.flatnonzero(is_attached):
        is_glycan |= (groups == groups[ligand]) & is_sugar
    atoms = np.bincount(own.ligand, minlength=count)
    kind = np.where(is_glycan, "glycan", np.where(atoms == 1, "ion", "ligand"))
    excluded = {
        "a copy in an assembly": np.array([name not in known for name in names]),
        "an agent of crystallisation": own.kind[firsts] == "agent",
    }
    return {
        "kind": Values(kind.astype(object), excluded),
        "molecule": Values(joined(count, pairs).astype(float)),
    }


def is_read_by_gemmi(path):
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    return suffix in {".pdb", ".ent", ".cif", ".mmcif"} and path.is_file()


def c1_of(found, name):
    """Positions of the atoms C1 of a residue, in 0.001 A; int64[n, 3]."""
    chain, number, ins, comp = name
    atoms = [
        [round(1000 * c) for c in atom.pos.tolist()]
        for part in found
        if part.name == chain
        for residue in part
        if (residue.seqid.num, residue.seqid.icode.strip(), residue.name) == (number, ins, comp)
        for atom in residue
        if atom.name == "C1"
    ]
    return np.array(atoms, dtype=np.int64).reshape(-1, 3)
