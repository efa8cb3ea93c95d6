use super::*;
use crate::element;
use crate::text8::text8;

/// The radius in 0.001 A of an atom of a residue, and whether it is polar.
fn atom(radii: Radii, components: [&str; 2], name: &str) -> (u32, bool) {
    let name = text8(name.as_bytes());
    atom_of(radii, components, name, element::from_name(name))
}

fn atom_of(radii: Radii, components: [&str; 2], name: Text8, element: u8) -> (u32, bool) {
    let mut classes = [AtomClass::default(); 3];
    let components = components.map(|id| text8(id.as_bytes()));
    radii.classify(components, [(name, element)].into_iter(), &mut classes);
    assert_eq!(classes[..2], [AtomClass::default(); 2]);
    (radii.milli_angstrom(classes[2]), classes[2].is_polar())
}

#[test]
fn sets_have_the_radii_and_classes_of_freesasa() {
    let naccess = Radii::named("naccess").unwrap();
    assert_eq!(atom(naccess, ["ALA", "ALA"], "CA"), (1870, false));
    assert_eq!(atom(naccess, ["ALA", "ALA"], "C"), (1760, false));
    assert_eq!(atom(naccess, ["LYS", "LYS"], "NZ"), (1500, true));
    assert_eq!(atom(naccess, ["CYS", "CYS"], "SG"), (1850, false));
    assert_eq!(atom(naccess, ["DA", "DA"], "N9"), (1600, true));
    assert_eq!(atom(naccess, ["DA", "DA"], "P"), (1900, false));
    assert_eq!(naccess.max_milli_angstrom(), 1980);
    let oons = Radii::named("oons").unwrap();
    assert_eq!(atom(oons, ["ALA", "ALA"], "CA"), (2000, false));
    assert_eq!(atom(oons, ["ALA", "ALA"], "C"), (1550, true));
    assert_eq!(atom(oons, ["PRO", "PRO"], "CB"), (1750, false));
    assert_eq!(atom(oons, ["CYS", "CYS"], "SG"), (2000, true));
    assert_eq!(atom(oons, ["DA", "DA"], "C4'"), (1750, false));
    let bondi = Radii::named("bondi").unwrap();
    assert_eq!(atom(bondi, ["ALA", "ALA"], "CA"), (1700, false));
    assert_eq!(atom(bondi, ["ALA", "ALA"], "N"), (1550, true));
    assert_eq!(atom(bondi, ["CYS", "CYS"], "SG"), (1800, true));
    assert_eq!(atom_of(bondi, ["ZN", "ZN"], *b"ZN      ", 30).0, 1390);
    assert_eq!(atom_of(bondi, ["FE", "FE"], *b"FE      ", 26).0, 2000);
    assert_eq!(bondi.max_milli_angstrom(), 3030);
    assert!(Radii::named("Naccess").is_none());
}

#[test]
fn a_modified_residue_has_its_own_rows_and_then_those_of_its_parent() {
    let naccess = Radii::named("naccess").unwrap();
    assert_eq!(atom(naccess, ["MSE", "MET"], "SE"), (1800, false));
    assert_eq!(atom(naccess, ["MSE", "MET"], "CG"), (1870, false));
    assert_eq!(atom(naccess, ["MSE", ""], "CG"), (1700, false));
    let oons = Radii::named("oons").unwrap();
    assert_eq!(atom(oons, ["HYP", "PRO"], "CB"), (1750, false));
    assert_eq!(atom(oons, ["HYP", "PRO"], "OD1"), (1520, true));
}

#[test]
fn atoms_that_a_set_lacks_have_the_radius_of_their_element() {
    let oons = Radii::named("oons").unwrap();
    let radii = [
        (6, 1700),
        (7, 1550),
        (8, 1520),
        (16, 1800),
        (17, 1750),
        (53, 1980),
        (26, 1800),
        (0, 1800),
    ];
    for (element, radius) in radii {
        let found = atom_of(oons, ["XYZ", ""], *b"Q1      ", element);
        assert_eq!(found, (radius, matches!(element, 7 | 8 | 16)), "{element}");
    }
}

#[test]
fn a_metal_is_no_atom_of_any_residue() {
    let naccess = Radii::named("naccess").unwrap();
    assert_eq!(atom_of(naccess, ["CA", "CA"], *b"CA      ", 20).0, 1800);
    let text = "types:\nM 2.31 apolar\natoms:\nANY CA M\n";
    let any = Radii::of_file("any", text).unwrap();
    assert_eq!(atom_of(any, ["CA", "CA"], *b"CA      ", 20).0, 1800);
    let text = "types:\nM 2.31 apolar\natoms:\nCA CA M\n";
    let named = Radii::of_file("named", text).unwrap();
    assert_eq!(
        atom_of(named, ["CA", "CA"], *b"CA      ", 20),
        (2310, false)
    );
}

#[test]
fn every_class_of_a_set_has_its_radius_and_its_name_decides_the_side_chain() {
    for name in Radii::NAMES {
        let radii = Radii::named(name).unwrap();
        assert_eq!(radii.name(), name);
        assert_eq!(radii.file_text(), None);
        for index in 0..=u8::MAX {
            let class: AtomClass = bytemuck::cast(index);
            let radius = radii.milli_angstrom(class);
            assert_eq!(
                class.has_radius(radii.count()),
                radius > 0,
                "{name} {class:?}"
            );
        }
    }
    let class = |name| AtomClass::of_index(63, name, true);
    assert_eq!(class(*b"OXT     ").index(), 63);
    assert!(!class(*b"OXT     ").is_side() && class(*b"CB      ").is_side());
    assert!(class(*b"CB      ").is_polar());
}

const FILE: &str = "\
# A set of one's own.
name: mine
types: # radius and class
C_ALI 1.87 apolar
N 1.5 POLAR

atoms:
ANY CA C_ALI # of every residue
LYS NZ N
LYS NZ N
";

#[test]
fn files_are_read_and_equal_ones_are_one_set() {
    let mine = Radii::of_file("mine.config", FILE).unwrap();
    assert_eq!(mine, Radii::of_file("mine.config", FILE).unwrap());
    assert_ne!(mine, Radii::of_file("other.config", FILE).unwrap());
    assert_ne!(
        mine,
        Radii::of_file("mine.config", &FILE.replace("1.87", "1.86")).unwrap()
    );
    assert_eq!((mine.name(), mine.file_text()), ("mine.config", Some(FILE)));
    assert_eq!(atom(mine, ["ALA", "ALA"], "CA"), (1870, false));
    assert_eq!(atom(mine, ["LYS", "LYS"], "NZ"), (1500, true));
    assert_eq!(atom(mine, ["ALA", "ALA"], "CB"), (1700, false));
    let (types, atoms) = FILE.split_at(FILE.find("atoms:").unwrap());
    let types = types.split_at(types.find("types:").unwrap()).1;
    let turned = Radii::of_file("turned", &format!("{atoms}{types}")).unwrap();
    assert_eq!(atom(turned, ["LYS", "LYS"], "NZ"), (1500, true));
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark() {
    let atoms = file::parse("\u{feff}types:\nC_ALI 1.87 apolar\natoms:\nANY CA C_ALI\n").unwrap();
    assert_eq!(atoms.len(), 1);
}

#[test]
fn a_bad_line_is_named_with_its_field_and_the_fix() {
    let cases = [
        (
            "C_ALI 1.87 apolar",
            "C_ALI 1.87",
            "line 4: a type has 3 fields, and here are 2",
            "C_ALI 1.87 apolar",
        ),
        (
            "C_ALI 1.87",
            "C_ALI 1,87",
            "line 4: radius \"1,87\" is not a number",
            "a radius in A",
        ),
        (
            "C_ALI 1.87",
            "C_ALI nan",
            "line 4: radius \"nan\" is not a number",
            "a radius in A",
        ),
        (
            "C_ALI 1.87",
            "C_ALI 187",
            "line 4: radius \"187\" is not 0.1 to 3.3 A",
            "angstrom",
        ),
        (
            "C_ALI 1.87",
            "C_ALI 0",
            "line 4: radius \"0\" is not 0.1 to 3.3 A",
            "without the probe",
        ),
        (
            "C_ALI 1.87",
            "C_ALI -1.87",
            "line 4: radius \"-1.87\" is not",
            "angstrom",
        ),
        (
            "C_ALI 1.87",
            "C_ALI 1.8755",
            "line 4: radius \"1.8755\" has more than three",
            "round it",
        ),
        (
            "1.87 apolar",
            "1.87 backbone",
            "line 4: class \"backbone\" is not polar or apolar",
            "apolar",
        ),
        (
            "N 1.5 POLAR",
            "C_ALI 1.5 POLAR",
            "line 5: type \"C_ALI\" is there twice",
            "leave one out",
        ),
        (
            "ANY CA C_ALI",
            "ANY CA C_ARO",
            "line 8: there is no type \"C_ARO\"",
            "types:",
        ),
        (
            "ANY CA C_ALI",
            "CA C_ALI",
            "line 8: an atom has 3 fields, and here are 2",
            "ALA CB C_ALI",
        ),
        (
            "ANY CA C_ALI",
            "ANYRESIDUE CA C_ALI",
            "line 8: residue \"ANYRESIDUE\" is not 1 to 8",
            "name",
        ),
        (
            "ANY CA C_ALI",
            "ANY C\u{3b1} C_ALI",
            "line 8: atom \"C\u{3b1}\" is not 1 to 8",
            "name",
        ),
        (
            "LYS NZ N\n",
            "ANY CA N\n",
            "line 9: atom ANY CA is there twice",
            "leave one out",
        ),
        (
            "name: mine",
            "mine",
            "line 2: \"mine\" is in no section",
            "types:",
        ),
        (
            "types: #",
            "types: C_ALI #",
            "line 3: something follows \"types:\"",
            "line of its own",
        ),
        (
            "C_ALI 1.87 apolar\nN 1.5 POLAR\n",
            "",
            "it has no types",
            "section \"types:\"",
        ),
        (
            "ANY CA C_ALI # of every residue\nLYS NZ N\nLYS NZ N\n",
            "",
            "it has no atoms",
            "section",
        ),
        (
            "N 1.5 POLAR",
            "N 3.3 POLAR\nH 0.2 apolar",
            "its radii are 0.2 to 3.3 A, which differ by 1.9 A",
            "leave out",
        ),
    ];
    for (good, bad, message, fix) in cases {
        assert!(FILE.contains(good), "{good}");
        let error = Radii::of_file("mine", &FILE.replacen(good, bad, 1)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Config);
        assert!(error.message().contains(message), "{message}: {error}");
        assert!(error.fix_text().unwrap().contains(fix), "{fix}: {error}");
    }
}

#[test]
fn the_size_of_files_is_limited() {
    let message = |text: &str| Radii::of_file("mine", text).unwrap_err().to_string();
    let long = FILE.replacen('#', &"#".repeat(257), 1);
    assert!(
        message(&long).contains("line 1: it has over 256 bytes"),
        "{}",
        message(&long)
    );
    let large = FILE.to_owned() + &"#\n".repeat(1 << 19);
    assert!(message(&large).contains("over 1048576 bytes"));
    let types: String = (0..56)
        .map(|n| format!("T{n} 1.{:03} polar\n", 101 + n))
        .collect();
    let many = FILE.replacen(
        "types: # radius and class\n",
        &format!("types:\n{types}"),
        1,
    );
    let atoms: String = (0..56).map(|n| format!("ANY X{n} T{n}\n")).collect();
    assert!(
        Radii::of_file("mine", &many).is_ok(),
        "types that no atom has count nothing"
    );
    let many = many + &atoms;
    assert!(
        message(&many).contains("different radii"),
        "{}",
        message(&many)
    );
}
