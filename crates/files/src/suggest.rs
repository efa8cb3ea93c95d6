//! Suggestions for misspelt names.

/// Words that people write, each with the name that the program has.
const SYNONYMS: [(&str, &str); 42] = [
    ("gpu", "cuda"),
    ("nvidia", "cuda"),
    ("processor", "cpu"),
    ("gpu", "device"),
    ("gpus", "devices"),
    ("jobs", "threads"),
    ("cores", "threads"),
    ("cpus", "threads"),
    ("workers", "threads"),
    ("out", "output"),
    ("files", "input"),
    ("jsonl", "json"),
    ("ndjson", "json"),
    ("tsv", "csv"),
    ("feather", "arrow"),
    ("ipc", "arrow"),
    ("gzip", "zstd"),
    ("snappy", "zstd"),
    ("float16", "f16"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("float32", "f32"),
    ("secondary_structure", "dssp"),
    ("asa", "sasa"),
    ("surface", "sasa"),
    ("resname", "comp_id"),
    ("resn", "comp_id"),
    ("resid", "auth_seq_id"),
    ("resi", "auth_seq_id"),
    ("resseq", "auth_seq_id"),
    ("resnum", "auth_seq_id"),
    ("residue_number", "auth_seq_id"),
    ("residue_name", "comp_id"),
    ("residue", "comp_id"),
    ("chain", "auth_asym_id"),
    ("chain_id", "auth_asym_id"),
    ("icode", "ins_code"),
    ("bfactor", "b_ca"),
    ("b_factor", "b_ca"),
    ("ss", "ss8"),
    ("dssp", "ss8"),
    ("acc", "sasa"),
];

/// The longest name in bytes that is compared with others: as long as a name in a table may be.
const NAME_BYTES_MAX: usize = 256;

/// ` (did you mean `x`?)`, to follow a message about `name`, where one of the `known` names is
/// close to it; else empty.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(" (did you mean `{near}`?)"))
}

/// The one of the `known` names that is close to `name`, if there is one. Longer names than 256 bytes are close
/// to none.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = &*name.to_lowercase();
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    // `residues_max` written without its table stands for `batch.residues_max`.
    if let Some(key) = known.iter().find(|key| last(key) == name) {
        return Some(key);
    }
    let is_synonym = |key: &&&str| SYNONYMS.contains(&(name, **key));
    if let Some(key) = known.iter().find(is_synonym) {
        return Some(key);
    }
    let distance = |key: &str| strsim::damerau_levenshtein(name, &key.to_lowercase());
    let compared = known.iter().copied();
    let compared = compared.filter(|key| key.len() <= NAME_BYTES_MAX);
    let near = compared.min_by_key(|key| distance(key))?;
    // Names that differ in more than a third of the letters are different words. A third is a choice: a typing
    // error changes one or two letters.
    let most = near.len().max(name.len()).div_ceil(3);
    (distance(near) <= most).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_name_has_a_suggestion_and_a_different_word_has_none() {
        let known = ["slots", "batch.residues", "mode", "models"];
        assert_eq!(nearest("slot", &known), Some("slots"));
        assert_eq!(nearest("residues", &known), Some("batch.residues"));
        assert_eq!(nearest("batch.residue", &known), Some("batch.residues"));
        assert_eq!(nearest("temperature", &known), None);
        assert_eq!(nearest("MODE", &known), Some("mode"));
        assert_eq!(nearest("gpu", &["auto", "cuda", "cpu"]), Some("cuda"));
    }

    #[test]
    fn long_names_are_not_compared() {
        let (long, longer) = ("x".repeat(1 << 20), "x".repeat((1 << 20) + 1));
        let start = std::time::Instant::now();
        assert_eq!(nearest(&longer, &["slots", &long]), None);
        assert_eq!(nearest("slot", &["slots", &long]), Some("slots"));
        assert!(start.elapsed().as_secs() < 5);
    }
}
