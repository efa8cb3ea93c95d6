#!/usr/bin/env python3
"""Print how many tests of a log of `cargo test` did not run, and why.

  scripts/list_ignored.py LOG

A test that the log has twice, ignored and then run, did run.
"""

import collections
import re
import sys

PROGRAM = re.compile(r" +(?:Running|Doc-tests) (.*)")
TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (\w+)(?:, (.*))?$")

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
program, results = "", {}
for line in open(sys.argv[1], errors="replace"):
    if found := PROGRAM.match(line):
        program = found[1]
    elif (found := TEST.match(line)) and results.get((program, found[1])) != "":
        results[program, found[1]] = (found[3] or "no reason") if found[2] == "ignored" else ""
reasons = collections.Counter(reason for reason in results.values() if reason)
print(f"{len(results)} tests, of which {reasons.total()} did not run")
for reason, count in reasons.most_common():
    print(f"  {count:5}  {reason}")
