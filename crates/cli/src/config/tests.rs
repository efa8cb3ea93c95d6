use super::*;
use std::{fs, path::Path};
use tapeloop::backend::{DeviceChoice, DeviceSet};
use tapeloop::features::{Cutoff, FeatureName, Fusion};

fn resolve(text: &str) -> Result<Config> {
    Config::resolve(RawConfig::parse(text, Path::new("jobs/run.toml"))?)
}

fn message(text: &str) -> String {
    resolve(text).expect_err("must be refused").to_string()
}

/// The config is refused with a message that begins with this line of the file, names the key and has all
/// the words.
#[track_caller]
fn refuses(text: &str, line: usize, key: &str, words: &[&str]) {
    assert_has_all(
        &message(text),
        &format!("jobs/run.toml:{line}: "),
        key,
        words,
    );
}

#[track_caller]
fn assert_has_all(message: &str, place: &str, key: &str, words: &[&str]) {
    let rest = message.strip_prefix(place);
    let rest = rest.unwrap_or_else(|| panic!("{message:?} is not of {place:?}"));
    assert!(
        rest.contains(&format!("`{key}`")),
        "{message:?} lacks {key:?}"
    );
    for word in words {
        assert!(rest.contains(word), "{message:?} lacks {word:?}");
    }
}

#[test]
fn the_values_of_each_key_are_declared() {
    let config = resolve("").unwrap();
    for (key, _) in &config.settings {
        assert!(config.values.contains_key(*key), "{key}");
    }
    let choice = SettingValues::Choice(vec!["auto", "cuda", "cpu"]);
    assert_eq!(config.values["backend"], choice);
    assert_eq!(config.values["topology"], SettingValues::Path);
    assert_eq!(config.values["hse_a.radius"], SettingValues::Number);
    assert_eq!(
        config.values["device"],
        SettingValues::OneOf(vec![SettingValues::Integer, SettingValues::Text])
    );
}

#[test]
fn keys_that_are_not_set_have_their_defaults() {
    let config = resolve("").unwrap();
    assert_eq!((config.slots, config.threads), (None, 0));
    assert_eq!(config.features, FeatureConfig::default());
    let config = resolve("features = \"exposure\"\ncontact_number.cb = []").unwrap();
    let preset = FeatureName::PRESETS
        .iter()
        .find(|(name, _)| *name == "exposure");
    assert_eq!(config.features.features, preset.unwrap().1);
    assert!(config.features.contact_number.cb.is_empty());
    let config = resolve(
        "slots = 0x5\nfeatures = [\"wcn\"]\n[contact_number]\nca = 7\n[batch]\nresidues_max = 200_000",
    )
    .unwrap();
    assert_eq!(config.slots, Some(5));
    assert_eq!(config.features.features, [FeatureName::Wcn]);
    assert_eq!(
        config.features.contact_number.ca,
        [Cutoff::from_angstrom(7.0).unwrap()]
    );
    assert_eq!(config.batch.residues_max, 200_000);
}

#[test]
fn fusion_is_off_unless_asked_for() {
    let fusion = |text: &str| resolve(text).unwrap().features.fusion;
    assert_eq!(
        (fusion(""), fusion("fusion = \"on\"")),
        (Fusion::Off, Fusion::On)
    );
    refuses(
        "fusion = \"of\"",
        1,
        "fusion",
        &["\"of\"", "\"off\", \"on\""],
    );
}

#[test]
fn the_config_that_a_dry_run_prints_resolves_to_the_same_settings() {
    let config = resolve("input = \"a \\\"b\\\".pdb\"\nslots = 2\nhse_a.radius = 13").unwrap();
    let again = RawConfig::parse(&config.to_toml(), Path::new("again.toml")).unwrap();
    assert_eq!(Config::resolve(again).unwrap().settings, config.settings);
}

#[test]
fn a_config_file_names_code_to_run_only_if_it_is_trusted() {
    for key in ["worker", "nvrtc", "kernel_cache"] {
        let text = format!("slots = 2\n{key} = \"here/code\"");
        let set = format!("--set {key}=\"here/code\"");
        refuses(&text, 2, key, &["--trust-config", &set]);
        let mut trusted = RawConfig::parse(&text, Path::new("jobs/run.toml")).unwrap();
        trusted.trusts_file = true;
        Config::resolve(trusted).unwrap();
        let mut given = RawConfig::default();
        given.set_assignment(&format!("{key}=here/code")).unwrap();
        Config::resolve(given).unwrap();
    }
    let written = || RawConfig::parse("references = \"r.toml\"", Path::new("b.toml")).unwrap();
    let error = BenchConfig::resolve(written()).err().unwrap().to_string();
    assert_has_all(&error, "b.toml:1: ", "references", &["--trust-config"]);
    let mut trusted = written();
    trusted.trusts_file = true;
    BenchConfig::resolve(trusted).unwrap();
}

#[test]
fn a_bare_name_of_code_is_a_file_in_the_configs_folder() {
    let resolved = |file: &str| {
        let text = "worker = \"w\"\nnvrtc = \"../n.so\"";
        let mut written = RawConfig::parse(text, Path::new(file)).unwrap();
        written.trusts_file = true;
        let config = Config::resolve(written).unwrap();
        (config.worker.unwrap(), config.nvrtc.unwrap())
    };
    let here = std::env::current_dir().unwrap();
    let beside = (here.join("w"), here.join("../n.so"));
    assert_eq!(resolved("run.toml"), beside);
    let (worker, nvrtc) = resolved("src/run.toml");
    assert_eq!((worker, nvrtc), (here.join("src/w"), here.join("n.so")));
    let mut given = RawConfig::default();
    given.set_assignment("worker=w").unwrap();
    assert_eq!(Config::resolve(given).unwrap().worker, Some(here.join("w")));
}

#[test]
fn mistakes_name_file_line_key_and_near_miss() {
    refuses(
        "slots = 3\n\nslot = 4",
        3,
        "slot",
        &["did you mean `slots`"],
    );
    refuses("slots = \"3\"", 1, "slots", &["an integer", "a string"]);
    refuses("\nslots = 400", 2, "slots", &["1 to 64", "400"]);
    let modes = "\"graph\", \"stream\", \"resident\"";
    let near = &["\"grpah\"", modes, "did you mean `graph`"];
    refuses("mode = \"grpah\"", 1, "mode", near);
    let resident = "mode = \"resident\"\nsupervise = true\n";
    let on_gpu = format!("{resident}backend = \"cuda\"");
    refuses(&on_gpu, 1, "mode", &["supervise = false"]);
    for other in [
        "backend = \"cpu\"",
        "backend = \"cuda\"\nfallback = \"launches\"",
        // Decided when the device is known.
        "backend = \"auto\"",
    ] {
        resolve(&format!("{resident}{other}")).unwrap();
    }
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "features = [\"wnc\"]",
            "features",
            &["`wnc`", "did you mean `wcn`"],
        ),
        (
            "features = [\"exposur\"]",
            "features",
            &["`exposur`", "did you mean `exposure`"],
        ),
        (
            "contact_number.ca = [8, 40, 8.0]",
            "contact_number.ca",
            &["0.001 to 37", "40"],
        ),
        (
            "contact_number.ca = [8, 8.0001]",
            "contact_number.ca",
            &["8", "twice"],
        ),
        ("[bacth]", "bacth", &["table", "did you mean `batch`"]),
        (
            "hse_a.radius = nan",
            "hse_a.radius",
            &["0.001 to 37", "NaN"],
        ),
        ("batch = 5", "batch", &["is a table"]),
        ("[slots]\nx = 1", "slots", &["not a table"]),
    ];
    for (text, key, words) in cases {
        refuses(text, 1, key, words);
    }
}

#[test]
fn a_device_is_an_ordinal_or_a_name() {
    let device = |text: &str| {
        let config = resolve(text).unwrap();
        let (_, noted) = config
            .settings
            .iter()
            .find(|(key, _)| *key == "device")
            .unwrap();
        let DeviceSet::Named(named) = config.devices else {
            panic!("one device is named");
        };
        assert_eq!(named.len(), 1);
        (named[0].clone(), noted.to_string())
    };
    assert_eq!(device(""), (DeviceChoice::Ordinal(0), "0".to_owned()));
    assert_eq!(
        device("device = 3"),
        (DeviceChoice::Ordinal(3), "3".to_owned())
    );
    assert_eq!(device("device = \"3\""), device("device = 3"));
    let uuid = DeviceChoice::Uuid("GPU-5cf1".to_owned());
    assert_eq!(
        device("device = \"GPU-5cf1\""),
        (uuid, "\"GPU-5cf1\"".to_owned())
    );
    assert_eq!(
        device("device = \"most_free\""),
        (DeviceChoice::MostFree, "\"most_free\"".to_owned())
    );
    refuses("device = -1", 1, "device", &["0 to 1023", "-1"]);
    refuses("device = true", 1, "device", &["a string", "a boolean"]);
    let words = ["\"mostfree\"", "UUID", "\"most_free\""];
    refuses("device = \"mostfree\"", 1, "device", &words);
}

#[test]
fn devices_are_all_or_a_list_of_numbers_and_uuids() {
    let devices = |text: &str| {
        let config = resolve(text).unwrap();
        let noted = |name: &str| {
            let mut settings = config.settings.iter();
            let (_, value) = settings.find(|(key, _)| *key == name).unwrap();
            value.to_string()
        };
        assert_eq!(noted("device"), "null");
        (config.devices.clone(), noted("devices"))
    };
    assert_eq!(
        devices("devices = \"all\""),
        (DeviceSet::All, "\"all\"".to_owned())
    );
    assert_eq!(devices("devices = [\"all\"]"), devices("devices = \"all\""));
    let uuid = DeviceChoice::Uuid("GPU-5cf1".to_owned());
    let mixed = vec![DeviceChoice::Ordinal(2), uuid, DeviceChoice::Ordinal(0)];
    assert_eq!(
        devices("devices = [2, \"GPU-5cf1\", \"0\"]"),
        (DeviceSet::Named(mixed), "[2,\"GPU-5cf1\",0]".to_owned())
    );
    assert_eq!(devices("devices = 3"), devices("devices = [3]"));
    let unset = resolve("").unwrap();
    let unset = unset.settings.iter().find(|(key, _)| *key == "devices");
    assert!(unset.unwrap().1.is_null());
}

#[test]
fn devices_that_cannot_be_meant_are_refused() {
    for (text, words) in [
        ("devices = []", ["empty", "\"all\""]),
        ("devices = [1, 0, \"1\"]", ["1", "twice"]),
        (
            "devices = [\"GPU-5cf1\", \"gpu-5CF1\"]",
            ["gpu-5CF1", "twice"],
        ),
        ("devices = [0, 1024]", ["0 to 1023", "1024"]),
        ("devices = [0, \"all\"]", ["\"all\"", "alone"]),
        (
            "devices = [\"most_free\"]",
            ["\"most_free\"", "device = \"most_free\""],
        ),
        ("devices = \"everything\"", ["\"everything\"", "UUID"]),
        ("devices = [true]", ["\"all\"", "boolean"]),
    ] {
        refuses(text, 1, "devices", &words);
    }
    let both = "device = 1\ndevices = \"all\"";
    refuses(both, 2, "devices", &["`device`", "jobs/run.toml:1"]);
}

#[test]
fn a_duplicate_key_is_named_with_its_line() {
    let text = message("slots = 3\nmode = \"graph\"\nslots = 4");
    assert!(text.starts_with("jobs/run.toml:3: duplicate key"), "{text}");
    assert!(text.contains("slots"), "{text}");
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_the_file() {
    let text = message("slots = 0\nmoed = 1\nnucleic = 3");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    for (line, place) in lines.iter().zip(1..) {
        assert!(line.starts_with(&format!("jobs/run.toml:{place}: ")));
    }
}

#[test]
fn options_override_the_file_and_later_options_earlier_ones() {
    let mut written = RawConfig::parse("slots = 2\nmode = \"graph\"", Path::new("a.toml")).unwrap();
    for assignment in ["slots=5", "mode=stream", "batch.residues=8192"] {
        written.set_assignment(assignment).unwrap();
    }
    written.set("--slots", "slots", Some(4));
    written.set("--threads", "threads", None::<i64>);
    let config = Config::resolve(written).unwrap();
    assert_eq!(config.slots, Some(4));
    assert_eq!(config.policy.mode, tapeloop::replay::Mode::Stream);
    assert_eq!(config.batch.residues, 8192);
}

#[test]
fn what_was_removed_is_an_error_that_says_what_to_do() {
    for (text, key, words) in [
        (
            "scope = \"batch\"",
            "scope",
            ["whole batches", "PERFORMANCE.md"],
        ),
        (
            "streams = \"per_stage\"",
            "streams",
            ["each slot", "PERFORMANCE.md"],
        ),
        (
            "build = \"capture\"",
            "build",
            ["explicit graphs", "PERFORMANCE.md"],
        ),
        (
            "shadow_every = 3",
            "shadow_every",
            ["`verify`", "verify = N"],
        ),
        ("mode = \"auto\"", "mode", ["\"auto\"", "\"graph\""]),
        ("verify = \"auto\"", "verify", ["\"auto\"", "\"first\""]),
        ("fusion = \"auto\"", "fusion", ["\"auto\"", "\"off\""]),
    ] {
        let found = message(text);
        refuses(text, 1, key, &[words[0], words[1], "removed", "fix: "]);
        assert_eq!(found.lines().count(), 1, "one error for each: {found}");
    }
    // Options name themselves.
    let mut option = RawConfig::default();
    option.set_assignment("mode=auto").unwrap();
    let said = Config::resolve(option).unwrap_err().to_string();
    assert_has_all(
        &said,
        "--set mode=auto: ",
        "mode",
        &["\"auto\" was removed"],
    );
}

#[test]
fn a_benchmark_names_no_axis_that_was_removed() {
    let message = |text: &str| {
        let raw = RawConfig::parse(text, Path::new("bench.toml")).unwrap();
        super::BenchConfig::resolve(raw).unwrap_err().to_string()
    };
    let all = message("axes = [\"mode\", \"build\", \"scope\", \"streams\"]");
    assert_eq!(all.lines().count(), 3, "{all}");
    for axis in ["build", "scope", "streams"] {
        let names = |line: &str| line.starts_with("bench.toml:1: `axes`: ") && line.contains(axis);
        assert!(all.lines().any(names), "{all}");
    }
    let said = message("vary.modes = [\"graph\", \"auto\"]");
    assert_has_all(
        &said,
        "bench.toml:1: ",
        "vary.modes",
        &["\"auto\" was removed"],
    );
    let said = message("vary.scopes = [\"batch\"]");
    assert_has_all(&said, "bench.toml:1: ", "vary.scopes", &["was removed"]);
}

#[test]
fn verify_is_a_name_or_a_number_of_batches() {
    use tapeloop::replay::Verify;
    let verify = |text: &str| resolve(text).unwrap().policy.verify;
    assert_eq!(verify(""), Verify::First);
    assert_eq!(verify("verify = \"off\""), Verify::Off);
    let every = |count| Verify::Every(std::num::NonZeroU32::new(count).unwrap());
    assert_eq!(verify("verify = 3"), every(3));
    refuses("verify = 0", 1, "verify", &["1 to 4294967295", "0"]);
    refuses(
        "verify = true",
        1,
        "verify",
        &["a number of batches", "a boolean"],
    );
    refuses(
        "verify = \"always\"",
        1,
        "verify",
        &["\"always\"", "a number of batches"],
    );
}

#[test]
fn a_mistake_in_an_option_names_the_option() {
    let mut written = RawConfig::default();
    written.set_assignment("batch.residue=1").unwrap();
    let text = Config::resolve(written).unwrap_err().to_string();
    let near = "did you mean `batch.residues`";
    assert_has_all(&text, "--set batch.residue=1: ", "batch.residue", &[near]);
}

#[test]
fn input_starts_from_the_config_files_folder_and_output_from_the_current_one() {
    let config = resolve("input = [\"x.pdb\", \"@list.txt\", \"/a/b\"]\noutput = \"out\"").unwrap();
    assert_eq!(config.input, ["jobs/x.pdb", "@jobs/list.txt", "/a/b"]);
    assert_eq!(config.output, Path::new("out"));
}

#[test]
fn a_compression_is_one_that_the_format_of_the_tables_has() {
    let tables = |text: &str| {
        let config = resolve(text).unwrap();
        let again = RawConfig::parse(&config.to_toml(), Path::new("again.toml")).unwrap();
        assert_eq!(Config::resolve(again).unwrap().settings, config.settings);
        (config.tables.format, config.tables.compression)
    };
    use TableCompression::{Lz4, None, Zstd};
    use TableFormat::{Arrow, Csv, Parquet};
    for (text, expected) in [
        ("", (Parquet, Zstd(3))),
        ("compression_level = 9", (Parquet, Zstd(9))),
        ("compression = \"lz4\"", (Parquet, Lz4)),
        ("compression = \"none\"", (Parquet, None)),
        ("format = \"arrow\"", (Arrow, None)),
        ("format = \"arrow\"\ncompression = \"lz4\"", (Arrow, Lz4)),
        (
            "format = \"arrow\"\ncompression = \"zstd\"\ncompression_level = 1",
            (Arrow, Zstd(1)),
        ),
        ("format = \"csv\"", (Csv, None)),
        ("format = \"csv\"\ncompression = \"none\"", (Csv, None)),
    ] {
        assert_eq!(tables(&format!("[tables]\n{text}")), expected, "{text}");
    }
    let of_csv = "[tables]\nformat = \"csv\"\ncompression = \"zstd\"";
    let words = ["\"zstd\"", "\"csv\"", "tables.compression = \"none\""];
    refuses(of_csv, 3, "tables.compression", &words);
    let or_zstd = "tables.compression = \"zstd\"";
    for (text, compression, other) in [
        ("tables.compression = \"lz4\"", "lz4", or_zstd),
        ("tables.compression = \"none\"", "none", or_zstd),
        ("tables.format = \"arrow\"", "none", or_zstd),
        ("tables.format = \"csv\"", "none", ""),
    ] {
        let text = format!("{text}\ntables.compression_level = 3");
        let compression = format!("\"{compression}\"");
        let words = [&*compression, "no level", other];
        refuses(&text, 2, "tables.compression_level", &words);
        assert_eq!(message(&text).contains(or_zstd), !other.is_empty());
    }
    let words = [
        "\"lz5\"",
        "\"zstd\", \"lz4\", \"none\"",
        "did you mean `lz4`",
    ];
    refuses(
        "tables.compression = \"lz5\"",
        1,
        "tables.compression",
        &words,
    );
    refuses(
        "tables.format = \"tsv\"",
        1,
        "tables.format",
        &["did you mean `csv`"],
    );
}

#[test]
fn a_feature_that_is_named_has_what_it_computes_switched_on() {
    let config = resolve("features = [\"ligands\", \"interfaces\", \"residue_depth\"]").unwrap();
    let features = &config.features;
    assert!(features.ligands.keep && features.interfaces.keep && !features.hydrogen_bonds.keep);
    for name in [
        FeatureName::Ligands,
        FeatureName::Interfaces,
        FeatureName::ResidueDepth,
    ] {
        assert!(!features.columns_of(name).is_empty());
    }
    let is_off = |config: Config| !config.features.ligands.keep && !config.features.interfaces.keep;
    assert!(
        is_off(resolve("features = \"all\"").unwrap()),
        "no feature is named"
    );
    assert!(is_off(
        resolve("features = [\"ligands\"]\nligands = \"drop\"").unwrap()
    ));
    assert!(
        resolve("features = \"hydrogen_bonds\"")
            .unwrap()
            .features
            .hydrogen_bonds
            .keep
    );
}

#[test]
fn columns_and_lists_in_a_text_choose_features() {
    let chosen = |text: &str| resolve(text).unwrap().features.features;
    assert_eq!(chosen("features = \"phi, psi\""), [FeatureName::Torsions]);
    assert_eq!(
        chosen("features = \"phi rg\""),
        [FeatureName::Torsions, FeatureName::Rg]
    );
    assert_eq!(
        chosen("features = [\"sasa\", \" ss8 , rg\"]"),
        [FeatureName::Dssp, FeatureName::Sasa, FeatureName::Rg]
    );
    assert!(
        resolve("features = \"ligand_contacts\"")
            .unwrap()
            .features
            .ligands
            .keep
    );
    refuses("features = \", \"", 1, "features", &["empty"]);
    refuses(
        "features = \"interface\"",
        1,
        "features",
        &["`interface_residues`"],
    );
    refuses(
        "iface.cutoff = 4.0",
        1,
        "iface.cutoff",
        &["interface_residues.cutoff"],
    );
    refuses(
        "features = \"sasa, sassa\"",
        1,
        "features",
        &["sassa", "did you mean `sasa`"],
    );
}

#[test]
fn every_table_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for table in OutputTable::ALL {
        let name = table.name();
        for (page, text) in [
            (
                "docs/config/results.md",
                format!("  {name}/part-00000.parquet "),
            ),
            ("docs/config/columns.md", format!("Columns of `{name}`")),
            ("python/pytapeloop/_features.py", format!("``{name}``")),
        ] {
            let is_described = fs::read_to_string(root.join(page)).unwrap().contains(&text);
            assert!(is_described, "{page} does not have `{text}`");
        }
    }
}

#[test]
fn every_key_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |page: &str| fs::read_to_string(docs.join(page)).unwrap();
    let index = read("CONFIG.md");
    let reference = read("config/feature-reference.md");
    for (key, _) in resolve("").unwrap().settings {
        // A key of the run is a link to its page, and a key of a feature stands next to the link.
        let link = format!("| [`{key}`](");
        let page = match index.split_once(&link) {
            Some((_, rest)) => rest.split(['#', ')']).next().unwrap(),
            None => "config/feature-reference.md",
        };
        for page in ["CONFIG.md", page] {
            assert!(
                read(page).contains(&format!("`{key}`")),
                "docs/{page} does not mention `{key}`"
            );
        }
    }
    for feature in FeatureName::ALL.iter().map(|feature| feature.name()) {
        assert!(
            reference.contains(&format!("\n## `{feature}`\n")),
            "docs/config/feature-reference.md does not mention {feature}"
        );
    }
}
