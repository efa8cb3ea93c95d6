#!/usr/bin/env python3
"""Writes the addresses of addresses.toml into the files that state them.

    scripts/write_addresses.py [--check]

With --check it writes nothing, and exits with code 1 if a file states other addresses.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEYS = ("repository", "homepage", "issues", "clone")

# Follows the command with ADDRESS.
NO_ADDRESS = """
`ADDRESS` stands for where you have these sources from: the maintainers have not filled in
[addresses.toml](addresses.toml) yet.
"""

# Of the web, or of git over SSH; without characters that mean something to a shell or to Markdown.
ADDRESS = re.compile(r"(https?://|ssh://|git@)[\w.:/@~%+-]+")

# The lines between these two are written by this script.
START = "From addresses.toml, by scripts/write_addresses.py:"
END = "End of the addresses."
SECTION = re.compile(
    rf"^([^\n]*{re.escape(START)}[^\n]*\n).*?^([^\n]*{re.escape(END)})", re.MULTILINE | re.DOTALL
)


def read_addresses() -> dict[str, str]:
    """The addresses that are filled in."""
    text = (ROOT / "addresses.toml").read_text(encoding="utf-8")
    found = dict(re.findall(r'^(\w+) = "([^"\\\s]*)"$', text, re.MULTILINE))
    if sorted(found) != sorted(KEYS):
        raise SystemExit(f"addresses.toml: it needs a line for each of {', '.join(KEYS)}, and no other")
    for key, value in found.items():
        if value and not ADDRESS.fullmatch(value):
            raise SystemExit(f"addresses.toml: {key} is no address: {value}")
    return {key: value for key, value in found.items() if value}


def fields(addresses: dict[str, str], form: str, names: dict[str, str]) -> str:
    """A line of the given form for each address that has a name."""
    known = ((name, addresses[key]) for key, name in names.items() if key in addresses)
    return "".join(form.format(name, address) for name, address in known)


def cargo(addresses: dict[str, str]) -> str:
    names = {"repository": "repository", "homepage": "homepage"}
    return fields(addresses, '{} = "{}"\n', names)


def pyproject(addresses: dict[str, str]) -> str:
    names = {"homepage": "Homepage", "repository": "Repository", "issues": "Issues"}
    urls = fields(addresses, '{} = "{}"\n', names)
    return f"[project.urls]\n{urls}" if urls else ""


def citation(addresses: dict[str, str]) -> str:
    return fields(addresses, '{}: "{}"\n', {"repository": "repository-code", "homepage": "url"})


def readme(addresses: dict[str, str]) -> str:
    clone = addresses.get("clone", "ADDRESS")
    text = f"```sh\ngit clone {clone} tapeloop && cd tapeloop\n```\n"
    if "clone" not in addresses:
        text += NO_ADDRESS
    names = {"homepage": "Homepage", "repository": "Repository", "issues": "Issues"}
    links = fields(addresses, "- [{}]({})\n", names)
    return f"{text}\n{links}" if links else text


FILES = {
    "Cargo.toml": cargo,
    "python/pyproject.toml": pyproject,
    "README.md": readme,
    "CITATION.cff": citation,
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, end="")
        return 2
    addresses = read_addresses()
    code = 0
    for name, section in FILES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if len(SECTION.findall(text)) != 1:
            raise SystemExit(f"{name}: it needs one section from {START!r} to {END!r}")
        new = SECTION.sub(lambda found: found[1] + section(addresses) + found[2], text)
        if new == text:
            continue
        if arguments:
            print(f"{name}: other addresses than addresses.toml; run scripts/write_addresses.py")
            code = 1
        else:
            path.write_text(new, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
