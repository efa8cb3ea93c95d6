"""Bridges, ladders, sheets and numbers of hydrogen bonds: mkdssp, and energies in NumPy."""

from itertools import combinations

import numpy as np

from reference import EXACT, Rule, Values, oracle
from secondary import BOND, bond_energies, complete, mkdssp_file, output_of_mkdssp, run_mkdssp
from secondary import two_best

CATEGORY = "_dssp_struct_summary."
BRIDGES = ["bridge1", "bridge2"]
LADDERS = ["ladder1", "ladder2"]
COLUMNS = [*BRIDGES, "bridge1_kind", "bridge2_kind", *LADDERS, "sheet"]
GAP = 6  # residues: fewer are between two bridges of a ladder
ROUNDING = 2e-5  # kcal/mol: the error of single precision


def number_of(text):
    """1 for A, 26 for Z, 27 for AA; NaN for none."""
    number = 0
    for letter in text.strip(" ."):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number or np.nan


def labels_in_mmcif(model):
    """Ladders and sheet of each row, [rows, 3], from mkdssp's mmCIF; None: it failed.

    It does for some files whose sheets it would list twice.
    """
    text, rows = mkdssp_file(model)
    lines = output_of_mkdssp(text, "--output-format", "mmcif", "--write-experimental") or []
    names = [line.strip() for line in lines if line.startswith(CATEGORY)]
    if not names:
        return None
    first = max(n for n, line in enumerate(lines) if line.startswith(CATEGORY)) + 1
    place = {name.removeprefix(CATEGORY): n for n, name in enumerate(names)}
    found = np.full((len(model), 3), np.nan)
    for fields in map(str.split, lines[first:]):
        if len(fields) != len(names):
            break
        row = rows[int(fields[place["label_seq_id"]]) - 1]
        if row >= 0:
            labels = [fields[place[name]] for name in ("ladder_1", "ladder_2", "sheet")]
            found[row] = [number_of(label) for label in labels]
    return found


def labels_in_letters(letters):
    """The same from the classic format, whose letters begin anew after Z; None: they do."""
    return None if (letters == 26).any() else letters


def out_of_order(partners, letters):
    """Rows of ladders with one first residue if the later partner there has the lower number.

    mkdssp sorts ladders by their first residues alone, with std::sort, which may exchange these.
    """
    pairs = set()
    for which, row in np.argwhere(~np.isnan(partners)):
        pair = sorted((int(row), int(partners[which, row])))
        pairs.add((int(letters[row, which]), *pair))
    ladders = []
    for letter, i, j in sorted(pairs):
        if ladders and ladders[-1][0] == letter:
            last_i, last_j = ladders[-1][1][-1]
            if i - last_i < GAP and abs(j - last_j) < GAP:
                ladders[-1][1].append((i, j))
                continue
        ladders.append((letter, [(i, j)]))
    found = np.zeros(len(letters), dtype=bool)
    for (letter, a), (other, b) in combinations(ladders, 2):
        if a[0][0] == b[0][0]:
            # Two ladders of a sheet have numbers near each other.
            is_before = (other - letter) % 26 < 13
            if is_before != (a[0][1] < b[0][1]):
                found[np.array(a + b).ravel()] = True
    return found


@oracle(package="mkdssp", slow=True, rules=dict.fromkeys(COLUMNS, Rule(share=0.999)))
def sheets_of_mkdssp(model, _settings):
    """mkdssp: partners and kinds in its classic format, all labels in its mmCIF."""
    count = len(model)
    everywhere = np.ones(count, dtype=bool)
    lines = run_mkdssp(model) if complete(model).any() else []
    partners = np.full((2, count), np.nan)
    kinds = np.full((2, count), None, dtype=object)
    letters = np.full((count, 3), np.nan)
    row_of = {int(line[:5]): row for line, row in lines or [] if row >= 0}
    for line, row in lines or []:
        if row >= 0:
            letters[row] = [number_of(line[column].upper()) for column in (23, 24, 33)]
        for which, start in enumerate((25, 29)):
            partner = int(line[start : start + 4])
            if row >= 0 and partner:
                partners[which, row] = row_of.get(partner, np.nan)
                is_parallel = line[23 + which].islower()
                kinds[which, row] = "parallel" if is_parallel else "antiparallel"
    labels = labels_in_mmcif(model) if lines else letters
    labels = labels_in_letters(letters) if labels is None else labels
    excluded, of_labels = {}, {}
    if lines is None:
        excluded["mkdssp did not accept the file"] = everywhere
    elif row_of and max(row_of) > 9999:
        excluded["the format has four digits for a partner"] = everywhere
    if labels is None:
        of_labels["mkdssp wrote no mmCIF, and its letters are not unique"] = everywhere
        labels = letters
    excluded["ladders of one first residue in another order"] = out_of_order(partners, letters)
    columns = {name: Values(partners[n], excluded) for n, name in enumerate(BRIDGES)}
    columns |= {f"{name}_kind": Values(kinds[n], excluded) for n, name in enumerate(BRIDGES)}
    columns |= {
        name: Values(labels[:, n], excluded | of_labels) for n, name in enumerate(LADDERS)
    }
    columns["sheet"] = Values(labels[:, 2], of_labels if lines is not None else excluded)
    return columns


@oracle(rules=dict.fromkeys(["hb_nho_bonds", "hb_ohn_bonds"], EXACT))
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
