//! The class of an atom: its radius and its part of the surface.
//!
//! The radii are those of a set ([`super::radii`]). ProtOr's (Tsai, Taylor, Chothia, Gerstein 1999, J. Mol. Biol.
//! 290, 253) are by residue and atom name; see [`super::residue_template`].

use super::text8::Text8;

/// What the solvent-accessible surface needs to know of an atom, in one byte: its radius, whether it
/// is of the side chain, and whether it is polar.
///
/// The low four bits are the low bits of an index into the radii of a set ([`Radii`](super::Radii)), which are
/// [`AtomClass::RADII_MILLI_ANGSTROM`] for ProtOr; the next two are flags, and the highest two are the
/// high bits of the index, which are 0 with ProtOr. The class 0 means no atom.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct AtomClass(u8);

const LOW_INDEX: u8 = 15;
const HIGH_INDEX_SHIFT: u32 = 6;
const SIDE: u8 = 1 << 4;
const POLAR: u8 = 1 << 5;

impl AtomClass {
    /// The radii of the classes of ProtOr in 0.001 A; 0 for an index that no class has.
    pub const RADII_MILLI_ANGSTROM: [u32; 16] = [
        0, 1420, 1460, 1500, 1610, 1640, 1760, 1770, 1800, 1880, 1900, 0, 0, 0, 0, 0,
    ];

    /// The class of an atom with the radius of this index, at most 63.
    pub(super) fn of_index(index: u8, name: Text8, is_polar: bool) -> Self {
        let is_backbone = matches!(
            &name,
            b"N       " | b"CA      " | b"C       " | b"O       " | b"OXT     "
        );
        let side = if is_backbone { 0 } else { SIDE };
        let polar = if is_polar { POLAR } else { 0 };
        AtomClass(index & LOW_INDEX | side | polar | index >> 4 << HIGH_INDEX_SHIFT)
    }

    /// The class of an atom of this radius of ProtOr.
    pub(super) fn known(milli_angstrom: u32, name: Text8, element: u8) -> Self {
        let is_polar = Self::is_polar_element(element);
        Self::of_index(radius_index(milli_angstrom), name, is_polar)
    }

    /// The class of an atom that ProtOr does not have, by its element.
    pub(super) fn unknown(name: Text8, element: u8) -> Self {
        let milli_angstrom = match element {
            6 => 1880,
            7 => 1640,
            8 => 1460,
            16 => 1770,
            34 => 1900,
            _ => 1800,
        };
        Self::known(milli_angstrom, name, element)
    }

    /// Whether atoms of an element are polar where nothing else says so: N, O, P, S and Se.
    pub(super) fn is_polar_element(element: u8) -> bool {
        matches!(element, 7 | 8 | 15 | 16 | 34)
    }

    /// The radius in 0.001 A with ProtOr; 0 for no atom.
    pub(super) fn protor_milli_angstrom(self) -> u32 {
        let radius = Self::RADII_MILLI_ANGSTROM.get(usize::from(self.index()));
        radius.copied().unwrap_or(0)
    }

    /// Whether the class has a radius of a set that has this number of them. Compilers vectorize this,
    /// and not the look-up.
    pub(super) fn has_radius(self, count: u8) -> bool {
        self.index().wrapping_sub(1) < count
    }

    /// The index of the radius; 0 for no atom.
    #[inline]
    pub(super) fn index(self) -> u8 {
        self.0 & LOW_INDEX | self.0 >> HIGH_INDEX_SHIFT << 4
    }

    /// Whether the atom's name is not N, CA, C, O or OXT.
    pub fn is_side(self) -> bool {
        self.0 & SIDE != 0
    }

    /// Whether the set counts the atom as polar. With ProtOr these are N, O, P, S and Se.
    pub fn is_polar(self) -> bool {
        self.0 & POLAR != 0
    }
}

impl std::fmt::Debug for AtomClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomClass")
            .field("radius_index", &self.index())
            .field("is_side", &self.is_side())
            .field("is_polar", &self.is_polar())
            .finish()
    }
}

/// The index of a radius.
///
/// # Panics
/// If no class has it.
fn radius_index(milli_angstrom: u32) -> u8 {
    let mut radii = AtomClass::RADII_MILLI_ANGSTROM.iter();
    let index = radii.position(|&radius| radius == milli_angstrom);
    index.expect("every radius is listed") as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text8::text8;

    fn class_of(comp_id: &str, name: &str, element: u8) -> (u32, bool, bool) {
        let class = AtomClass::of(text8(comp_id.as_bytes()), text8(name.as_bytes()), element);
        let radius = class.protor_milli_angstrom();
        (radius, class.is_side(), class.is_polar())
    }

    #[test]
    fn atoms_that_protor_lacks_have_the_radius_of_their_element() {
        assert_eq!(class_of("MET", "SE", 34).0, 1900, "selenomethionine");
        assert_eq!(class_of("SER", "P", 15).0, 1800, "phosphoserine");
        assert_eq!(class_of("", "C", 6), (1880, false, false));
        assert_eq!(class_of("UNK", "SG", 16).0, 1770);
        assert_eq!(class_of("PRO", "OD1", 8).0, 1460, "hydroxyproline");
        assert_eq!(class_of("LYS", "NX", 7).0, 1640);
        assert_eq!(class_of("LYS", "F1", 9), (1800, true, false));
        assert_eq!(class_of("LYS", "?", 255), (1800, true, false));
    }

    #[test]
    fn side_depends_on_the_name_and_polar_on_the_element() {
        assert_eq!(class_of("ALA", "N", 7), (1640, false, true));
        assert_eq!(class_of("ALA", "CA", 6), (1880, false, false));
        assert_eq!(class_of("ALA", "C", 6), (1610, false, false));
        assert_eq!(class_of("ALA", "O", 8), (1420, false, true));
        assert_eq!(class_of("ALA", "OXT", 8), (1460, false, true));
        assert_eq!(class_of("ALA", "CB", 6), (1880, true, false));
        assert_eq!(class_of("CYS", "SG", 16), (1770, true, true));
        assert_eq!(class_of("DA", "P", 15), (1800, true, true));
        assert_eq!(class_of("MET", "SE", 34), (1900, true, true));
    }

    #[test]
    fn class_zero_means_no_atom() {
        assert_eq!(AtomClass::default().protor_milli_angstrom(), 0);
        for element in 0..=u8::MAX {
            assert_ne!(class_of("XXX", "C", element).0, 0);
        }
    }
}
