//! What a file states about its entry as a whole: the method, the resolution and the title, and
//! whether the B factors are pLDDT.

use std::sync::Arc;

use super::decimal;

/// The most bytes of a method or title. Longer ones are cut: no other part of a file depends on
/// them, so they are no reason to reject it. The longest of 61 titles of test files has 173 bytes.
pub(super) const TEXT_BYTES_MAX: usize = 1024;

/// What a file states about its entry.
#[derive(Default)]
pub(super) struct EntryHeader {
    /// EXPDTA, or the values of `_exptl.method`.
    pub method: HeaderText,
    /// TITLE, or `_struct.title`.
    pub title: HeaderText,
    /// In angstrom.
    pub resolution: Option<f32>,
    /// Whether `_ma_qa_metric` names pLDDT.
    pub has_plddt_metric: bool,
    /// Whether `_struct.pdbx_structure_determination_methodology` is `experimental`.
    pub is_experimental: bool,
}

impl EntryHeader {
    /// Whether the file declares its B factors to be pLDDT. What a file states in fields of their
    /// own precedes its title: an X-ray entry may be about AlphaFold.
    pub(super) fn declares_plddt(&self) -> bool {
        self.has_plddt_metric || !self.states_experiment() && self.title_names_predictor()
    }

    /// Whether the file states that it is from an experiment. A method that is a model or a
    /// prediction is none: `THEORETICAL MODEL`.
    fn states_experiment(&self) -> bool {
        let method = self.method.0.to_ascii_uppercase();
        let is_experiment =
            |method: &str| !(method.contains("MODEL") || method.contains("PREDICT"));
        let mut methods = method.split(';').map(str::trim);
        let has_method = methods.any(|method| !method.is_empty() && is_experiment(method));
        self.is_experimental || has_method || self.resolution.is_some()
    }

    /// Whether the title names a predictor, as the titles of the AlphaFold Database (`ALPHAFOLD
    /// MONOMER V2.0 PREDICTION FOR ...`), of the ESM Metagenomic Atlas (`ESMFOLD V1 PREDICTION FOR
    /// ...`) and of Chai-1 (`Chai-1 predicted structure`) do, or that of a ColabFold model.
    fn title_names_predictor(&self) -> bool {
        const PREDICTORS: [&str; 4] = ["ALPHAFOLD", "ESMFOLD", "COLABFOLD", "CHAI-1 PREDICT"];
        let title = self.title.0.to_ascii_uppercase();
        PREDICTORS.iter().any(|name| title.contains(name))
    }
}

/// The resolution in angstrom; `None` if the text is no number above 0.
pub(super) fn resolution(text: &[u8]) -> Option<f32> {
    Some(decimal::b_factor(text)).filter(|value| value.is_finite() && *value > 0.0)
}

/// A method or title as readers give it, from a packed set.
pub fn header_text(text: &str) -> Option<Arc<str>> {
    let mut header = HeaderText::default();
    header.add_words(text.as_bytes());
    header.get()
}

/// A text that is gathered from lines or rows: words with one blank between, up to
/// [`TEXT_BYTES_MAX`] bytes.
#[derive(Default)]
pub(super) struct HeaderText(String);

impl HeaderText {
    /// Adds the words of `text`, with a replacement character for bytes that are not UTF-8.
    pub(super) fn add_words(&mut self, text: &[u8]) {
        // A text far over the limit is not searched to its end.
        let text = &text[..text.len().min(2 * TEXT_BYTES_MAX)];
        for word in String::from_utf8_lossy(text).split_whitespace() {
            let blank = if self.0.is_empty() { "" } else { " " };
            self.add(blank);
            self.add(word);
        }
    }

    /// Adds a value after `; `.
    pub(super) fn add_value(&mut self, text: &[u8]) {
        if !self.0.is_empty() && !text.trim_ascii().is_empty() {
            self.add(";");
        }
        self.add_words(text);
    }

    /// Appends text up to the limit, and cuts it between characters.
    fn add(&mut self, text: &str) {
        let room = TEXT_BYTES_MAX - self.0.len();
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.0.push_str(&text[..end]);
    }

    /// The text; `None` if it is empty.
    pub(super) fn get(&self) -> Option<Arc<str>> {
        let text = self.0.trim_end();
        (!text.is_empty()).then(|| text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_one_blank_and_values_by_a_semicolon() {
        let mut text = HeaderText::default();
        assert_eq!(text.get(), None);
        text.add_words(b"  ");
        assert_eq!(text.get(), None);
        text.add_value(b" X-RAY\n  DIFFRACTION ");
        text.add_value(b" ");
        text.add_value(b"NEUTRON DIFFRACTION");
        assert_eq!(
            text.get().as_deref(),
            Some("X-RAY DIFFRACTION; NEUTRON DIFFRACTION")
        );
    }

    #[test]
    fn a_text_is_cut_at_its_limit_between_characters() {
        let mut text = HeaderText::default();
        text.add_words("a".repeat(TEXT_BYTES_MAX - 1).as_bytes());
        text.add_words("\u{e9}".as_bytes());
        let text = text.get().unwrap();
        assert_eq!(text.len(), TEXT_BYTES_MAX - 1, "no half of a character");
        let mut text = HeaderText::default();
        text.add_words(&[b'a'; 10 * TEXT_BYTES_MAX]);
        text.add_words(b"more");
        assert_eq!(text.get().unwrap().len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_resolution_is_a_number_above_0() {
        assert_eq!(resolution(b"1.74"), Some(1.74));
        assert_eq!(resolution(b"2.0(1)"), Some(2.0));
        for text in ["", "0", "0.00", "-1", "NULL", "inf", "1e99"] {
            assert_eq!(resolution(text.as_bytes()), None, "{text}");
        }
    }
}
