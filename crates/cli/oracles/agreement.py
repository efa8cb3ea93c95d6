"""Compares columns with their references, and prints the agreement table."""

import sys
from collections import Counter, defaultdict

import numpy as np

from reference import ORACLES, Rule, Values
from tables import read_dump

HEADER = (
    f"{'column':23} {'oracle':22} {'rule':>16} {'compared':>9} {'null':>7} {'excluded':>9}"
    f" {'wrong':>7} {'agree %':>9} {'worst':>9}"
)


# A column of which fewer values were compared counts as unvalidated.
COMPARED_MIN = 200


def is_null(values):
    if values.dtype == object:
        return np.array([v is None for v in values], dtype=bool)
    return np.isnan(values)


class Agreement:
    """One column against one oracle, over all models."""

    def __init__(self, column, oracle, rule: Rule):
        self.column, self.oracle, self.rule = column, oracle, rule
        self.compared = self.null = self.one_null = self.wrong = 0
        self.worst = 0.0
        self.excluded = Counter()
        self.examples = []

    def add(self, key, reference, theirs):
        ours, null = reference.values, is_null(reference.values)
        theirs_null = is_null(theirs)
        left = np.zeros(len(ours), dtype=bool)
        for reason, mask in reference.excluded.items():
            mask = mask & ~left & ~(null & theirs_null)
            self.excluded[reason] += int(mask.sum())
            left |= mask
        if reference.optional is not None:
            mask = reference.optional & theirs_null & ~null & ~left
            self.excluded["the run may leave it out"] += int(mask.sum())
            left |= mask
        both = ~null & ~theirs_null & ~left
        one_null = (null != theirs_null) & ~left
        bad = one_null.copy()
        if both.any():
            errors, wrong = self.rule.errors(ours[both], theirs[both])
            bad[both] = wrong
            self.worst = max(self.worst, float(np.nanmax(errors)))
        self.compared += int((both | one_null).sum())
        self.one_null += int(one_null.sum())
        self.wrong += int(bad.sum())
        self.null += int((null & theirs_null & ~left).sum())
        for row in np.flatnonzero(bad):
            self.examples.append((*key, int(row), ours[row], theirs[row]))

    @property
    def holds(self):
        return self.wrong <= (1 - self.rule.share) * self.compared

    def lines(self, examples):
        verdict = "PASS" if self.holds else "FAIL"
        verdict = verdict if self.compared else "nothing to compare"
        agree = 100 * (1 - self.wrong / self.compared) if self.compared else 100
        yield (
            f"{self.column:23} {self.oracle:22} {self.rule!s:>16} {self.compared:>9}"
            f" {self.null:>7} {sum(self.excluded.values()):>9} {self.wrong:>7} {agree:>9.4f}"
            f" {self.worst:>9.1e} {verdict}"
        )
        for reason, count in self.excluded.items():
            if count:
                yield f"{'':24}excluded {count}: {reason}"
        if self.one_null:
            yield f"{'':24}null in one of the two: {self.one_null}"
        for source, model, row, ours, theirs in [] if self.holds else self.examples[:examples]:
            yield f"{'':24}{source}, model {model}, row {row}: {shown(ours)}, run {shown(theirs)}"


def shown(value):
    return str(value) if value is None or isinstance(value, str) else f"{value:.7g}"


# ---- A run's rows beside a model's


def chain_order(rows, model):
    """The rows of a run's chain table in the order of the model's chains, or None."""
    wanted = [str(model.chain_id[its[0]]) for _, its in model.chains()]
    for column in ("auth_asym_id", "label_asym_id"):
        names = ["" if name is None else str(name) for name in rows.get(column, [])]
        place, order = 0, []
        for name in wanted:
            while place < len(names) and names[place] != name:
                place += 1
            order.append(place)
            place += 1
        if place <= len(names):
            return np.array(order, dtype=int)
    return None


def place_rows(table, rows, model):
    """Bring a run's rows of a table in the model's order, None where they are others."""
    count = len(next(iter(rows.values())))
    if table == "residues":
        order = np.argsort(rows["res_index"], kind="stable")
        same = np.array_equal(rows["res_index"][order], np.arange(len(model)))
    elif table == "chains":
        order = chain_order(rows, model)
        same = order is not None
    elif pair_of(rows):
        order = np.arange(count)
        same = len(np.unique(pair_keys(rows))) == count
    elif table in KEYS:
        order, same = np.arange(count), True
    elif table == "ligands":
        order = np.argsort(rows["ligand_index"], kind="stable")
        same = model.ligands is not None and count == len(model.ligands.firsts())
    else:
        order, same = np.arange(count), count == 1
    return {name: values[order] for name, values in rows.items()} if same else None


def has_rows(table, model):
    """Whether a model has rows in a table of a run."""
    if table == "ligands":
        return model.ligands is not None and len(model.ligands.xyz) > 0
    return table == "structures" or len(model) > 0


def columns_of(run, model, problems):
    """The run's columns of a model by table; what is amiss goes into `problems`."""
    found = {}
    validated = {oracle.table for oracle in ORACLES}
    for table in filter(validated.__contains__, run.tables):
        rows = run.rows(table, model.key)
        if rows is None and (pair_of(run.columns(table)) or table in KEYS):
            # A model may have none.
            rows = {name: np.zeros(0) for name in run.columns(table)}
        if rows is None:
            if has_rows(table, model):
                problems[f"{table}: {model.key} is not in the run"] += 1
            continue
        found[table] = place_rows(table, rows, model)
        if found[table] is None:
            problems[f"{table}: {model.key} has other rows than in the dump"] += 1
            del found[table]
    return found


def pair_of(columns):
    """The names of the columns with both residues of each row, empty if rows are no pairs."""
    return [name for name in columns if name.startswith("res_index_")]


def pair_keys(columns):
    """A number for each pair of residues, in the order of the first and the second."""
    first, second = (columns[name].astype(np.int64) for name in pair_of(columns))
    return first << 32 | second


def place_pairs(reference, theirs):
    """Columns of pairs by an oracle and by a run, of all pairs of either; NaN where one lacks it.

    Also returns whether the pairs that both have come in the same order.
    """
    own = {name: values.values for name, values in reference.items()}
    sides = [own, {name: theirs[name] for name in own if name in theirs}]
    keys = [pair_keys(side) for side in sides]
    both = np.union1d(*keys)
    shared = np.intersect1d(*keys)
    in_order = np.array_equal(*(side[np.isin(side, shared)] for side in keys))

    def placed(values, keys, missing=np.nan):
        out = np.full(len(both), missing)
        out[np.searchsorted(both, keys)] = values
        return out

    def of_reference(values):
        excluded = values.excluded.items()
        excluded = {reason: placed(mask, keys[0], False) for reason, mask in excluded}
        return Values(placed(values.values, keys[0]), excluded)

    theirs = {name: placed(values, keys[1]) for name, values in sides[1].items()}
    return {name: of_reference(values) for name, values in reference.items()}, theirs, in_order


def keys_of_interfaces(rows):
    """The names of both chains, which a run has by mmCIF's own, or else by the author's."""
    if "chain_i" in rows:
        return list(zip(*(rows[f"chain_{side}"].tolist() for side in "ij"), strict=True))
    sides = (chain_names(rows, f"_{side}") for side in "ij")
    return list(zip(*sides, strict=True))


def keys_of_unobserved(rows):
    """The chain's name and label_seq_id, or the author's number and insertion code without it."""
    chains = rows["chain"].tolist() if "chain" in rows else chain_names(rows, "")
    numbers = (rows[name].tolist() for name in ("label_seq_id", "auth_seq_id", "ins_code"))
    return [
        (chain, label) if label == label else (chain, author, ins)
        for chain, label, author, ins in zip(chains, *numbers, strict=True)
    ]


def chain_names(rows, side):
    label, author = rows[f"label_asym_id{side}"], rows[f"auth_asym_id{side}"]
    return [b if a is None or a != a else a for a, b in zip(label, author, strict=True)]


# Tables of which an oracle may have other rows than a run, with what identifies a row.
KEYS = {"interfaces": keys_of_interfaces, "unobserved": keys_of_unobserved}


def place_by_keys(table, reference, theirs):
    """Columns by an oracle and by a run, of all rows of either; null where one lacks the row."""
    own = {name: values.values for name, values in reference.items()}
    keys = [KEYS[table](own), KEYS[table](theirs)]
    columns = {name: values for name, values in reference.items() if name[:5] != "chain"}
    both = list(dict.fromkeys(keys[0] + keys[1]))
    index = {key: at for at, key in enumerate(both)}
    places = [np.array([index[key] for key in side], dtype=int) for side in keys]

    def placed(values, where):
        missing = {"O": None, "b": False}.get(values.dtype.kind, np.nan)
        out = np.full(len(both), missing, dtype=values.dtype)
        out[where] = values
        return out

    def of_reference(values):
        excluded = values.excluded.items()
        excluded = {why: placed(mask, places[0]) for why, mask in excluded}
        return Values(placed(values.values, places[0]), excluded)

    theirs = {name: placed(theirs[name], places[1]) for name in columns if name in theirs}
    return {name: of_reference(values) for name, values in columns.items()}, theirs


# ---- The table


class Report:
    """The agreement of every column with every oracle of it."""

    def __init__(self, references):
        self.references = references
        self.agreements = {}
        self.problems = Counter()
        self.absent = defaultdict(dict)
        self.models = 0

    def add(self, model, theirs):
        """Compare what a run has of a model, {table: {column: array}}."""
        self.models += 1
        given = theirs.get("residues", {})
        for oracle in self.references.oracles:
            columns = theirs.get(oracle.table, {})
            if not any(name in columns for name in oracle.rules):
                continue
            found = self.references.compute(oracle, model, given)
            if pair_of(found):
                found, columns, in_order = place_pairs(found, columns)
                if not in_order:
                    self.problems[f"{oracle.table}: {model.key} has its rows in another order"] += 1
            elif oracle.table in KEYS and found:
                found, columns = place_by_keys(oracle.table, found, columns)
            for name, values in found.items():
                if name in columns:
                    self.of(oracle, name).add(model.key, values, columns[name])

    def of(self, oracle, column):
        key = oracle.table, column, oracle.name
        if key not in self.agreements:
            rule, title = self.references.rule(oracle, column), self.references.titles[oracle.name]
            self.agreements[key] = Agreement(column, title, rule)
        return self.agreements[key]

    def note(self, run):
        """What is amiss with the run as a whole."""
        for oracle in self.references.oracles:
            names = [name for name in oracle.rules if name not in run.columns(oracle.table)]
            self.absent[oracle.table].update(dict.fromkeys(names))
        if len(run) != self.models:
            self.problems[f"the run has {len(run)} models, the dump {self.models}"] += 1
        for where, count in run.nan_counts().items():
            self.problems[f"{where}: {count} NaN, where null is meant"] += 1

    def unvalidated(self):
        """Columns of which no oracle compared enough values, as table:column."""
        compared = Counter()
        for (table, column, _), agreement in self.agreements.items():
            key = f"{table}:{column}"
            compared[key] = max(compared[key], agreement.compared)
        return [key for key, count in compared.items() if count < COMPARED_MIN]

    def place(self, key):
        """Columns as the oracles list them, those of one column together."""
        oracles = self.references.oracles
        columns = list(dict.fromkeys(name for oracle in oracles for name in oracle.rules))
        return columns.index(key[1]), [oracle.name for oracle in oracles].index(key[2])

    def show(self, examples, times):
        for table in dict.fromkeys(oracle.table for oracle in self.references.oracles):
            keys = sorted((key for key in self.agreements if key[0] == table), key=self.place)
            print(f"\n{table}\n{HEADER}" if keys else "", end="\n" if keys else "")
            for key in keys:
                print("\n".join(self.agreements[key].lines(examples)))
        print()
        for table, names in self.absent.items():
            if names:
                print(f"{table}: not in the run: {' '.join(names)}")
        few = self.unvalidated()
        if few:
            print(f"fewer than {COMPARED_MIN} values compared, so unvalidated: {' '.join(few)}")
        lacking = {}
        for oracle in self.references.skipped:
            lacking |= dict.fromkeys(oracle.missing())
            print(f"skipped: no {', no '.join(oracle.missing())}: {' '.join(oracle.rules)}")
        if lacking.pop("mkdssp", 0) is None:
            print("mkdssp is installed by: apt-get install dssp")
        if lacking:
            print(f"Python packages are installed by: {sys.executable} -m pip install {' '.join(lacking)}")
        for what, _ in self.problems.most_common(examples):
            print(f"AMISS {what}")
        if len(self.problems) > examples:
            print(f"AMISS and {len(self.problems) - examples} more")
        for name, seconds in self.references.seconds.most_common() if times else []:
            print(f"{seconds:9.1f} s  {name}")
        failed = [agreement for agreement in self.agreements.values() if not agreement.holds]
        names = ", ".join(dict.fromkeys(agreement.column for agreement in failed))
        held = len(self.agreements) - len(failed)
        print(
            f"{self.models} models: {held} hold, {len(failed)} fail"
            + (f": {names}" if names else "")
        )
        return not failed and not self.problems

    def write_differences(self, path):
        """Every row that differs, tab-separated, empty for null."""
        with open(path, "w") as out:
            out.write("column\toracle\tsource\tmodel\trow\treference\trun\n")
            for agreement in self.agreements.values():
                for *place, ours, theirs in agreement.examples:
                    values = ("" if v is None or v != v else v for v in (ours, theirs))
                    cells = [agreement.column, agreement.oracle, *place, *values]
                    out.write("\t".join(map(str, cells)) + "\n")


def check(references, dump, run, settings):
    """Compare all models, print the table, and return whether all holds."""
    report = Report(references)
    for model in read_dump(dump):
        if run is None:
            report.add(model, references.golden(model))
        else:
            report.add(model, columns_of(run, model, report.problems))
    if run is not None:
        report.note(run)
    if settings.differences:
        report.write_differences(settings.differences)
    return report.show(settings.examples, settings.times)
