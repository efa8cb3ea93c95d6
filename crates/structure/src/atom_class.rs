//! The class of an atom: its radius and its part of the surface.
//!
//! The radii are ProtOr's (Tsai, Taylor, Chothia, Gerstein 1999, J. Mol. Biol. 290, 253) by residue
//! and atom name; see [`super::residue_template`].

use super::text8::Text8;

/// What the solvent-accessible surface needs to know of an atom, in one byte: its radius, whether it
/// is of the side chain, and whether it is polar.
///
/// The low four bits index [`AtomClass::RADII_MILLI_ANGSTROM`]; the next two are flags. The class 0
/// means no atom.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct AtomClass(u8);

const RADIUS: u8 = 15;
/// Number of radii, which have the indices from 1.
const RADII: u8 = {
    let radii = AtomClass::RADII_MILLI_ANGSTROM;
    let mut count = 0;
    while radii[count + 1] != 0 {
        count += 1;
    }
    let mut index = count + 1;
    while index < radii.len() {
        assert!(radii[index] == 0);
        index += 1;
    }
    count as u8
};
const SIDE: u8 = 1 << 4;
const POLAR: u8 = 1 << 5;

impl AtomClass {
    /// The radii of the classes in 0.001 A; 0 for an index that no class has.
    pub const RADII_MILLI_ANGSTROM: [u32; 16] = [
        0, 1420, 1460, 1500, 1610, 1640, 1760, 1770, 1800, 1880, 1900, 0, 0, 0, 0, 0,
    ];

    /// The class of an atom of this radius.
    pub(super) fn known(milli_angstrom: u32, name: Text8, element: u8) -> Self {
        let backbone = matches!(
            &name,
            b"N       " | b"CA      " | b"C       " | b"O       " | b"OXT     "
        );
        let side = if backbone { 0 } else { SIDE };
        let polar = matches!(element, 7 | 8 | 15 | 16 | 34);
        AtomClass(radius_index(milli_angstrom) | side | if polar { POLAR } else { 0 })
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

    /// The radius in 0.001 A.
    pub fn radius_milli_angstrom(self) -> u32 {
        Self::RADII_MILLI_ANGSTROM[usize::from(self.0 & RADIUS)]
    }

    /// Whether [`AtomClass::radius_milli_angstrom`] is not 0. Compilers vectorize this, and not the
    /// look-up.
    pub(super) fn has_radius(self) -> bool {
        (self.0 & RADIUS).wrapping_sub(1) < RADII
    }

    /// Whether the atom's name is not N, CA, C, O or OXT.
    pub fn is_side(self) -> bool {
        self.0 & SIDE != 0
    }

    /// Whether the element is N, O, P, S or Se.
    pub fn is_polar(self) -> bool {
        self.0 & POLAR != 0
    }
}

impl std::fmt::Debug for AtomClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomClass")
            .field("radius_milli_angstrom", &self.radius_milli_angstrom())
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
        let radius = class.radius_milli_angstrom();
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
    fn classes_have_a_radius_that_is_not_zero_or_none() {
        for byte in 0..=u8::MAX {
            let class = AtomClass(byte);
            assert_eq!(class.has_radius(), class.radius_milli_angstrom() != 0);
        }
    }

    #[test]
    fn class_zero_means_no_atom() {
        assert_eq!(AtomClass::default().radius_milli_angstrom(), 0);
        for element in 0..=u8::MAX {
            assert_ne!(class_of("XXX", "C", element).0, 0);
        }
    }
}
