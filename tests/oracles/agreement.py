"""Compares columns with their references, and prints the agreement table."""

from collections import Counter

import numpy as np

from reference import Rule

HEADER = f"{'column':22} {'oracle':26} {'rule':>18} {'compared':>9} {'null':>7} {'excluded':>9} {'wrong':>7} {'agree %':>9} {'worst':>9}"


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
            f"{self.column:22} {self.oracle:26} {self.rule!s:>18} {self.compared:>9} {self.null:>7}"
            f" {sum(self.excluded.values()):>9} {self.wrong:>7} {agree:>9.4f} {self.worst:>9.1e} {verdict}"
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
