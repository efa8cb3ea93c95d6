//! Radii by element.

/// The radii of elements in 0.001 A, each with its atomic number.
pub(super) struct ElementRadii {
    radii: &'static [(u8, u32)],
    /// The radius of every other element, and of an atom whose element is not known.
    other: u32,
}

/// What atoms have that a set by residue and name lacks: the radii of Bondi 1964 of the elements that
/// proteins, nucleic acids and most ligands are made of.
pub(super) const OF_UNLISTED: ElementRadii = ElementRadii {
    radii: &[
        (6, 1700),
        (7, 1550),
        (8, 1520),
        (9, 1470),
        (15, 1800),
        (16, 1800),
        (17, 1750),
        (34, 1900),
        (35, 1850),
        (53, 1980),
    ],
    other: 1800,
};

/// The radii of Bondi 1964, J Phys Chem 68:441, and of Mantina et al. 2009, J Phys Chem A 113:5806, of
/// the elements of the main groups that Bondi lacks: Be, B, Al, Ca, Ge, Rb, Sr, Sb, Cs, Ba, Bi, Po, At,
/// Rn, Fr and Ra. Any other has 2.00 A. The radii of a set differ by less than 1.9 A, and Zn has 1.39 A,
/// so Cs and Fr, whose radii are 3.43 and 3.48 A, have the next smaller radius here, that of Rb.
#[rustfmt::skip]
pub(super) const BONDI: ElementRadii = ElementRadii {
    radii: &[
        (2, 1400), (3, 1820), (4, 1530), (5, 1920), (6, 1700), (7, 1550), (8, 1520), (9, 1470),
        (10, 1540), (11, 2270), (12, 1730), (13, 1840), (14, 2100), (15, 1800), (16, 1800),
        (17, 1750), (18, 1880), (19, 2750), (20, 2310), (28, 1630), (29, 1400), (30, 1390),
        (31, 1870), (32, 2110), (33, 1850), (34, 1900), (35, 1850), (36, 2020), (37, 3030),
        (38, 2490), (46, 1630), (47, 1720), (48, 1580), (49, 1930), (50, 2170), (51, 2060),
        (52, 2060), (53, 1980), (54, 2160), (55, 3030), (56, 2680), (78, 1750), (79, 1660),
        (80, 1550), (81, 1960), (82, 2020), (83, 2070), (84, 1970), (85, 2020), (86, 2200),
        (87, 3030), (88, 2830), (92, 1860),
    ],
    other: 2000,
};

impl ElementRadii {
    /// The radius of an element in 0.001 A.
    pub(super) fn milli_angstrom(&self, element: u8) -> u32 {
        let mut known = self.radii.iter();
        let known = known.find(|(number, _)| *number == element);
        known.map_or(self.other, |(_, radius)| *radius)
    }
}
