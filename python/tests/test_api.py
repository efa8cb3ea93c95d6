"""Docstrings, stubs, and the page that is made from them."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import pytapeloop

ROOT = Path(__file__).parents[2]
STUBS = ast.parse((Path(pytapeloop.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}


def callables():
    """The public functions and methods of Python, by their names."""
    for name in pytapeloop.__all__:
        value = getattr(pytapeloop, name)
        if inspect.isfunction(value):
            yield name, value, inspect.getdoc(value)
    made = {"Atoms": pytapeloop.Atoms, "Features": pytapeloop.Features}
    for name, value in {**made, "ray.Features": pytapeloop.ray.Features}.items():
        yield name, value.__init__, inspect.getdoc(value)
        for member, method in vars(value).items():
            is_public = member == "__call__" or not member.startswith("_")
            if inspect.isfunction(method) and is_public:
                yield f"{name}.{member}", method, inspect.getdoc(method)


def section(doc, title):
    """The lines of a section, such as `Args:`."""
    _, _, rest = doc.partition(f"\n{title}:\n")
    return rest.split("\n\n")[0]


@pytest.mark.parametrize("name, function, doc", list(callables()), ids=lambda it: str(it)[:30])
def test_docstrings_have_arguments_results_and_errors(name, function, doc):
    own = inspect.signature(function)
    for parameter in own.parameters.values():
        described = f"\n    {parameter.name}: " in "\n" + section(doc, "Args")
        assert described or parameter.name == "self", parameter.name
    assert "Error: " in section(doc, "Raises")
    if own.return_annotation not in ("None", None):
        assert section(doc, "Returns") or section(doc, "Yields")


@pytest.mark.parametrize("name", ["Column", "ConfigError", "RecordBatch", "Table", "TapeloopError"])
def test_stubs_say_what_the_native_module_says(name):
    native, stub = getattr(pytapeloop, name), CLASSES[name]
    assert same_words(ast.get_docstring(stub), native.__doc__)
    stubs = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    public = {member for member in vars(native) if not member.startswith("_")}
    assert public == {member for member in stubs if not member.startswith("_")}
    for member in public:
        assert same_words(ast.get_docstring(stubs[member]), getattr(native, member).__doc__), member


def same_words(one, other):
    assert one and other
    return one.split() == other.split()


def printed_by(script):
    """What a script of the repository prints."""
    command = [sys.executable, ROOT / "scripts" / script]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


def test_the_types_of_settings_are_those_that_the_config_declares():
    settings = (ROOT / "python/pytapeloop/_settings.py").read_text()
    printed = printed_by("make_python_settings.py")
    hint = "run scripts/make_python_settings.py > python/pytapeloop/_settings.py"
    assert settings == printed, hint
    assert 'backend: Literal["auto", "cuda", "cpu"]' in settings
    compile(settings, "_settings.py", "exec")
    for function in (pytapeloop.features, pytapeloop.Features.__init__, pytapeloop.ray.Features.__init__):
        assert function.__annotations__["settings"] == "Unpack[Settings]"


def test_the_page_is_that_of_the_docstrings():
    page = (ROOT / "docs/PYTHON_API.md").read_text()
    assert page == printed_by("make_python_api.py"), "run scripts/make_python_api.py > docs/PYTHON_API.md"
    for name in {*pytapeloop.__all__, "ray.Features"} - {"__version__", "ray"}:
        assert f"\n## {name}\n" in page, name
