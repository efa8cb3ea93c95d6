"""Whole sequences, and residues that were not observed, as gemmi reads them from the files."""

from pathlib import Path

import numpy as np

from headers import NOT_READ, lines_of
from ligands import is_read_by_gemmi
from reference import EXACT, Values, oracle
from summaries import chain_rows
from tables import once


class Sequences:
    """What a file states of its chains' sequences; chains have the names of the dump.

    `components` has a list of components a chain, the first one of a position that has
    several. `unobserved` has (label_seq_id, component, auth_seq_id, ins_code) of each residue
    without coordinates; label_seq_id is None in PDB files, and numbers that the file does not
    state are None.
    """

    def __init__(self):
        self.components, self.unobserved = {}, {}


def of_mmcif(path, model):
    """`_entity_poly_seq`, `_pdbx_poly_seq_scheme`, and the model's residues of `_atom_site`."""
    import gemmi

    block, found = gemmi.cif.read(str(path))[0], Sequences()

    def rows(category, first, *more):
        tags = [first, *(f"?{tag}" for tag in more)]
        for row in block.find(category, tags):
            has = [row.has(at) and not gemmi.cif.is_null(row[at]) for at in range(len(tags))]
            yield [row.str(at) if there else None for at, there in enumerate(has)]

    numbered = {}
    for entity, number, component in rows("_entity_poly_seq.", "entity_id", "num", "mon_id"):
        numbered.setdefault(entity, {}).setdefault(int(number), component)
    atoms = rows("_atom_site.", "label_asym_id", "label_entity_id", "label_seq_id", "pdbx_PDB_model_num")
    atoms = [atom for *atom, of in atoms if of in (None, str(model))]
    scheme = {
        (asym, int(number), component): (author, ins)
        for asym, number, component, author, ins in rows(
            "_pdbx_poly_seq_scheme.", "asym_id", "seq_id", "mon_id", "pdb_seq_num", "pdb_ins_code"
        )
    }
    for asym, entity in dict.fromkeys((asym, entity) for asym, entity, _ in atoms):
        of_entity = numbered.get(entity, {})
        if list(of_entity) != list(range(1, len(of_entity) + 1)) or not of_entity:
            continue
        observed = {int(number) for at, _, number in atoms if at == asym and number}
        found.components[asym] = list(of_entity.values())
        found.unobserved[asym] = [
            (number, component, *scheme.get((asym, number, component), (None, None)))
            for number, component in of_entity.items()
            if number not in observed
        ]
    return found


def of_pdb(path, model):
    """SEQRES, and the residues that REMARK 465 lists for the model or for all."""
    import gemmi

    file, found = gemmi.read_structure(str(path)), Sequences()
    for entity in file.entities:
        if entity.entity_type == gemmi.EntityType.Polymer and entity.full_sequence:
            components = [gemmi.Entity.first_mon(item) for item in entity.full_sequence]
            found.components[entity.name] = components
            found.unobserved[entity.name] = []
    for line in lines_of(path):
        number = line[21:26].strip()
        if line[:10] != "REMARK 465" or not number.lstrip("-").isdigit():
            continue
        if line[10:15].strip() in ("", str(model)):
            residue = None, line[15:18].strip(), number, line[26:27].strip() or None
            found.unobserved.setdefault(line[18:20].strip(), []).append(residue)
    return found


@once
def sequences(model):
    """What the model's file states; None where gemmi does not read it."""
    path = Path(model.source)
    if not is_read_by_gemmi(path):
        return None
    is_pdb = path.name.removesuffix(".gz").lower().endswith((".pdb", ".ent"))
    try:
        return (of_pdb if is_pdb else of_mmcif)(path, model.number)
    except (RuntimeError, ValueError):
        return None


def letter(component):
    """The one-letter code in the component dictionary, the first one of several; else X."""
    from biotite.structure.info import one_letter_code

    return (one_letter_code(component) or "X")[0]


@oracle(
    table="chains", package="gemmi", needs=("biotite",), rules={"seqres": EXACT}, golden=False
)
def whole_sequences(model, _settings):
    """SEQRES or `_entity_poly_seq` as gemmi reads it, with the letters of Biotite's dictionary."""
    chains, known = chain_rows(model), sequences(model)
    stated = {} if known is None else known.components
    letters = np.full(len(chains), None, dtype=object)
    for at, rows in enumerate(chains):
        components = stated.get(model.chain_id[rows[0]])
        if components is not None:
            letters[at] = "".join(letter(component) for component in components)
    return {"seqres": Values(letters, {NOT_READ: np.full(len(chains), known is None)})}


def is_amino(component):
    """Whether the component dictionary links it as a peptide."""
    from biotite.structure.info import link_type

    kind = (link_type(component) or "").upper()
    return "PEPTIDE" in kind and "TERMINUS" not in kind


def place(model, rows, residue):
    """How many rows come before a residue, by its number among those of its chain's rows.

    None where the author's numbers do not increase.
    """
    position, _, number, ins = residue
    if position is not None:
        later = model.position[rows] > position
    else:
        own = [(int(n), i) for n, i in zip(model.auth_seq[rows], model.ins[rows], strict=True)]
        if own != sorted(own):
            return None
        later = np.array([(int(number), ins or "") < it for it in own])
    return rows[np.argmax(later)] if later.any() else rows[-1] + 1


@oracle(
    table="unobserved", package="gemmi", needs=("biotite",), golden=False,
    rules=dict.fromkeys(["comp_id", "aa", "auth_seq_id", "ins_code", "label_seq_id", "before"], EXACT),
)  # fmt: skip
def unobserved(model, _settings):
    """Amino acids of the sequence without atoms: of `_entity_poly_seq` those that `_atom_site`
    lacks, numbered by `_pdbx_poly_seq_scheme`; in PDB files those of REMARK 465."""
    known, found = sequences(model), []
    if known is None:
        return {}
    for rows in chain_rows(model):
        name = model.chain_id[rows[0]]
        for residue in known.unobserved.get(name, []) if name in known.components else []:
            if is_amino(residue[1]):
                found.append((name, *residue, place(model, rows, residue)))
    chain, position, component, number, ins, before = zip(*found, strict=True) if found else [[]] * 6

    def numbers(values):
        return np.array([np.nan if it is None else int(it) for it in values], dtype=float)

    def texts(values):
        return np.array([*values, None], dtype=object)[:-1]

    unknown = {"author numbers that do not increase": np.array([it is None for it in before], dtype=bool)}
    return {
        "chain": Values(texts(chain)),
        "comp_id": Values(texts(component)),
        "aa": Values(texts([letter(it) for it in component])),
        "auth_seq_id": Values(numbers(number)),
        "ins_code": Values(texts(ins)),
        "label_seq_id": Values(numbers(position)),
        "before": Values(numbers(before), unknown),
    }
