//! Short text in one word.

/// Short text, padded with spaces: names of atoms and components.
pub(super) type Text8 = [u8; 8];

/// Pads `text` to eight bytes. Longer text is cut: no polymer component of the wwPDB
/// dictionary, and no atom of one, has such a name.
#[inline]
pub(super) fn text8(text: &[u8]) -> Text8 {
    let mut out = *b"        ";
    let len = text.len().min(8);
    out[..len].copy_from_slice(&text[..len]);
    out
}
