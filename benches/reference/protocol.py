"""The references' side of `tapeloop bench`: a line asks, a line answers. See README.md."""

import os
import sys
import traceback


class Refused(Exception):
    """A request that has no answer here, and why."""


class Request:
    """`what name=value name=value`."""

    def __init__(self, line):
        self.what, *words = line.split()
        self.values = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise Refused(f"{word} has no value")
            self.values[name] = value

    def text(self, name):
        if name not in self.values:
            raise Refused(f"{name} is missing")
        return self.values[name]

    def number(self, name, least=1):
        """A size: it fits an int."""
        value = self.text(name)
        if not (value.isdecimal() and value.isascii() and least <= int(value) < 10**9):
            raise Refused(f"{name}={value} is out of range")
        return int(value)

    def one_of(self, name, *names):
        value = self.text(name)
        if value not in names:
            raise Refused(f"no {name} is called {value}")
        return value


def line_of(kind, values):
    """Values have no spaces."""
    words = (f"{name}={'_'.join(str(value).split())}" for name, value in values.items())
    return " ".join([kind, *words])


def serve(hello, answer):
    """Answers what standard input asks, until `quit` or its end; returns an exit code.

    `hello` gives what there is to say of the program, and `answer` a request's values.
    """
    # What a library prints must not come between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(kind, **values):
        print(line_of(kind, values), file=out, flush=True)

    try:
        say("hello", **hello())
    except Exception as error:
        say("no", reason=error)
        return 1
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        if not line.strip():
            continue
        try:
            say("ok", **answer(Request(line)))
        except Refused as why:
            say("no", reason=why)
        except Exception as error:
            traceback.print_exc()
            say("no", reason=f"{type(error).__name__}: {error}")
    return 0
