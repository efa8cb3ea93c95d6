"""The command line program, which lies in the package."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import _native
from ._progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import RunSettings

# How the lines of --progress-json begin: the counts, and how far the compilation of kernels is.
PROGRESS = '{"progress":'
COMPILING = '{"compiling":'

# Exit codes of the program, as docs/ERRORS.md lists them.
REJECTED = 3


def program() -> str:
    """The path of the program ``tapeloop``.

    Raises:
        TapeloopError: The package was built without it.
    """
    path = Path(__file__).parent / "bin" / "tapeloop"
    if not path.is_file():
        raise _native.TapeloopError(f"{path} is missing: the package was built without the program")
    return str(path)


def main() -> NoReturn:
    """Becomes the program, whose usage names the command that was typed."""
    path = program()
    os.execv(path, ["pytapeloop", *sys.argv[1:]])


def run(
    config: str | os.PathLike[str] | None = None,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> dict[str, Any]:
    """Runs ``tapeloop run``, which writes tables into a folder.

    Args:
        config: A TOML file; None for none.
        inputs: Files, folders, globs, archives and lists, in place of the config's.
        output: The folder of the tables, in place of the config's.
        overwrite: Whether results of an earlier run are replaced.
        resume: Whether to go on with a run that was interrupted.
        progress: Whether the counts so far are shown, as ``Features.stream`` shows them.
        settings: Keys of the config file, over those of ``config``.

    Returns:
        The contents of ``run.json``: counts, times in seconds, columns with their units, and settings.

    Raises:
        ConfigError: A setting is wrong; nothing was written.
        TapeloopError: An input leads to no file, or the run failed. Inputs that were rejected raise
            nothing; they are in ``rejected.jsonl`` and counted in the result.
        ValueError: ``progress`` is no truth value.
    """
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    command = [program(), "run", "--json"]
    command += [os.fspath(config)] if config is not None else []
    for path in paths:
        command += ["--input", os.fspath(path)]
    command += ["--output", os.fspath(output)] if output is not None else []
    command += ["--overwrite"] if overwrite else []
    command += ["--resume"] if resume else []
    for key, value in _flat("", dict(settings)):
        command += ["--set", f"{key}={json.dumps(value, default=os.fspath)}"]
    shown = Progress(progress)
    command += ["--progress-json"] if shown.show is not None else []
    with tempfile.TemporaryFile("w+") as record, _started(command, stdout=record) as process:
        try:
            problems = _problems(process, shown)
        except KeyboardInterrupt:
            # The terminal has sent Ctrl-C to the program too, which ends in order.
            process.communicate()
            raise
        finally:
            shown.end()
        record.seek(0)
        printed = record.read()
    if process.returncode in (0, REJECTED):
        sys.stderr.write(problems)
        return json.loads(printed) if printed else {}
    raise _error("run", process.returncode, problems)


def methods(folder: str | os.PathLike[str]) -> str:
    """What a publication says of a run: the version, what was read and rejected, the formula, the source and
    the settings of each feature, other settings that were changed, and the references as BibTeX. The
    command ``tapeloop methods`` prints the same.

    Args:
        folder: The folder that ``run`` or ``tapeloop run`` wrote.

    Returns:
        The text, in lines of at most 80 characters but for the titles of references.

    Raises:
        TapeloopError: No run wrote the folder.
    """
    command = [program(), "methods", os.fspath(folder)]
    with _started(command, stdout=subprocess.PIPE) as process:
        printed, problems = process.communicate()
    if process.returncode != 0:
        raise _error("methods", process.returncode, problems)
    return printed


def _started(command: list[str], stdout: Any) -> subprocess.Popen[str]:
    """Starts the program, whose standard error is a pipe."""
    try:
        return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    except (OSError, ValueError) as error:
        text = f"{command[0]} cannot be started: {error}"
        number = getattr(error, "errno", None)
        if number == errno.EAGAIN:
            text += " (fix: raise the limit of processes: ulimit -u, or pids.max of a container)"
        elif number == errno.E2BIG:
            text += " (fix: write the inputs into a file, one a line, and pass @FILE)"
        raise _native.TapeloopError(text) from None


def _error(command: str, code: int, printed: str) -> _native.TapeloopError:
    """The error of a command of the program, from its exit code and what it printed."""
    text = printed.strip().removeprefix("error: ")
    kind = _native.ConfigError if code == 2 else _native.TapeloopError
    return kind(text or f"tapeloop {command} ended with code {code}")


def _problems(process: subprocess.Popen[str], shown: Progress) -> str:
    """Waits for the program, shows the counts that it prints, and returns what else it prints to
    standard error."""
    problems = []
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(COMPILING):
            continue
        if not line.startswith(PROGRESS):
            problems.append(line)
        elif shown.show is not None:
            counts = json.loads(line)["progress"]
            names = ("inputs_total", "inputs", "structures", "residues", "rejected")
            shown.show(*(counts[name] for name in names))
    process.wait()
    return "".join(problems)


def _flat(prefix: str, settings: dict[str, Any]) -> Any:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        elif value is not None:
            yield f"{prefix}{key}", value
