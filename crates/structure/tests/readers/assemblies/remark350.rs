//! Assemblies of PDB files, which REMARK 350 defines.

use super::*;

fn atom(chain: &str, x: f64) -> String {
    format!(
        "ATOM      1  CA  ALA{chain:>2}   1    {x:8.3}   0.000   0.000  1.00 10.00           C\n"
    )
}

pub(super) fn remark(text: &str) -> String {
    format!("REMARK 350 {text}\n")
}

/// The lines of an operator that only moves, by `x` A.
pub(super) fn biomt(serial: u32, x: f64) -> String {
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        .into_iter()
        .zip([x, 0.0, 0.0])
        .zip(1..)
        .map(|(([a, b, c], by), row)| {
            remark(&format!(
                "  BIOMT{row} {serial:3} {a}.0 {b}.0 {c}.0 {by:10.5}"
            ))
        })
        .collect()
}

pub(super) fn pdb(remarks: &[String], chains: &[&str]) -> String {
    let atoms = chains.iter().zip(0..);
    let atoms: String = atoms
        .map(|(chain, x)| atom(chain, f64::from(x) / 10.0))
        .collect();
    format!("{}{atoms}END\n", remarks.concat())
}

#[test]
fn remark_350_applies_operators_to_chains_group_by_group() {
    let remarks = [
        remark(""),
        remark("BIOMOLECULE: 1"),
        remark("AUTHOR DETERMINED BIOLOGICAL UNIT: DIMERIC"),
        remark("APPLY THE FOLLOWING TO CHAINS: A,"),
        remark("                   AND CHAINS: B, NULL"),
        biomt(1, 0.0),
        biomt(2, 5.0),
        remark("APPLY THE FOLLOWING TO CHAINS: AA"),
        biomt(1, 7.0),
        remark("BIOMOLECULE: 2"),
        remark("APPLY THE FOLLOWING TO CHAINS: C"),
        biomt(1, 0.0),
    ];
    let text = pdb(&remarks, &["A", "B", "C", "AA", " "]);
    for text in [text.clone(), text.replace('\n', "\r\n")] {
        let structure = built(&text, Format::Pdb);
        assert_eq!(xs(&structure), [0, 100, 400, 5000, 5100, 5400, 7300]);
        assert_eq!(names(&structure), ["A", "B", "", "A-2", "B-2", "-2", "AA"]);
    }
}

#[test]
fn every_model_of_a_file_is_built() {
    let remarks = [
        remark("BIOMOLECULE: 1"),
        remark("APPLY THE FOLLOWING TO CHAINS: A"),
        biomt(1, 0.0),
        biomt(2, 5.0),
    ];
    let model = |atom: &str| format!("MODEL\n{atom}ENDMDL\n");
    let water = atom("A", 0.0).replace("ALA", "HOH");
    let models = [&atom("A", 0.0), &water, &atom("A", 1.0)].map(|atom| model(atom));
    let text = format!("{}{}", remarks.concat(), models.concat());
    let structures = assembly_of(Models::All).read_bytes(text.as_bytes(), Format::Pdb);
    let found: Vec<Vec<i32>> = structures.unwrap().iter().map(xs).collect();
    assert_eq!(found, [vec![0, 5000], vec![], vec![1000, 6000]]);
}

#[test]
fn a_pdb_file_without_assembly_1_is_read_as_deposited() {
    let other = [
        remark("BIOMOLECULE: 2"),
        remark("APPLY THE FOLLOWING TO CHAINS: A"),
        biomt(1, 5.0),
    ];
    for remarks in [&other[..], &[]] {
        let structure = read(&pdb(remarks, &["A"]), Format::Pdb).unwrap();
        assert_eq!(
            (structure.assembly, xs(&structure)),
            (Assembly::Deposited, vec![0])
        );
    }
}

#[test]
fn remark_350_that_is_malformed_is_refused_by_line() {
    let first = remark("BIOMOLECULE: 1");
    let apply = remark("APPLY THE FOLLOWING TO CHAINS: A");
    let whole = biomt(1, 0.0);
    let rows: Vec<String> = whole.split_inclusive('\n').map(str::to_owned).collect();
    let lacks = "lack operators";
    let cases = [
        (vec![first.clone(), whole.clone()], 2, "no APPLY"),
        (vec![first.clone(), remark("AND CHAINS: A")], 2, "no APPLY"),
        (vec![first.clone(), apply.clone()], 2, lacks),
        (
            vec![first.clone(), apply.clone(), apply.clone(), whole.clone()],
            2,
            lacks,
        ),
        (
            vec![first.clone(), apply.clone(), whole.clone(), rows[0].clone()],
            2,
            lacks,
        ),
        (
            vec![first.clone(), apply.clone(), rows[1].clone()],
            3,
            "BIOMT1 of",
        ),
        (
            vec![
                first.clone(),
                apply.clone(),
                rows[0].clone(),
                rows[2].clone(),
            ],
            4,
            "BIOMT2 of",
        ),
        (
            vec![first.clone(), apply.clone(), rows[0].clone(), biomt(2, 0.0)],
            4,
            "BIOMT2 of",
        ),
        (
            vec![first.clone(), apply.clone(), rows[0].replace("1.0", "x")],
            3,
            "four numbers",
        ),
        (
            vec![
                first.clone(),
                apply.clone(),
                rows[0].replace(" 0.00000", ""),
            ],
            3,
            "four numbers",
        ),
        (
            vec![first.clone(), apply.clone(), whole.replace("1.0", "2.0")],
            5,
            "rotation",
        ),
    ];
    for (remarks, line, words) in cases {
        let error = error(&pdb(&remarks, &["A"]), Format::Pdb);
        assert_eq!(error.kind(), ErrorKind::Input);
        let message = error.message();
        assert!(
            message.starts_with(&format!("line {line}:")),
            "{message}: {remarks:?}"
        );
        assert!(message.contains(words), "{message}: {remarks:?}");
        assert!(error.fix_text().is_some());
    }
}
