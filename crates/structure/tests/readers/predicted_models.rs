//! Which files are predicted models, and what their B factors mean.

use crate::has_parts;
use tapeloop_structure::ErrorKind;
use tapeloop_structure::{BFactorKind, Format, ReadOptions, Reader, Structure};
use tapeloop_test_support::repository;

const ATOM_SITE: &str = "loop_\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n\
    _atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
    _atom_site.B_iso_or_equiv\n";
const METRIC: &str = "loop_\n_ma_qa_metric.id\n_ma_qa_metric.mode\n_ma_qa_metric.name\n\
    _ma_qa_metric.type\n1 global pTM pTM\n2 local pLDDT 'pLDDT in [0,1]'\n";

fn read(kind: Option<BFactorKind>, text: &str, format: Format) -> Structure {
    let options = ReadOptions {
        b_factor_kind: kind,
        ..ReadOptions::default()
    };
    let mut reader = Reader::new(options);
    let mut structures = reader
        .read_bytes(text.as_bytes(), format)
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    structures.remove(0)
}

/// Two alpha carbons with these B factors.
fn atoms(b_factors: [&str; 2]) -> String {
    let [first, second] = b_factors;
    format!("{ATOM_SITE}CA ALA 1 0 0 0 {first}\nCA ALA 2 3 0 0 {second}\n")
}

fn mmcif(kind: Option<BFactorKind>, categories: &[&str]) -> Structure {
    let text = format!("data_x\n{}", categories.concat());
    read(kind, &text, Format::Mmcif)
}

/// A PDB file with an atom of B factor 93.5 after these lines.
fn pdb_text(lines: &str) -> String {
    let atom = "ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00 93.50           C\n";
    format!("{lines}\n{atom}")
}

fn pdb(lines: &str) -> Structure {
    read(None, &pdb_text(lines), Format::Pdb)
}

#[test]
fn a_metric_that_names_plddt_makes_a_model_before_the_atoms_or_after() {
    let atoms = atoms(["93.5", "41"]);
    let pairs = "_ma_qa_metric.name\n'predicted lDDT'\n_ma_qa_metric.type PLDDT\n";
    for metric in [METRIC, pairs, "_ma_qa_metric.name pLDDT\n"] {
        for order in [[metric, &atoms], [&atoms, metric]] {
            let structure = mmcif(None, &order);
            assert_eq!(structure.b_factor_kind, BFactorKind::Plddt, "{order:?}");
            assert_eq!(structure.b_factor, [93.5, 41.0]);
            assert!(!structure.plddt_scaled);
        }
    }
}

#[test]
fn other_metrics_and_no_metric_leave_temperature_factors() {
    let atoms = atoms(["0.5", "1.0"]);
    let other = "_ma_qa_metric.name pTM\n_ma_qa_metric.type other\n";
    let local = "_ma_qa_metric_local.metric_id pLDDT\n";
    for metric in ["", other, local] {
        let structure = mmcif(None, &[&atoms, metric]);
        assert_eq!(structure.b_factor_kind, BFactorKind::Temperature);
        assert_eq!(structure.b_factor, [0.5, 1.0], "and they are not scaled");
    }
}

#[test]
fn a_title_that_names_a_predictor_makes_a_model() {
    let titles = [
        "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR LYSOZYME",
        "TITLE     LYSOZYME\nTITLE    2 BY AlphaFold",
        "TITLE     ESMFOLD V1 PREDICTION FOR INPUT",
        "TITLE     LYSOZYME, COLABFOLD",
        "TITLE     Chai-1 predicted structure",
    ];
    for title in titles {
        assert_eq!(pdb(title).b_factor_kind, BFactorKind::Plddt, "{title}");
    }
    let others = [
        "TITLE     LYSOZYME",
        "TITLE     CHAI-1",
        "REMARK   1 ALPHAFOLD",
    ];
    for title in others {
        assert_eq!(
            pdb(title).b_factor_kind,
            BFactorKind::Temperature,
            "{title}"
        );
    }
}

#[test]
fn what_states_an_experiment_precedes_a_title_that_names_a_predictor() {
    let title = "TITLE     AN ALPHAFOLD MODEL SOLVED THE PHASES";
    let experiments = [
        "EXPDTA    X-RAY DIFFRACTION",
        "EXPDTA    X-RAY DIFFRACTION; THEORETICAL MODEL",
        "REMARK   2 RESOLUTION.    1.74 ANGSTROMS.",
        "REMARK   3   RESOLUTION RANGE HIGH (ANGSTROMS) : 1.70",
    ];
    for experiment in experiments {
        for lines in [[title, experiment], [experiment, title]] {
            let structure = pdb(&lines.join("\n"));
            let kind = structure.b_factor_kind;
            assert_eq!(kind, BFactorKind::Temperature, "{lines:?}");
        }
    }
    let predictions = [
        "EXPDTA    THEORETICAL MODEL",
        "EXPDTA    PREDICTION",
        "REMARK   2 RESOLUTION. NOT APPLICABLE.",
    ];
    for prediction in predictions {
        let structure = pdb(&format!("{prediction}\n{title}"));
        assert_eq!(structure.b_factor_kind, BFactorKind::Plddt, "{prediction}");
    }
}

#[test]
fn the_categories_of_mmcif_precede_the_title_too() {
    let atoms = atoms(["93.5", "41"]);
    let title = "_struct.title 'AN ALPHAFOLD MODEL SOLVED THE PHASES'\n";
    let kind = |category: &str| mmcif(None, &[title, category, &atoms]).b_factor_kind;
    let experiments = [
        "_exptl.method 'X-RAY DIFFRACTION'\n",
        "loop_\n_exptl.entry_id\n_exptl.method\nx 'THEORETICAL MODEL'\nx 'SOLUTION NMR'\n",
        "_struct.pdbx_structure_determination_methodology experimental\n",
        "_refine.ls_d_res_high 2.0\n",
        "_em_3d_reconstruction.resolution 3.4\n",
    ];
    for experiment in experiments {
        assert_eq!(kind(experiment), BFactorKind::Temperature, "{experiment}");
    }
    let predictions = [
        "",
        "_exptl.method 'THEORETICAL MODEL'\n",
        "_exptl.method ?\n_refine.ls_d_res_high .\n",
        "_struct.pdbx_structure_determination_methodology computational\n",
    ];
    for prediction in predictions {
        assert_eq!(kind(prediction), BFactorKind::Plddt, "{prediction}");
    }
    // A metric is about these very values.
    let metric = mmcif(None, &[METRIC, experiments[0], &atoms]);
    assert_eq!(metric.b_factor_kind, BFactorKind::Plddt);
}

#[test]
fn a_model_whose_file_does_not_name_plddt_has_temperature_factors() {
    let structure = pdb("EXPDTA    THEORETICAL MODEL, MODELLER 9v5");
    assert_eq!(structure.b_factor_kind, BFactorKind::Temperature);
    let list = "_ma_model_list.model_id 1\n_ma_model_list.model_name 'Model 1'\n";
    let structure = mmcif(None, &[list, &atoms(["0.9", "0.5"])]);
    assert_eq!(structure.b_factor_kind, BFactorKind::Temperature);
    assert_eq!(structure.b_factor, [0.9, 0.5], "and they are not scaled");
}

#[test]
fn values_out_of_range_are_refused_as_plddt() {
    let refused = |kind, text: &str, format| {
        let options = ReadOptions {
            b_factor_kind: kind,
            ..ReadOptions::default()
        };
        let error = Reader::new(options)
            .read_bytes(text.as_bytes(), format)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        error.to_string()
    };
    let text = |b_factors| format!("data_x\n{METRIC}{}", atoms(b_factors));
    let above = refused(None, &text(["7.5", "172"]), Format::Mmcif);
    assert!(
        has_parts(&above, "from 7.5 to 172 .. fix: .. b_factor = \"b\""),
        "{above}"
    );
    let below = refused(None, &text(["-0.01", "?"]), Format::Mmcif);
    assert!(below.contains("from -0.01 to -0.01"));
    let title = pdb_text("TITLE     ALPHAFOLD").replace(" 93.50", "100.01");
    assert!(refused(None, &title, Format::Pdb).contains("from 100.01 to 100.01"));
    let untitled = pdb_text("").replace(" 93.50", "100.01");
    let plddt = Some(BFactorKind::Plddt);
    assert!(refused(plddt, &untitled, Format::Pdb).contains("from 100.01 to 100.01"));
    let temperature = Some(BFactorKind::Temperature);
    assert_eq!(
        read(temperature, &title, Format::Pdb).b_factor,
        [100.01_f32]
    );
    let ends = mmcif(None, &[METRIC, &atoms(["0", "100"])]);
    assert_eq!(ends.b_factor, [0.0, 100.0]);
}

#[test]
fn a_reader_forgets_the_model_before() {
    let mut reader = Reader::new(ReadOptions::default());
    let mut kind = |metric: &str| {
        let text = format!("data_x\n{metric}{}", atoms(["50", "60"]));
        let structures = reader.read_bytes(text.as_bytes(), Format::Mmcif).unwrap();
        structures[0].b_factor_kind
    };
    assert_eq!(kind(METRIC), BFactorKind::Plddt);
    assert_eq!(kind(""), BFactorKind::Temperature);
}

#[test]
fn plddt_from_0_to_1_is_taken_times_100() {
    let read = |b_factors| mmcif(None, &[METRIC, &atoms(b_factors)]);
    let scaled = read(["0.935", "1"]);
    assert!(scaled.plddt_scaled);
    assert_eq!(scaled.b_factor, [0.935 * 100.0, 100.0]);
    let with_null = read(["?", "0.5"]);
    assert!(with_null.plddt_scaled && with_null.b_factor[0].is_nan());
    assert_eq!(with_null.b_factor[1], 50.0);
    assert!(!read(["0.5", "1.001"]).plddt_scaled);
    assert!(!read(["?", "."]).plddt_scaled, "no value says so");
}

#[test]
fn the_options_override_the_file() {
    let atoms = atoms(["0.5", "0.25"]);
    let temperature = mmcif(Some(BFactorKind::Temperature), &[METRIC, &atoms]);
    assert_eq!(temperature.b_factor_kind, BFactorKind::Temperature);
    assert_eq!(temperature.b_factor, [0.5, 0.25]);
    let plddt = mmcif(Some(BFactorKind::Plddt), &[&atoms]);
    assert_eq!(plddt.b_factor_kind, BFactorKind::Plddt);
    assert_eq!(plddt.b_factor, [50.0, 25.0]);
}

#[test]
fn a_boltz_prediction_is_a_model() {
    let path = repository("samples/boltz2-p28335.cif.gz");
    let mut reader = Reader::new(ReadOptions::default());
    let structure = reader.read_path(&path).unwrap().remove(0);
    assert_eq!(structure.b_factor_kind, BFactorKind::Plddt);
    assert!(!structure.plddt_scaled);
    // As `_ma_qa_metric_local` has the first residue.
    assert_eq!(
        structure.b_factor[structure.residues[0].ca as usize],
        85.319
    );
}
