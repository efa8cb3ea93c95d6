//! Near misses of names.

/// The name among `known` that `name` was probably meant to be.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    // The right key outside its table is near too: `residues_max`.
    if let Some(key) = known.iter().find(|key| last(key) == name) {
        return Some(key);
    }
    let distance = |key: &str| strsim::damerau_levenshtein(name, key);
    let near = known.iter().copied().min_by_key(|key| distance(key))?;
    // A third of the letters may differ: more are another word.
    let most = near.len().max(name.len()).div_ceil(3);
    (distance(near) <= most).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_another_word_none() {
        let known = ["slots", "batch.residues", "mode", "models"];
        assert_eq!(nearest("slot", &known), Some("slots"));
        assert_eq!(nearest("residues", &known), Some("batch.residues"));
        assert_eq!(nearest("batch.residue", &known), Some("batch.residues"));
        assert_eq!(nearest("temperature", &known), None);
    }
}
