#!/usr/bin/env python3
"""Prints docs/PYTHON_API.md, made from the docstrings and the stubs of the installed package.

    python scripts/make_python_api.py > docs/PYTHON_API.md
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytapeloop

STUBS = ast.parse((Path(pytapeloop.__file__).parent / "_native.pyi").read_text())
WIDTH = 120
HEAD = """\
# The Python package

All public names of `pytapeloop`, from their docstrings; `help(pytapeloop.features)` prints the same. [The
introduction](../python/README.md) has examples, [CONFIG.md](CONFIG.md) the settings and the columns with their units,
and [ERRORS.md](ERRORS.md) the errors. `scripts/make_python_api.py` writes this page.
"""


def stub_of(name: str) -> ast.ClassDef | None:
    """The stub of a public class of the native module."""
    if getattr(pytapeloop, name, None) is not getattr(pytapeloop._native, name, None):
        return None
    for node in STUBS.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    return None


def members(name: str, value: type) -> Iterator[tuple[str, str, str]]:
    """The public members of a class: name, signature and docstring."""
    stub = stub_of(name)
    if stub is not None:
        for node in stub.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            is_property = any(ast.unparse(it) == "property" for it in node.decorator_list)
            returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
            shown = f": {returned[4:]}" if is_property else f"({arguments}){returned}"
            yield node.name, shown, doc_of(f"{name}.{node.name}", getattr(value, node.name))
        return
    for member, function in vars(value).items():
        if inspect.isfunction(function) and (member == "__call__" or not member.startswith("_")):
            yield member, signature(function), doc_of(f"{name}.{member}", function)


def signature(function: Callable[..., object]) -> str:
    """The signature as in the source, without the names of private modules."""
    own, parts, is_keyword_only = inspect.signature(function), [], False
    for it in own.parameters.values():
        if it.name == "self":
            continue
        if it.kind == it.KEYWORD_ONLY and not is_keyword_only:
            parts.append("*")
            is_keyword_only = True
        stars = "**" if it.kind == it.VAR_KEYWORD else ""
        default = "" if it.default is it.empty else f" = {literal(it.default)}"
        parts.append(f"{stars}{it.name}: {shown_type(it.annotation)}{default}")
    returned = shown_type(own.return_annotation)
    return f"({', '.join(parts)})" + ("" if returned == "None" else f" -> {returned}")


def shown_type(annotation: str | None) -> str:
    choice = 'Literal["warn", "raise", "ignore"]'
    return str(annotation).replace("_native.", "").replace("OnReject", choice)


def literal(value: object) -> str:
    """A default, with the quotes of the sources."""
    return repr(value).replace("'", '"')


def doc_of(name: str, value: object) -> str:
    text = inspect.getdoc(value)
    if not text:
        raise SystemExit(f"{name} has no docstring")
    return text


def markdown(doc: str) -> str:
    """A docstring with sections (`Args:`) as Markdown with lists."""
    parts = []
    for block in doc.replace("``", "`").split("\n\n"):
        first, _, rest = block.partition("\n")
        if re.fullmatch(r"(Args|Attributes|Returns|Yields|Raises):", first):
            parts.append(f"**{first}**\n")
            parts.append(entries(textwrap.dedent(rest), first in ("Args:", "Attributes:", "Raises:")))
        elif block.startswith(">>>"):
            code = "\n".join(re.sub(r"^(>>>|\.\.\.) ", "", line) for line in block.splitlines())
            parts.append(f"```python\n{code}\n```\n")
        else:
            parts.append(wrapped(block, ""))
    return "\n".join(parts)


def entries(text: str, has_names: bool) -> str:
    if not has_names:
        return wrapped(text, "")
    joined = re.sub(r"\n\s+", " ", text).splitlines()
    lines = (re.sub(r"^([^:]+):", bold, line) for line in joined)
    return "".join(wrapped(f"- {line}", "  ") for line in lines)


def bold(match: re.Match[str]) -> str:
    return ", ".join(f"`{name}`" for name in match[1].split(", ")) + ":"


def wrapped(text: str, indent: str) -> str:
    text = " ".join(text.split())
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) + "\n"


def entry(level: str, name: str, shown: str, doc: str) -> str:
    code = f"{name}{shown}"
    if len(code) > 100 and "(" in code:
        start, arguments, end = re.fullmatch(r"([^(]*\()(.*)(\).*)", code).groups()  # type: ignore
        parts = re.split(r", (?![^\[(]*[\])])", arguments)
        code = start + "\n" + "".join(f"    {part},\n" for part in parts) + end
    return f"{level} {name}\n\n```python\n{code}\n```\n\n{markdown(doc)}"


def page() -> str:
    parts = [HEAD]
    public = {name: getattr(pytapeloop, name) for name in pytapeloop.__all__}
    public["ray.Features"] = pytapeloop.ray.Features
    for name, value in public.items():
        if inspect.isfunction(value):
            parts.append(entry("##", name, signature(value), doc_of(name, value)))
    for name, value in public.items():
        if not inspect.isclass(value):
            continue
        if issubclass(value, Exception):
            bases = ", ".join(base.__name__ for base in value.__bases__)
            parts.append(entry("##", name, f"({bases})", doc_of(name, value)))
            continue
        is_made = stub_of(name) is None
        shown = signature(value.__init__) if is_made else ""
        parts.append(entry("##", name, shown, doc_of(name, value)))
        for member, shown, doc in members(name, value):
            parts.append(entry("###", f"{name}.{member}", shown, doc))
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
