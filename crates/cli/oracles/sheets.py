"""Bridges, ladders, sheets and numbers of hydrogen bonds: mkdssp, and energies in NumPy."""

import numpy as np

from reference import EXACT, Values, oracle
from secondary import BOND, bond_energies, complete, mkdssp_file, output_of_mkdssp, run_mkdssp
from secondary import two_best

CATEGORY = "_dssp_struct_summary."
BRIDGES = ["bridge1", "bridge2"]
LADDERS = ["ladder1", "ladder2"]
COLUMNS = [*BRIDGES, "bridge1_kind", "bridge2_kind", *LADDERS, "sheet"]
ROUNDING = 2e-5  # kcal/mol: the error of single precision


def number_of(text):
    """1 for A, 26 for Z, 27 for AA; NaN for none."""
    number = 0
    for letter in text:
        number = 26 * number + ord(letter) - ord("A") + 1
    return np.nan if text == "." else number


def labels_of_mkdssp(model):
    """Ladders and sheet of each row of the model, [rows, 3], from mkdssp's mmCIF; None: it failed."""
    text, rows = mkdssp_file(model)
    lines = output_of_mkdssp(text, "--output-format", "mmcif", "--write-experimental")
    if lines is None:
        return None
    found = np.full((len(model), 3), np.nan)
    names = [line.strip() for line in lines if line.startswith(CATEGORY)]
    if not names:
        return found
    first = max(n for n, line in enumerate(lines) if line.startswith(CATEGORY)) + 1
    place = {name.removeprefix(CATEGORY): n for n, name in enumerate(names)}
    for line in lines[first:]:
        fields = line.split()
        if len(fields) != len(names):
            break
        row = rows[int(fields[place["label_seq_id"]]) - 1]
        if row >= 0:
            labels = [fields[place[name]] for name in ("ladder_1", "ladder_2", "sheet")]
            found[row] = [number_of(label) for label in labels]
    return found


@oracle(package="mkdssp", slow=True, golden=False, rules=dict.fromkeys(COLUMNS, EXACT))
def sheets_of_mkdssp(model, _settings):
    """mkdssp: partners and kinds in its classic format, all labels in its mmCIF."""
    count = len(model)
    lines = run_mkdssp(model) if complete(model).any() else []
    labels = labels_of_mkdssp(model) if lines else np.full((count, 3), np.nan)
    partners = np.full((2, count), np.nan)
    kinds = np.full((2, count), None, dtype=object)
    if lines is None or labels is None:
        excluded = {"mkdssp did not accept the file": np.ones(count, dtype=bool)}
        lines, labels = [], np.full((count, 3), np.nan)
    else:
        # The classic format has four digits of a number.
        excluded = {"more than 9,999 residues": np.full(count, len(lines) > 9_000)}
    row_of = {int(line[:5]): row for line, row in lines if row >= 0}
    for line, row in lines:
        for which, (start, end) in enumerate(((25, 29), (29, 33))):
            partner = int(line[start:end])
            if row >= 0 and partner:
                partners[which, row] = row_of.get(partner, np.nan)
                is_parallel = line[23 + which].islower()
                kinds[which, row] = "parallel" if is_parallel else "antiparallel"
    columns = {name: Values(partners[n]) for n, name in enumerate(BRIDGES)}
    columns |= {f"{name}_kind": Values(kinds[n]) for n, name in enumerate(BRIDGES)}
    columns |= {name: Values(labels[:, n]) for n, name in enumerate([*LADDERS, "sheet"])}
    for values in columns.values():
        values.excluded = dict(excluded)
    return columns


@oracle(golden=False, rules=dict.fromkeys(["hb_nho_bonds", "hb_ohn_bonds"], EXACT))
def numbers_of_bonds(model, _settings):
    """How many of the two best energies, to 0.001 kcal/mol, are below -0.5."""
    donor, acceptor, energy = bond_energies(model)
    columns = {}
    for name, own, partner in (("hb_nho", donor, acceptor), ("hb_ohn", acceptor, donor)):
        lowest = two_best(model, own, partner, energy)[1]
        limit = BOND - 0.0005
        counts = (lowest < limit).sum(axis=0).astype(float)
        counts[~complete(model)] = np.nan
        near = (np.abs(lowest - limit) < ROUNDING).any(axis=0)
        excluded = {"a bond or none within 2e-5 kcal/mol": near}
        columns[f"{name}_bonds"] = Values(counts, excluded)
    return columns
