//! Compares the content of messages, apart from their wording.

/// Whether a text has these parts in their order, which " .. " separates: the place that a message
/// names, and the words that tell its cause from others.
pub fn has_parts(text: &str, parts: &str) -> bool {
    let mut rest = text;
    parts.split(" .. ").all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
