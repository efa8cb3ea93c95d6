//! Reading takes instructions in proportion to the file.

use std::fmt::Write as _;
use tapeloop_structure::{ReadOptions, Reader};
use tapeloop_test_support::counted::{counted, instructions};

use super::limits::{everything, mmcif, operators};

/// A name, and a text of so many parts.
type Case = (&'static str, fn(usize) -> String);

/// How often the part of a text occurs in the short text of a case.
const PARTS: usize = 200;

/// Checks that 8 times the text takes at most 12 times the instructions. Linear work takes 8 times as
/// many, sorting 11 times, and quadratic work 64 times.
fn are_linear(test: &str, cases: &[Case]) {
    let Some(counts) = instructions(test) else {
        for (_, text) in cases {
            for parts in [PARTS, 8 * PARTS] {
                let text = text(parts);
                let mut reader = Reader::new(ReadOptions {
                    chemistry: true,
                    ligands: true,
                    ..everything()
                });
                counted(|| drop(reader.read_auto("a", text.as_bytes())));
            }
        }
        return;
    };
    assert_eq!(counts.len(), 2 * cases.len());
    for ((name, _), pair) in cases.iter().zip(counts.chunks(2)) {
        assert!(pair[0] > 100 * PARTS as u64, "{name}: the text is not read");
        assert!(pair[1] < 12 * pair[0], "{name}: {pair:?} instructions");
    }
}

/// Operators 1 to `count`, and generators.
fn assembly(count: usize, generators: &str) -> String {
    let tags = ["assembly_id", "oper_expression", "asym_id_list"];
    let tags = tags.map(|tag| format!("_pdbx_struct_assembly_gen.{tag}\n"));
    format!("{}loop_\n{}{generators}", operators(count), tags.concat())
}

/// An alpha carbon of a PDB file.
fn alpha_carbon(comp: &str, number: usize, place: usize) -> String {
    let [x, y, z] = [place % 100, place / 100 % 100, place / 10_000].map(|cell| cell as f64 * 5.0);
    format!("ATOM      1  CA  {comp} A{number:4}    {x:8.3}{y:8.3}{z:8.3}  1.00  9.00\n")
}

/// An alpha carbon of an mmCIF file.
fn row(chain: &str, number: usize, model: usize) -> String {
    format!("CA ALA {chain} {number} {model} {number} 2 3\n")
}

#[test]
#[ignore = "needs valgrind"]
fn splitting_chains_is_linear_in_the_file() {
    let cases: &[Case] = &[
        ("molecules of a chain whose numbers start anew", |n| {
            let atoms = (0..n).map(|i| alpha_carbon("GLY", i % 2 + 1, 2 * i));
            atoms.collect()
        }),
        ("residues of one number, in one place", |n| {
            let atoms = (0..n).map(|i| alpha_carbon(["GLY", "ALA"][i % 2], 1, 0));
            alpha_carbon("GLY", 2, 5) + &atoms.collect::<String>()
        }),
        ("residues of one number, and each between others", |n| {
            let atoms = (0..n).map(|i| {
                let number = if i % 2 == 0 { 1 } else { i % 9999 };
                alpha_carbon(["GLY", "ALA"][i / 2 % 2], number, 2 * i)
            });
            atoms.collect()
        }),
        ("models that are split", |n| {
            let models = (0..n).map(|_| {
                let two = alpha_carbon("GLY", 1, 0) + "TER\n" + &alpha_carbon("GLY", 1, 9);
                format!("MODEL        1\n{two}ENDMDL\n")
            });
            models.collect()
        }),
    ];
    are_linear("linear_time::splitting_chains_is_linear_in_the_file", cases);
}

#[test]
#[ignore = "needs valgrind"]
fn reading_is_linear_in_the_file() {
    let cases: &[Case] = &[
        ("residue numbers that alternate", |n| {
            mmcif("", &[row("A", 2, 1), row("A", 1, 1)].concat().repeat(n))
        }),
        (
            "models of one residue, and chains of the first model",
            |n| {
                let chains: String = (0..n)
                    .map(|chain| row(&format!("A{chain}"), 1, 1))
                    .collect();
                let models: String = (2..n).map(|model| row("A0", 1, model)).collect();
                mmcif("", &format!("{chains}{models}"))
            },
        ),
        (
            "names of atoms of a residue, and one name again and again",
            |n| {
                let atom =
                    |name: &str, comp: &str, i: usize| format!("{name} {comp} A 1 1 {i} 2 3\n");
                let names =
                    |comp: &'static str| (0..n).map(move |i| atom(&format!("X{i}"), comp, i));
                let again = (0..n).map(|i| atom("O1P", "G", i));
                let all = names("ALA").chain(names("G")).chain(again);
                mmcif("", &all.collect::<String>())
            },
        ),
        ("models that occur twice", |n| {
            let models = || (0..n).map(|model| row("A", 1, model));
            mmcif("", &models().chain(models().rev()).collect::<String>())
        }),
        ("struct_ref by struct_ref_seq", |n| {
            let mut references =
                "loop_\n_struct_ref.id\n_struct_ref.entity_id\n_struct_ref.db_name\n\
            _struct_ref.pdbx_db_accession\n"
                    .to_owned();
            let mut aligned = "loop_\n_struct_ref_seq.ref_id\n_struct_ref_seq.pdbx_strand_id\n\
            _struct_ref_seq.seq_align_beg\n_struct_ref_seq.seq_align_end\n\
            _struct_ref_seq.db_align_beg\n_struct_ref_seq.db_align_end\n"
                .to_owned();
            for id in 0..n {
                let _ = writeln!(references, "{id} . UNP P{id}");
                // All cover the first residue of the chain, and no other.
                let _ = writeln!(aligned, "{} A -{id} 0 1 {}", n - 1 - id, id + 1);
            }
            let rows: String = (1..n).map(|number| row("A", number, 1)).collect();
            mmcif(&format!("{references}{aligned}"), &rows)
        }),
        ("components that the file defines", |n| {
            let components: String = (0..n).map(|id| format!("Q{id} other\n")).collect();
            let rows: String = (0..n)
                .map(|id| format!("CA Q{id} A {id} 1 0 0 0\n"))
                .collect();
            let polymer = "_entity.id 1\n_entity.type polymer\n_struct_asym.id A\n\
            _struct_asym.entity_id 1\nloop_\n_chem_comp.id\n_chem_comp.type\n";
            mmcif(&format!("{polymer}{components}"), &rows)
        }),
        ("models, and bonds of their one atom and of others", |n| {
            let models = (0..n).map(|i| alpha_carbon("GLY", 1, i) + "END\n");
            let bonds = (0..n).map(|i| format!("CONECT    1{i:5}\nCONECT{i:5}{:5}\n", i + 1));
            models.chain(bonds).collect()
        }),
        ("generators of one operator each", |n| {
            let generators: String = (1..=n).map(|id| format!("1 {id} A{id}\n")).collect();
            let rows: String = (1..=n)
                .map(|chain| row(&format!("A{chain}"), 1, 1))
                .collect();
            mmcif(&assembly(n, &generators), &rows)
        }),
        ("generators that copy nothing, and models", |n| {
            let generators = "1 1 B\n".repeat(n);
            let models: String = (0..n).map(|model| row("A", 1, model)).collect();
            mmcif(&assembly(1, &format!("1 1 A\n{generators}")), &models)
        }),
        (
            "generators of other chains, and models with a ligand",
            |n| {
                let generators: String = (0..n).map(|id| format!("1 1 B{id}\n")).collect();
                let model = |model| row("A", 1, model) + &format!("C1 XYZ A 900 {model} 90 2 3\n");
                let models: String = (0..n).map(model).collect();
                mmcif(&assembly(1, &format!("1 1 A\n{generators}")), &models)
            },
        ),
        ("links of other residues, and models with a ligand", |n| {
            let link = |i: usize| {
                let end = |number: usize| format!("C1   XYZ A{:4}", number % 9999);
                format!(
                    "LINK         {}                {}     1555   1555\n",
                    end(i),
                    end(i + 1)
                )
            };
            let ligand = "HETATM    1  C1  XYZ A9999      90.000   0.000   0.000  1.00  9.00\n";
            let models = (0..n).map(|i| alpha_carbon("GLY", 1, i) + ligand + "END\n");
            (0..n).map(link).chain(models).collect()
        }),
        ("generators of a name that many chains have", |n| {
            let generators = "1 1 A\n".repeat(n);
            let rows: String = (0..n)
                .map(|chain| row("A", 1, 1).replace('\n', &format!(" A{chain}\n")))
                .collect();
            let text = mmcif(&assembly(1, &generators), &rows);
            let z = "_atom_site.Cartn_z\n";
            text.replace(z, &format!("{z}_atom_site.auth_asym_id\n"))
        }),
    ];
    are_linear("linear_time::reading_is_linear_in_the_file", cases);
}
