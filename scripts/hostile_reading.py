#!/usr/bin/env python3
"""CPU seconds and memory that files of 100 kB take which ask for as much as they can.

    cargo build --release --bin tapeloop
    python3 scripts/hostile_reading.py target/release/tapeloop [--seconds 2] [--mib 256] [--format csv]

Each attack is one gzipped file of 100,000 bytes: the attack's text, as much as
limits.unpack_ratio_max admits, and a comment of random digits that fills the file up. A run
reads it with all models, as deposited and as assembly 1, on one thread, and computes rg.
CPU seconds and peak memory are those of the whole program; the first line is a small structure.
With --mutated N, N mutations of the sample files are read too, in one run: it must not
panic. Exits with 1 if a file takes more than the limits, or if the program dies.
"""

import argparse
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PACKED = 100_000
# Below 1 for attacks that do not compress as well as the others.
scale = 1.0
TEXT = 32 * PACKED + (4 << 20) - (200 << 10)
SAMPLES = Path(__file__).parent.parent / "samples"


def loop(category, items):
    return "loop_\n" + "".join(f"_{category}.{item}\n" for item in items.split())


SITE = loop("atom_site", "label_atom_id label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y Cartn_z")
MODELS = loop("atom_site", "label_atom_id label_comp_id label_asym_id label_seq_id pdbx_PDB_model_num "
              "Cartn_x Cartn_y Cartn_z")
HETERO = loop("atom_site", "group_PDB label_atom_id label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y Cartn_z")
GENERATORS = loop("pdbx_struct_assembly_gen", "assembly_id oper_expression asym_id_list")
OPERATORS = loop("pdbx_struct_oper_list", "id " + " ".join(
    f"matrix[{r}][1] matrix[{r}][2] matrix[{r}][3] vector[{r}]" for r in (1, 2, 3)))
ATOM = "CA ALA A 1 0 0 0\n"


def operator(n, x, y=0):
    return f"{n} 1 0 0 {x} 0 1 0 {y} 0 0 1 0\n"


def operators(count):
    return OPERATORS + "".join(operator(n, n) for n in range(1, count + 1))


def fill(start, row, end="", share=1.0):
    """`start`, rows up to the share of the text, and `end`. `row(n)` is row n."""
    rows, size, n = [], len(start) + len(end), 0
    while size < TEXT * share * scale:
        rows.append(row(n))
        size += len(rows[-1])
        n += 1
    return start + "".join(rows) + end


def place(n):
    """A position for atom n, 4 A from all others."""
    return f"{n % 97 * 4} {n // 97 % 97 * 4} {n // 9409 * 4}"


def pdb(n, number, name="CA", chain="A", record="ATOM  "):
    return f"{record}{n % 100000:5} {name:^4} ALA {chain}{number:4}    {0:8.3f}{n % 9000:8.3f}{0:8.3f}  1.00  9.00\n"


def attacks():
    """The name of each attack, and a function that makes its text."""
    yield "alternating residues", lambda: fill("data_x\n" + SITE, lambda n: f"CA ALA A {2 - n % 2} 1 2 3\n")
    yield "alternating residues, other atoms", lambda: fill(
        "data_x\n" + SITE, lambda n: f"C{n // 2:05} ALA A {2 - n % 2} {place(n)}\n")
    yield "pdb numbers that wrap", lambda: fill("", lambda n: pdb(n, n % 9999 + 1))
    yield "a residue each atom", lambda: fill("data_x\n" + SITE, lambda n: f"C A A {n} {place(n)}\n")
    yield "a chain each atom", lambda: fill("data_x\n" + SITE, lambda n: f"C A {n % 99_999} 1 {place(n)}\n")
    yield "a model each atom", lambda: fill("data_x\n" + MODELS, lambda n: f"C A A 1 {n % 99_999} 0 0 0\n")
    yield "50,000 chains, then models", lambda: fill(
        "data_x\n" + MODELS, lambda n: f"C A {min(n, 49_999)} 1 {max(n - 49_999, 0) % 99_999} {place(n)}\n")
    yield "models that come again", lambda: fill(
        "data_x\n" + MODELS, lambda n: f"C A A 1 {abs(n % 180000 - 90000)} 0 0 0\n")
    yield "a pdb model each atom", lambda: fill("", lambda n: "MODEL\n" + pdb(n, 1))
    yield "a coordinate of 7 MB", lambda: "data_x\n" + SITE + "CA ALA A 1 " + "1" * (TEXT - 1000) + " 0 0\n"
    yield "names of 7 MB", lambda: "data_" + "x" * (TEXT - 1000) + "\n" + SITE + ATOM
    yield "chain names of 256 bytes", lambda: fill("data_x\n" + SITE, lambda n: f"CA ALA {n:0256} 1 {place(n)}\n")
    yield "accessions of 256 bytes in all models", lambda: (
        "data_" + "y" * 256 + "\n"
        + loop("struct_ref", "id entity_id db_name pdbx_db_accession")
        + "".join(f"{n} . UNP {n:0256}\n" for n in range(1000))
        + loop("struct_ref_seq", "ref_id seq_align_beg seq_align_end db_align_beg db_align_end")
        + "".join(f"{n} {n} {n} 1 1\n" for n in range(1000))
        + fill(MODELS, lambda n: f"C A A {n % 1000} {n // 1000} {place(n)}\n", share=0.8))
    references = lambda: fill("data_x\n" + loop("struct_ref", "id entity_id db_name pdbx_db_accession"),
                      lambda n: f"{n} . UNP P{n}\n", share=0.2)
    aligned = lambda: fill(loop("struct_ref_seq", "ref_id pdbx_strand_id seq_align_beg seq_align_end "
                        "db_align_beg db_align_end"), lambda n: f"{n} A -{n} 0 1 {n + 1}\n", share=0.25)
    yield "struct_ref by struct_ref_seq", lambda: fill(
        references() + aligned() + SITE, lambda n: f"C A A {n + 1} {place(n)}\n")
    yield "pdb references", lambda: fill(fill("", lambda n: f"DBREF  1ABC A    1  999  UNP    P{n:05}   X_HUMAN"
                                      f"          1    999\n", share=0.5), lambda n: pdb(n, n % 9999))
    for category in ("struct_ref_seq.ref_id", "struct_asym.id", "chem_comp.id", "entity.id",
                     "pdbx_struct_oper_list.id", "pdbx_struct_assembly_gen.assembly_id"):
        yield f"99,999 rows of {category}", lambda category=category: (
            "data_x\nloop_\n_" + category + "\n" + "1\n" * 99_999 + SITE + ATOM)
        yield f"rows of {category}", lambda category=category: fill(
            "data_x\nloop_\n_" + category + "\n", lambda n: "1\n", SITE + ATOM)
    yield "components", lambda: (
        "data_x\n_entity.id 1\n_entity.type polymer\n_struct_asym.id A\n_struct_asym.entity_id 1\n"
        + loop("chem_comp", "id type") + fill("", lambda n: f"Q{n} other\n", share=0.1)
        + fill(SITE, lambda n: f"C Q{n % 99_999} A {n} {place(n)}\n", share=0.5))
    chains = lambda: fill(SITE, lambda n: f"CA ALA A{n + 1} 1 {place(n)}\n", share=0.1)
    yield "generators", lambda: (
        fill("data_x\n" + operators(300) + GENERATORS, lambda n: f"1 {n % 300 + 1} A{n + 1}\n", share=0.2) + chains())
    yield "generators of all chains", lambda: ("data_x\n" + operators(300) + GENERATORS
                                       + f"1 1 {','.join(f'A{n}' for n in range(1, 5_001))}\n" * 100 + chains())
    yield "generators that copy nothing, and models", lambda: fill(
        fill("data_x\n" + operators(1) + GENERATORS + "1 1 A\n", lambda n: "1 1 B\n", MODELS, share=0.1),
        lambda n: f"C A A 1 {n % 99_999} 0 0 0\n", share=0.8)
    yield "generators of a name that many chains have", lambda: fill(
        fill("data_x\n" + operators(1) + GENERATORS, lambda n: "1 1 A\n",
             SITE.replace("label_seq", "auth_asym_id\n_atom_site.label_seq"), share=0.1),
        lambda n: f"C A A {n % 99_999} 1 {place(n)}\n", share=0.8)
    for name in ("A", "B"):
        yield f"a generator that lists {name} without end", lambda name=name: fill(
            "data_x\n" + operators(1) + GENERATORS + "1 1 A", lambda n: "," + name, "\n" + SITE + ATOM)
    yield "60,000 copies of a chain with a name of 256 bytes", lambda: (
        "data_x\n" + OPERATORS + "".join(operator(n, 4 * n) for n in range(300))
        + "".join(operator(n, 0, 4 * n) for n in range(300, 500))
        + GENERATORS + f"1 (0-299)(300-499) {'A' * 256}\n" + SITE
        + f"CA ALA {'A' * 256} 1 0 0 0\n")
    # limits.row_names_bytes_max admits the shorter ones: two names of the chain, with the number of
    # the copy, and those of the entry, the entity and the accession.
    for size in (256, 49):
        yield f"names of {size} bytes in each row of copies in 8 models", lambda size=size: (
            "data_" + "y" * size + f"\n_struct_asym.id {'A' * size}\n_struct_asym.entity_id {'e' * size}\n"
            + f"_entity.id {'e' * size}\n_entity.type polymer\n"
            + f"_struct_ref.id 1\n_struct_ref.entity_id {'e' * size}\n_struct_ref.db_name UNP\n"
            + f"_struct_ref.pdbx_db_accession {'p' * size}\n_struct_ref_seq.ref_id 1\n"
            + "_struct_ref_seq.seq_align_beg 1\n_struct_ref_seq.seq_align_end 1000\n"
            + "_struct_ref_seq.db_align_beg 1\n_struct_ref_seq.db_align_end 1000\n"
            + OPERATORS + "".join(operator(n, 0, 60 * n) for n in range(1, 131)) + GENERATORS
            + f"1 1-130 {'A' * size}\n" + MODELS
            + "".join(f"CA ALA {'A' * size} {n} {model} {place(n)}\n" for model in range(8) for n in range(1000)))
    yield "factors of an expression", lambda: fill("data_x\n" + operators(300) + GENERATORS + "1 (1-300)(1-300)",
                                           lambda n: "(1)", " A\n" + SITE + ATOM)
    yield "lists of an expression", lambda: fill("data_x\n" + operators(300) + GENERATORS + "1 1", lambda n: ",1",
                                         " A\n" + SITE + ATOM)
    yield "80,000 copies of 100 atoms", lambda: (
        "data_x\n" + operators(400) + GENERATORS + "1 (1-200)(1-400) A\n" + SITE
        + "".join(f"C{n} ALA A {n // 10} {place(n)}\n" for n in range(100)))
    yield "30 copies of all atoms", lambda: fill(
        "data_x\n" + operators(300) + GENERATORS + "1 1-30 A\n" + SITE,
        lambda n: f"C{n % 10} ALA A {n // 10} {place(n)}\n", share=0.9)
    yield "remark 350", lambda: fill("REMARK 350 BIOMOLECULE: 1\n", lambda n: (
        "REMARK 350 APPLY THE FOLLOWING TO CHAINS: A\n"
        + "".join(f"REMARK 350   BIOMT{r} 1 {int(r == 1)} {int(r == 2)} {int(r == 3)} 0\n" for r in (1, 2, 3))),
        fill("", lambda n: pdb(n, n % 9999), share=0.2))
    yield "links of residues with a thousand atoms", lambda: fill(
        "data_x\n" + HETERO, lambda n: f"HETATM {'CN'[n % 2]} SEP A {n // 8000} {n // 1000} {n % 999} 0\n")
    yield "atoms of one name in one residue", lambda: fill("data_x\n" + SITE, lambda n: "C ALA A 1 0 0 0\n")
    yield "a loop with a million columns", lambda: "data_x\nloop_\n" + "_a\n" * (TEXT // 5) + "1 " * (TEXT // 5) + "\n" + SITE + ATOM
    yield "loops of 1,000 columns", lambda: fill(
        "data_x\n", lambda n: "loop_\n" + "_a\n" * 1000 + "1 " * 1000 + "\n", SITE + ATOM)
    yield "loops", lambda: fill("data_x\n", lambda n: "loop_\n_a.b\n1\n", SITE + ATOM)
    yield "loops of atoms", lambda: fill("data_x\n" , lambda n: SITE + f"CA ALA A {n} {place(n)}\n")
    yield "rows between comments", lambda: fill("data_x\n" + SITE, lambda n: f"CA ALA A {n} # x\n1 2 3\n")
    yield "quotes", lambda: fill("data_x\n" + SITE, lambda n: f"'C A' \"ALA\" 'A B' {n} 1 2 3\n")
    yield "text fields", lambda: fill("data_x\n" + SITE, lambda n: f"CA ALA\n;A\n;\n{n} {place(n)}\n")
    yield "blank lines", lambda: fill("", lambda n: "\n", "data_x\n" + SITE + ATOM)
    yield "zeros", lambda: "\0" * TEXT
    yield "a gigabyte of zeros", lambda: "\0" * (95 * 1030 * 1000)


def packed(text):
    """Gzip data of PACKED bytes, if the text leaves room for a comment that fills it."""
    text = text.encode()
    size = len(gzip.compress(text, 9, mtime=0))
    # Random hexadecimal digits take a little over half a byte each.
    digits = random.Random(1).randbytes(max(PACKED - size - 1000, 0) * 43 // 50).hex()
    comment = "".join(f"\n#{digits[at:at + 70]}" for at in range(0, len(digits), 70))
    return gzip.compress(text + comment.encode(), 9, mtime=0)


def write_attack(folder, number, make):
    """Writes an attack, in a process of its own: a child's peak memory starts with its parent's."""
    global scale
    if os.fork() > 0:
        _, status = os.wait()
        assert status == 0
        return
    text = make()
    while len(data := packed(text)) > PACKED * 1.05 and scale > 0.01:
        scale *= min(0.95 * PACKED / len(data), 0.95)
        text = make()
    suffix = "pdb" if text.startswith(("ATOM", "MODEL", "DBREF", "REMARK")) else "cif"
    (folder / f"{number:03}.{suffix}.gz").write_bytes(data)
    os._exit(0)


def mutated(folder, count):
    """Mutations of the samples that are small, as the fuzzers of a text format make them."""
    chance = random.Random(7)
    texts = []
    for path in sorted(SAMPLES.iterdir()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if path.suffix != ".md":
            texts.append((".pdb" if ".pdb" in path.name else ".cif", data[:40_000]))
    for n in range(count):
        suffix, data = chance.choice(texts)
        data = bytearray(data)
        for _ in range(chance.randint(1, 12)):
            at = chance.randrange(len(data))
            end = min(at + chance.randrange(1, 200), len(data))
            match chance.randrange(5):
                case 0: del data[at:end]
                case 1: data[at:at] = data[at:end] * chance.choice((1, 2, 50))
                case 2: data[at] = chance.choice(b"\0\n\r\t '\"#;_.?-+09AZaz\x7f\xff")
                case 3: data[at:end] = chance.randbytes(end - at)
                case 4: data[at:at] = chance.choice((b"\nloop_\n", b"\n;", b" 9999999999", b" -", b" 1e999", b"\nMODEL"))
        if chance.random() < 0.1:
            data = bytearray(gzip.compress(bytes(data), 1))
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        (folder / f"{n:06}{suffix}").write_bytes(data)


def run(program, table_format, source, out, assembly, threads=1):
    """Exit code, CPU seconds, MiB, and what the program says."""
    args = [program, "run", "--backend", "cpu", "--features", "rg", "--models", "all", "--overwrite",
            "--threads", str(threads), "--set", f"assembly={assembly}", "--set", f"tables.format={table_format}",
            "-i", source, "-o", out]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--format", default="parquet", choices=("parquet", "arrow", "csv"), help="of the tables")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--mib", type=float, default=256.0)
    parser.add_argument("--mutated", type=int, default=0, metavar="N")
    parser.add_argument("--only", default="", help="attacks whose names contain this")
    args = parser.parse_args()
    # A program that goes beyond all limits must not take the machine with it.
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        out = folder / "out"
        sample = SAMPLES / "1ubi.pdb"
        chosen = [(name, make) for name, make in attacks() if args.only in name]
        for number, (name, make) in enumerate([("(a sample)", None), *chosen]):
            source = sample
            if make:
                write_attack(folder, number, make)
                [source] = folder.glob(f"{number:03}.*")
            for assembly in ("deposited", "1"):
                code, seconds, mib, said = run(args.program, args.format, source, out, assembly)
                good = code in (0, 1, 3) and seconds <= args.seconds and mib <= args.mib and "panic" not in said
                failures += not good
                reasons = (line.strip()[-150:] for line in said.splitlines() if f"{source.name}: " in line)
                print(f"{'' if good else 'FAIL '}{name}, {assembly}: {seconds:.2f} s, {mib:.0f} MiB, "
                      f"{source.stat().st_size} bytes, exit {code}: {next(reasons, 'read')}", flush=True)
        if args.mutated:
            (folder / "mutated").mkdir()
            mutated(folder / "mutated", args.mutated)
            for assembly in ("deposited", "1"):
                code, seconds, mib, said = run(args.program, args.format, folder / "mutated", out, assembly, threads=0)
                good = code in (0, 3) and "panic" not in said and mib <= args.mib * os.cpu_count()
                failures += not good
                print(f"{'' if good else 'FAIL '}{args.mutated} mutated files, {assembly}: {seconds:.2f} s, {mib:.0f} MiB, exit {code}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
