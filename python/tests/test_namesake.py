"""The wheel next to another distribution called tapeloop, which has a module and a command of that
name. Where there is no wheel to install (``TAPELOOP_WHEEL``), these tests are skipped."""

import os
import subprocess
import sys
import zipfile

import pytest
import pytapeloop

WHEEL = os.environ.get("TAPELOOP_WHEEL")
pytestmark = pytest.mark.skipif(WHEEL is None, reason="TAPELOOP_WHEEL names no wheel")


@pytest.fixture(scope="module")
def namesakes(tmp_path_factory):
    """A folder with wheels of the other distribution, and the older one of two. They stand for the real
    ones, so that the tests need no network."""
    folder = tmp_path_factory.mktemp("namesakes")
    for version in ("9.0", "0.1.1"):
        info = f"tapeloop-{version}.dist-info"
        files = {
            "tapeloop/__init__.py": f"def main():\n    print('namesake {version}')\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tapeloop\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": "[console_scripts]\ntapeloop = tapeloop:main\n",
        }
        files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        path = folder / f"tapeloop-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
    return folder, path


class Environment:
    """A new virtual environment."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)

    def pip(self, *arguments):
        pip = [sys.executable, "-m", "pip", "--python", self.programs / "python", "--quiet"]
        subprocess.run([*pip, *arguments], check=True)

    def install(self, *arguments):
        self.pip("install", "--no-index", *arguments)

    def run(self, name, *arguments):
        """Runs a program in a folder without the sources, which Python would import."""
        command = [self.programs / name, *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder)

    def printed(self, name, *arguments):
        ran = self.run(name, *arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def check_ours(self):
        """Checks that the module and the command are those of this project."""
        version = f"tapeloop {pytapeloop.__version__}"
        assert self.printed("pytapeloop", "--version") == version
        assert self.printed("python", "-m", "pytapeloop", "--version") == version
        assert "Usage: pytapeloop" in self.printed("pytapeloop", "--help")
        completions = self.printed("pytapeloop", "completions", "bash")
        assert "complete -F _pytapeloop" in completions
        program = "import pytapeloop; print(pytapeloop.Features.__module__)"
        assert self.printed("python", "-c", program) == "pytapeloop._features"

    def check_theirs(self, version):
        assert self.printed("tapeloop") == f"namesake {version}"
        assert self.printed("python", "-c", "import tapeloop; tapeloop.main()") == f"namesake {version}"

    def check_missing(self, name):
        assert not (self.programs / name).exists()
        assert "ModuleNotFoundError" in self.run("python", "-c", f"import {name}").stderr


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path)


@pytest.mark.parametrize("is_ours_first", [True, False])
def test_both_work_in_one_environment_whichever_is_installed_first(
    is_ours_first, environment, namesakes
):
    folder, theirs = namesakes
    for wheel in (WHEEL, theirs) if is_ours_first else (theirs, WHEEL):
        environment.install(wheel)
    environment.check_ours()
    environment.check_theirs("0.1.1")

    # Neither an upgrade of theirs nor its removal changes ours.
    environment.install("--upgrade", "--find-links", folder, "tapeloop")
    environment.check_ours()
    environment.check_theirs("9.0")
    environment.pip("uninstall", "--yes", "tapeloop")
    environment.check_ours()
    environment.check_missing("tapeloop")


def test_neither_comes_with_the_other(environment, namesakes, tmp_path):
    environment.install(WHEEL)
    environment.check_ours()
    environment.check_missing("tapeloop")
    other = Environment(tmp_path / "other")
    other.install(namesakes[1])
    other.check_theirs("0.1.1")
    other.check_missing("pytapeloop")
