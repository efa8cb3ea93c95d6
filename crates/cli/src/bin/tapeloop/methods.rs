//! `tapeloop methods`: what a publication says of a run, from the run's `run.json`.
//!
//! Writing to a string cannot fail, so what `write!` returns is ignored.

use super::args::MethodsArgs;
use serde_json::{Map, Value as Json};
use std::fmt::Write;
use std::path::Path;
use tapeloop::error::{Context, Error, Result};
use tapeloop::features::{ColumnDecl, FeatureConfig, FeatureName, Setting};
use tapeloop::structure::{Components, Radii};
use tapeloop_bench::internal::format::{counted, whole};
use tapeloop_cli::config::{Config, NO_COMPONENTS, RawConfig, is_removed, setting_json};
use tapeloop_cli::exit_codes::GOOD;
use tapeloop_cli::feature_list::wrap;
use tapeloop_cli::output::{RECORD, RECORD_BYTES_MAX, decides_no_value};
use tapeloop_cli::terminal::say;
use tapeloop_files::{open_file, read_all, shown};

/// A BibTeX entry for each publication that a feature's source names.
const REFERENCES: &str = include_str!("references.bib");

/// The setting that may name a file of radii.
const RADII: &str = "sasa.radii";

/// The setting that may name a dictionary of components.
const COMPONENTS: &str = "interaction.components";

/// A file of radii, and a dictionary, that stand for those that are not read.
const ANY_RADII: &str = "types:\nTYPE 1.8 apolar\natoms:\nANY CA TYPE\n";
const ANY_COMPONENTS: &[u8] = b"data_X\nloop_\n_chem_comp_atom.comp_id\n_chem_comp_atom.atom_id\n\
                                _chem_comp_atom.type_symbol\nX C C\n";

/// The year of this version.
const YEAR: &str = "2026";

/// Prints what a publication says of a run, and returns the exit code.
///
/// # Errors
/// The folder has no `run.json`, or that one is of a run of another version with keys that this version
/// does not have.
pub(super) fn methods(args: &MethodsArgs) -> Result<u8> {
    let path = args.folder.join(RECORD);
    let record = read(&path).within(|| shown(&path))?;
    let text = Methods::new(&record).within(|| shown(&path))?.text();
    say(&text);
    Ok(GOOD)
}

/// Reads a `run.json`. An [`ErrorKind::Io`](tapeloop::ErrorKind::Io) error if it cannot be read, or
/// is too large; an [`ErrorKind::Input`](tapeloop::ErrorKind::Input) error if it is no JSON.
fn read(path: &Path) -> Result<Json> {
    let text = open_file(path).and_then(|file| read_all(file, RECORD_BYTES_MAX));
    let text = text.map_err(|error| {
        Error::io(error).fix("give the folder that `tapeloop run` wrote, which has run.json")
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::input(format!("this is not the record of a run: {error}")))
}

/// What a record says of a run.
struct Methods {
    version: String,
    backend: String,
    /// Whether the run has ended; if not, its counts are those of the complete parts.
    has_ended: bool,
    counts: Map<String, Json>,
    features: FeatureConfig,
    /// The SHA-256 of the file of radii; `None` for a set that the program has.
    radii_hash: Option<String>,
    /// The statistics of the columns by table and name; null unless the run has ended.
    columns: Json,
    /// The models that were read: the setting `models`.
    models: String,
    /// The settings that decide values and are not the default, as `key = value`.
    changed: Vec<String>,
}

impl Methods {
    /// Takes what a text for a publication says from the record of a run alone: its inputs, devices and files
    /// may be gone.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tapeloop::ErrorKind::Input) if the record lacks what every run writes,
    /// [`ErrorKind::Config`](tapeloop::ErrorKind::Config) if this version does not have its
    /// settings or their values.
    fn new(record: &Json) -> Result<Self> {
        let damaged = |key: &str| Error::input(format!("the record of the run lacks `{key}`"));
        let object = |key: &'static str| record[key].as_object().ok_or_else(|| damaged(key));
        let settings = object("config")?;
        let version = record["values_follow_from"]["tapeloop.version"].as_str();
        let version = version.ok_or_else(|| damaged("tapeloop.version"))?;
        let feature_keys = feature_keys();
        let is_of_features = |key: &str| feature_keys.contains(&key);
        // These files may be gone or changed since. Nothing here depends on what they hold.
        let name = |key: &str| settings.get(key).and_then(Json::as_str);
        let radii = name(RADII).filter(|name| Radii::named(name).is_none());
        let components = name(COMPONENTS).filter(|name| *name != NO_COMPONENTS);
        let is_file = |key: &str| match key {
            RADII => radii.is_some(),
            COMPONENTS => components.is_some(),
            _ => false,
        };
        // The others are not resolved, as they may name what this machine lacks.
        let of_features = settings.iter().filter(|(key, _)| is_of_features(key));
        let of_features = of_features.filter(|(key, _)| !is_file(key));
        let of_features = of_features.map(|(key, value)| (key.clone(), value.clone()));
        let config = RawConfig::of_settings(&of_features.collect()).and_then(Config::resolve);
        let by_its_version =
            |error: Error| error.fix(format!("use tapeloop {version}, which made the run"));
        let mut config = config.map_err(by_its_version)?;
        if let Some(file) = radii {
            config.features.sasa.radii = Radii::of_file(file, ANY_RADII)?;
        }
        if let Some(file) = components {
            let components = Components::of_text(file, ANY_COMPONENTS)?;
            config.features.interactions.components = Some(components);
        }
        let defaults = Config::resolve(RawConfig::default())?;
        let has = |key: &str| defaults.settings.iter().any(|(known, _)| *known == key);
        let is_known = |key: &str| has(key) || decides_no_value(key) || is_removed(key);
        if let Some(key) = settings.keys().find(|key| !is_known(key)) {
            let error = Error::config(format!("this version has no setting `{key}`"));
            return Err(by_its_version(error));
        }
        let mut changed = Vec::new();
        for (key, default) in &defaults.settings {
            let value = settings.get(*key).unwrap_or(default);
            // Said elsewhere, or, as the paths of inputs, of no use in a publication.
            let is_left_out = ["input", "models"].contains(key) || is_of_features(key);
            if value != default && !is_left_out && !decides_no_value(key) {
                changed.push(format!("{key} = {value}"));
            }
        }
        let has_ended = record["state"] != "running";
        let backend = record["backend"]["name"].as_str();
        Ok(Methods {
            version: version.to_owned(),
            backend: backend.ok_or_else(|| damaged("backend"))?.to_owned(),
            has_ended,
            counts: object(if has_ended { "counts" } else { "written" })?.clone(),
            radii_hash: radii_hash(record),
            features: config.features,
            columns: record["columns"].clone(),
            models: name("models").ok_or_else(|| damaged("models"))?.to_owned(),
            changed,
        })
    }

    /// The text for a publication: what was computed with which settings, the formulas, and
    /// references as BibTeX.
    fn text(&self) -> String {
        let mut text = String::new();
        let computed = self.computed();
        let features = self.with_needed(&computed);
        let paragraph = [
            self.first_sentences(),
            self.features_sentence(&computed),
            self.settings_sentence(&features),
        ];
        wrap(&mut text, String::new(), 0, &paragraph.join(" "));
        let symbols = "Formulas and settings of the features. Lengths are in angstrom (A), areas in A^2, \
                       angles in degrees, and energies in kcal/mol; d is a distance.";
        text.push('\n');
        wrap(&mut text, String::new(), 0, symbols);
        text.push('\n');
        for &feature in &features {
            let about = self.features.about(feature);
            let source = match about.source {
                "" => String::new(),
                source => format!(" ({})", source.trim_end_matches('.')),
            };
            let settings = self.features.settings(feature).into_iter();
            let settings = settings.map(|(key, value)| self.setting_text(key, &value));
            let settings = match &settings.collect::<Vec<String>>()[..] {
                [] => String::new(),
                all => format!(" Settings: {}.", all.join("; ")),
            };
            let line = format!("{}: {}{source}.{settings}", feature.name(), about.formula);
            wrap(&mut text, String::new(), 2, &line);
        }
        text.push_str("\nReferences, as BibTeX:\n\n");
        let _ = write!(
            text,
            "@software{{tapeloop,\n  author = {{{{The tapeloop developers}}}},\n  title = {{tapeloop: \
             per-residue features of protein structures}},\n  version = {{{}}},\n  year = {{{YEAR}}}\n}}\n",
            self.version
        );
        let sources = features
            .iter()
            .map(|&feature| self.features.about(feature).source);
        let sources: Vec<&str> = sources.collect();
        for entry in references() {
            if sources
                .iter()
                .any(|source| source.contains(&*entry.citation))
            {
                let _ = write!(text, "\n{}\n", entry.text);
            }
        }
        text
    }

    /// The features with all that their results need, whose settings decide values too, in the order of all
    /// features.
    fn with_needed(&self, features: &[FeatureName]) -> Vec<FeatureName> {
        let mut needed = features.to_vec();
        let mut seen = 0;
        while let Some(&feature) = needed.get(seen) {
            seen += 1;
            let more = self.features.needs(feature);
            let more: Vec<_> = more.filter(|name| !needed.contains(name)).collect();
            needed.extend(more);
        }
        let all = FeatureName::ALL.iter().copied();
        all.filter(|name| needed.contains(name)).collect()
    }

    /// The features that have a column with a value, in the order of their columns.
    fn computed(&self) -> Vec<FeatureName> {
        let features = &self.features;
        let chosen = features.features.iter().copied();
        chosen
            .filter(|&name| {
                let has_values = |column: &ColumnDecl| {
                    self.columns[column.table.decl().name][&column.name]["null_share"] != 1.0
                };
                features.columns_of(name).iter().any(has_values)
            })
            .collect()
    }

    /// What the run read, and how much of it.
    fn first_sentences(&self) -> String {
        let number = |key: &str| self.counts.get(key).and_then(Json::as_u64).unwrap_or(0);
        let counted = |key: &str, noun: &str| counted(number(key), noun);
        let mut text = format!(
            "Features of protein structures were computed with tapeloop {} (The tapeloop developers {YEAR}) on \
             the {} from the heavy atoms of polymers, with one conformer of each residue: {} with {}",
            self.version,
            if self.backend == "cpu" { "CPU" } else { "GPU" },
            counted("structures", "structure"),
            counted("residues", "residue"),
        );
        if self.counts.contains_key("atoms") {
            let _ = write!(text, " and {}", counted("atoms", "atom"));
        }
        let _ = write!(text, ", read from {}", counted("inputs", "input"));
        match number("rejected") {
            0 => {}
            1 => text.push_str(", 1 of which was rejected"),
            rejected => {
                let _ = write!(text, ", {} of which were rejected", whole(rejected));
            }
        }
        text.push_str(match &*self.models {
            "all" => ". All models of a file were read.",
            "joined" => ". The models of a file were joined to one structure.",
            _ => ". Of files with several models the first was read.",
        });
        if !self.has_ended {
            text.push_str(" (The run has not ended: these are the counts so far.)");
        }
        text
    }

    /// Names the features, each with the publications of its source.
    fn features_sentence(&self, features: &[FeatureName]) -> String {
        let cited = |&feature: &FeatureName| {
            let source = self.features.about(feature).source;
            let citations = references().map(|entry| entry.citation);
            // In the order of the source.
            let places =
                citations.filter_map(|citation| Some((source.find(&*citation)?, citation)));
            let mut places: Vec<(usize, String)> = places.collect();
            places.sort_unstable();
            let citations: Vec<String> = places.into_iter().map(|(_, citation)| citation).collect();
            match &citations[..] {
                [] => noun(feature).to_owned(),
                all => format!("{} ({})", noun(feature), all.join("; ")),
            }
        };
        let cited: Vec<String> = features.iter().map(cited).collect();
        match &cited[..] {
            [] => "No feature has a value.".to_owned(),
            [one] => format!("The feature is {one}."),
            [others @ .., last] => {
                format!("The features are {}, and {last}.", others.join(", "))
            }
        }
    }

    /// `key = value`; with the hash of a file, which may have changed since the run.
    fn setting_text(&self, key: &str, value: &Setting) -> String {
        let text = format!("{key} = {}", setting_json(value));
        match &self.radii_hash {
            Some(hash) if key == RADII => format!("{text} (a file with the SHA-256 {hash})"),
            _ => text,
        }
    }

    /// The settings that are not the default: those of the features, and others.
    fn settings_sentence(&self, features: &[FeatureName]) -> String {
        let defaults = FeatureConfig::default();
        let mut changed = Vec::new();
        for &feature in features {
            let known = defaults.settings(feature);
            let settings = self.features.settings(feature).into_iter();
            // A key without a dot switches its feature on.
            let settings = settings
                .filter(|(key, value)| {
                    let is_default = |(_, known)| setting_json(known) == setting_json(value);
                    let known = known.iter().map(|(key, known)| (*key, known));
                    key.contains('.') && !known.filter(|(known, _)| known == key).any(is_default)
                })
                .map(|(key, value)| self.setting_text(key, &value));
            changed.extend(settings);
        }
        changed.extend(self.changed.iter().cloned());
        let version = &self.version;
        match &changed[..] {
            [] => {
                format!("All settings that decide values were the defaults of tapeloop {version}.")
            }
            changed => format!(
                "These settings differ from the defaults of tapeloop {version}: {}.",
                changed.join("; ")
            ),
        }
    }
}

/// The hash of the file of radii in the record of a run.
fn radii_hash(record: &Json) -> Option<String> {
    let features = record["values_follow_from"]["tapeloop.features"].as_str()?;
    let features: Json = serde_json::from_str(features).ok()?;
    Some(features["sasa"]["radii"]["sha256"].as_str()?.to_owned())
}

/// What a feature computes, as a noun in a sentence.
fn noun(feature: FeatureName) -> &'static str {
    match feature {
        FeatureName::ContactNumber => "contact numbers",
        FeatureName::Wcn => "weighted contact numbers",
        FeatureName::HseA => "half-sphere exposure by C-alphas",
        FeatureName::HseB => "half-sphere exposure by C-betas",
        FeatureName::Torsions => "backbone torsions",
        FeatureName::CaGeometry => "dihedrals and angles of the C-alpha trace",
        FeatureName::SideChains => "side-chain torsions",
        FeatureName::Dssp => "secondary structure",
        FeatureName::Sheets => "bridges, ladders and sheets of strands",
        FeatureName::Sasa => "solvent-accessible surface area",
        FeatureName::Rsa => "relative solvent accessibility",
        FeatureName::InterfaceResidues => "distances to other chains",
        FeatureName::Protrusion => "protrusion indices",
        FeatureName::ResidueDepth => "residue depth",
        FeatureName::ContactOrder => "contact order",
        FeatureName::Centrality => "eigenvector centrality",
        FeatureName::Cluster => "clusters of selected residues",
        FeatureName::Smooth => "means of annotations over neighbouring residues",
        FeatureName::BFactor => "B factors",
        FeatureName::Plddt => "pLDDT",
        FeatureName::Rg => "radii of gyration",
        FeatureName::Contacts => "contacts of residues",
        FeatureName::HydrogenBonds => "backbone hydrogen bonds",
        FeatureName::Atoms => "solvent-accessible surface area of atoms",
        FeatureName::Ligands => "contacts with ligands and metals",
        FeatureName::Interfaces => "interfaces between chains",
        FeatureName::Interactions => "interactions of residues and ligands",
    }
}

/// The keys that choose features, and those of their settings.
fn feature_keys() -> Vec<&'static str> {
    let defaults = FeatureConfig::default();
    let settings = FeatureName::ALL
        .iter()
        .flat_map(|&feature| defaults.settings(feature));
    let keys = settings.map(|(key, _)| key);
    keys.chain(["features"]).collect()
}

/// A BibTeX entry.
struct BibEntry {
    /// The words by which a feature's source cites it: "Lin et al. 2008".
    citation: String,
    text: &'static str,
}

/// The references of the features, as they were written down.
fn references() -> impl Iterator<Item = BibEntry> {
    REFERENCES.split("\n\n").filter_map(|text| {
        let text = text.trim();
        Some(BibEntry {
            citation: citation(text)?,
            text,
        })
    })
}

/// How a text cites a BibTeX entry: by the family names of up to two authors, and the year if it has one.
/// `None` if the text is no entry.
fn citation(entry: &str) -> Option<String> {
    let field = |name: &str| {
        let (_, rest) = entry.split_once(&format!("\n  {name} = {{"))?;
        let (value, _) = rest.split_once('\n')?;
        value.trim_end_matches(',').strip_suffix('}')
    };
    let authors = field("author")?;
    let family = |author: &str| match author.split_once(',') {
        Some((family, _)) => family.to_owned(),
        // The name of a group.
        None => author.trim_matches(['{', '}']).to_owned(),
    };
    let authors: Vec<String> = authors.split(" and ").map(family).collect();
    let mut citation = match &authors[..] {
        [one] => one.clone(),
        [first, second] if second != "others" => format!("{first} and {second}"),
        [first, ..] => format!("{first} et al."),
        [] => return None,
    };
    if let Some(year) = field("year") {
        let _ = write!(citation, " {year}");
    }
    Some(citation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeloop::features::{DsspVersion, RsaScale, SasaAlgorithm};

    /// The places of a source that cite a publication: names, then a year.
    fn years(source: &str) -> usize {
        let words = source.split(|letter: char| !letter.is_ascii_alphanumeric());
        let is_year = |word: &&str| {
            word.len() == 4
                && word
                    .parse()
                    .is_ok_and(|year: u32| (1950..2100).contains(&year))
        };
        words.filter(is_year).count()
    }

    #[test]
    fn every_source_has_its_entries() {
        let mut config = FeatureConfig::default();
        config.dssp.version = DsspVersion::V4;
        let mut unused: Vec<String> = references().map(|entry| entry.citation).collect();
        assert!(unused.len() > 20);
        let mut sources: Vec<_> = (FeatureName::ALL.iter())
            .map(|&feature| config.about(feature).source)
            .collect();
        for scale in [RsaScale::Miller1987, RsaScale::Rose1985, RsaScale::Rost1994] {
            config.rsa.scale = scale;
            sources.push(config.about(FeatureName::Rsa).source);
        }
        for radii in Radii::NAMES {
            config.sasa.radii = Radii::named(radii).unwrap();
            sources.push(config.about(FeatureName::Sasa).source);
        }
        config.sasa.algorithm = SasaAlgorithm::LeeRichards;
        sources.push(config.about(FeatureName::Atoms).source);
        for source in sources {
            let cited: Vec<String> = references()
                .map(|entry| entry.citation)
                .filter(|citation| source.contains(&**citation))
                .collect();
            let dated = cited.iter().filter(|citation| years(citation) == 1).count();
            // A journal's own number may look like a year, as 2006.0019.
            let others = source.matches("2006.0019").count();
            assert_eq!(dated + others, years(source), "{source} {cited:?}");
            unused.retain(|citation| !cited.contains(citation));
        }
        assert!(unused.is_empty(), "no source names {unused:?}");
    }

    #[test]
    fn an_entry_is_cited_by_its_authors_and_year() {
        let entry = |authors: &str| {
            format!("@article{{x,\n  author = {{{authors}}},\n  year = {{1999}},\n}}")
        };
        let cited = |authors: &str| citation(&entry(authors)).unwrap();
        assert_eq!(cited("Levitt, Michael"), "Levitt 1999");
        assert_eq!(cited("del Sol, A. and Ooi, T."), "del Sol and Ooi 1999");
        assert_eq!(cited("Lin, C. and Hwang, J. and Lu, L."), "Lin et al. 1999");
        assert_eq!(cited("Lin, C. and others"), "Lin et al. 1999");
        assert_eq!(cited("{IUPAC-IUB}"), "IUPAC-IUB 1999");
    }
}
