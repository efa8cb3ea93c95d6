//! Areas with sets of radii.

use super::*;
use crate::every_feature::every_feature;
use crate::tables::{bits as bits_of, outcomes};
use std::collections::BTreeSet;
use std::fmt::Write;
use tapeloop::structure::{Radii, ReadOptions};

/// The first model of a sample, with its ligands and the names of its atoms.
fn sample_with(name: &str, radii: Radii) -> Structure {
    let mut reader = Reader::new(ReadOptions {
        ligands: true,
        atom_details: true,
        radii,
        ..ReadOptions::default()
    });
    let path = repository("samples").join(name);
    reader.read_path(&path).unwrap().remove(0)
}

fn named(name: &str) -> Radii {
    Radii::named(name).unwrap()
}

#[test]
fn areas_with_each_set_match_the_definition() {
    for set in ["naccess", "oons", "bondi"] {
        for (name, points) in [("1ubi.pdb", 64), ("1yjp.cif", 256), ("1lcd.pdb.gz", 32)] {
            let s = sample_with(name, named(set));
            let sasa = Sasa {
                points,
                radii: s.radii,
                ..Sasa::default()
            };
            let config = only(&[FeatureName::Sasa], sasa.clone());
            let tables = compute(config, slice::from_ref(&s));
            assert_matches(&s, &tables[0], &sasa);
        }
    }
}

/// The areas that FreeSASA 2.2.1 computes with its own radii and classes of the same sets.
/// `tests/oracles/radii.py` wrote them.
#[test]
fn areas_are_those_of_freesasa_with_its_classifiers() {
    let golden = include_str!("../../oracles/radii.tsv");
    let mut rows = 0;
    for set in ["naccess", "oons"] {
        for name in ["1ubi.pdb", "3mht.pdb.gz"] {
            let s = sample_with(name, named(set));
            let sasa = Sasa {
                radii: s.radii,
                ..Sasa::default()
            };
            let table = &compute(only(&[FeatureName::Sasa], sasa), slice::from_ref(&s))[0];
            let [all, _, polar] = [0, 1, 2].map(|n| real(table.column(TableName::Residues, n)));
            let lines = golden.lines().skip(1).map(|line| line.split('\t'));
            let of_sample = lines.map(Iterator::collect::<Vec<_>>);
            for line in of_sample.filter(|line| line[..2] == [set, name]) {
                let row: usize = line[2].parse().unwrap();
                for (found, expected) in [all[row], polar[row]].into_iter().zip(&line[3..]) {
                    let expected: f32 = expected.parse().unwrap();
                    assert!((found - expected).abs() < 0.002, "{line:?}: {found}");
                }
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 2 * (76 + 327));
}

/// A file in which every atom of these structures has its radius of ProtOr and `more`, in 0.001 A.
fn larger_radii(structures: &[Structure], more: u32) -> Radii {
    let mut types = BTreeSet::new();
    let mut atoms = String::new();
    let mut add = |comp: &str, name: &str, radius: u32, is_polar: bool| {
        let kind = format!("T{radius}{}", u8::from(is_polar));
        writeln!(atoms, "{comp} {name} {kind}").unwrap();
        let class = if is_polar { "polar" } else { "apolar" };
        let radius = f64::from(radius + more) / 1000.0;
        types.insert(format!("{kind} {radius:.3} {class}\n"));
    };
    let text = |id: &[u8; 8]| String::from_utf8(id.trim_ascii_end().to_vec()).unwrap();
    let table = include_str!("../../../crates/structure/src/protor.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (comp, entries) = line.split_once('\t').unwrap();
        let words: Vec<&str> = entries.split(' ').collect();
        for pair in words.chunks(2) {
            let is_polar = pair[0].starts_with(['N', 'O', 'P', 'S']);
            add(comp, pair[0], pair[1].parse().unwrap(), is_polar);
        }
    }
    for s in structures {
        for ligand in &s.ligands {
            for atom in ligand.atoms.iter() {
                let radius = s.radii.milli_angstrom(atom.class);
                let name = text(&atom.details.name);
                add(ligand.component(), &name, radius, atom.class.is_polar());
            }
        }
    }
    let types: String = types.into_iter().collect();
    Radii::of_file("larger", &format!("types:\n{types}atoms:\n{atoms}")).unwrap()
}

/// Areas, contacts of interfaces and exposed points depend on the sums of a radius and the probe alone,
/// whatever part of it the kernels count as the probe.
#[test]
fn what_is_taken_from_the_probe_and_added_to_all_radii_changes_no_area() {
    let names = ["4e43.pdb.gz", "3mht.pdb.gz"];
    let usual = names.map(|name| sample_with(name, Radii::default()));
    for more in [30, 500] {
        let radii = larger_radii(&usual, more);
        let larger = names.map(|name| sample_with(name, radii));
        for (s, usual) in larger.iter().zip(&usual) {
            let ligand_classes = s.ligands.iter().flat_map(|ligand| ligand.atoms.iter());
            let classes = s.class.iter().chain(ligand_classes.map(|atom| &atom.class));
            let usual_ligands = usual.ligands.iter().flat_map(|ligand| ligand.atoms.iter());
            let usual_classes = usual_ligands.map(|atom| &atom.class);
            for (class, before) in classes.zip(usual.class.iter().chain(usual_classes)) {
                let before = usual.radii.milli_angstrom(*before);
                assert_eq!(radii.milli_angstrom(*class), before + more);
            }
        }
        let mut config = every_feature();
        config.sasa.points = 100;
        let expected = compute(config.clone(), &usual);
        config.sasa.radii = radii;
        config.sasa.probe = Cutoff::from_angstrom(f64::from(1_400 - more) / 1000.0).unwrap();
        let found = compute(config.clone(), &larger);
        let mut compared = 0;
        for (found, expected) in found.iter().zip(&expected) {
            for table in TableName::ALL {
                for (index, decl) in config.columns(table).iter().enumerate() {
                    let [found, expected] = [found, expected].map(|t| t.column(table, index));
                    if decl.name.ends_with("_depth") {
                        let pairs = real(found).iter().zip(real(expected));
                        let more = more as f32 / 1000.0;
                        pairs.for_each(|(found, expected)| {
                            let off = (found - (expected + more)).abs();
                            assert!(off < 1e-5 || expected.is_nan() && found.is_nan());
                        });
                    } else {
                        assert_eq!(bits_of(found), bits_of(expected), "{}", decl.name);
                    }
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{compared}");
    }
}

#[test]
fn a_structure_that_was_read_with_other_radii_is_refused() {
    let oons = named("oons");
    let mut config = only(&[FeatureName::Sasa], Sasa::default());
    config.sasa.radii = oons;
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let plan = EngineConfig::new(Features::capacity(2048));
    let workload = Features::new(config).unwrap();
    let mut engine = Engine::new(workload, &[backend], pool, &plan).unwrap();
    let structures = [Radii::default(), oons].map(|radii| sample_with("1yjp.cif", radii));
    let outcomes = outcomes(&mut engine, structures.iter());
    let error = outcomes[0].as_ref().err().unwrap().to_string();
    let words = ["\"protor\"", "sasa.radii is \"oons\"", "read it with"];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert!(outcomes[1].is_ok());
}

#[test]
fn the_probe_and_the_largest_radius_together_have_a_limit() {
    let with_probe = |milli: u32, radii| {
        let mut config = only(&[FeatureName::Sasa], Sasa::default());
        config.sasa.probe = Cutoff::from_angstrom(f64::from(milli) / 1000.0).unwrap();
        config.sasa.radii = radii;
        Features::new(config).err().map(|error| error.to_string())
    };
    assert_eq!(with_probe(16_000, Radii::default()), None);
    let error = with_probe(16_001, Radii::default()).unwrap();
    assert!(error.contains("16.001 A is more than 16 A"), "{error}");
    assert_eq!(with_probe(15_900, named("oons")), None);
    let error = with_probe(15_901, named("oons")).unwrap();
    let words = ["15.901 A is more than 15.9 A", "sasa.radii = \"oons\""];
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
}

#[test]
fn the_descriptions_say_whose_radii_and_classes_they_are() {
    let about = |name: &str| {
        let mut config = FeatureConfig::default();
        config.sasa.radii = named(name);
        let columns = config.columns_of(FeatureName::Sasa);
        (
            config.about(FeatureName::Sasa).source,
            columns[2].about.clone(),
        )
    };
    for (name, source, polar) in [
        ("protor", "Tsai et al. 1999", "sulphur"),
        ("naccess", "Hubbard and Thornton 1993", "in the set"),
        ("oons", "Ooi et al. 1987", "in the set"),
        ("bondi", "Bondi 1964", "N, O, S, Se and P"),
    ] {
        let (found, about) = about(name);
        assert!(found.contains(source), "{found}");
        assert!(about.contains(polar), "{about}");
    }
    // A file may have the name of a set.
    let file = Radii::of_file("protor", "types:\nC 1.7 apolar\natoms:\nANY CA C\n").unwrap();
    assert_ne!(file, Radii::default());
    let mut config = FeatureConfig::default();
    config.sasa.radii = file;
    let source = config.about(FeatureName::Sasa).source;
    assert!(source.ends_with("radii: of a file"), "{source}");
}
