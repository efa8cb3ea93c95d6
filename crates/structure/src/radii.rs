//! Sets of radii: the radius of each atom, and whether it is polar.

mod elements;
mod file;

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::atom_class::AtomClass;
use super::element;
use super::text8::Text8;
use crate::Result;
use elements::{BONDI, ElementRadii, OF_UNLISTED};
use parking_lot::Mutex;

/// A set of radii, which decides the radius of each atom, and whether the atom is polar: one of
/// [`Radii::NAMES`], or one of a file. The default is `protor`.
///
/// Sets are kept until the program ends, and equal ones once, so that this is no more than a reference.
#[derive(Clone, Copy, Default)]
pub struct Radii(Option<&'static RadiusSet>);

/// A set other than ProtOr's, whose radii are in the templates of residues.
struct RadiusSet {
    /// One of [`Radii::NAMES`], or the name of the file.
    name: String,
    /// The text of the file; empty for a set that the program has.
    text: String,
    /// The radii in 0.001 A by the index that an [`AtomClass`] has; 0 for none.
    radii: Vec<u32>,
    /// The classes by component and name. They say nothing of the side chain.
    atoms: HashMap<(Text8, Text8), AtomClass>,
    /// The index of the radius of each element, for atoms that are not listed.
    elements: Vec<u8>,
    /// Whether an atom was listed, of all that were classified so far.
    has_listed: AtomicBool,
}

/// The component of the atoms of all components.
const ANY: Text8 = *b"ANY     ";

/// An atom that a set lists.
struct ListedAtom {
    component: Text8,
    name: Text8,
    milli_angstrom: u32,
    is_polar: bool,
}

impl Radii {
    /// The sets that the program has.
    pub const NAMES: [&str; 4] = ["protor", "naccess", "oons", "bondi"];

    /// The set of one of [`Radii::NAMES`]; `None` for any other name.
    pub fn named(name: &str) -> Option<Radii> {
        static NACCESS: OnceLock<RadiusSet> = OnceLock::new();
        static OONS: OnceLock<RadiusSet> = OnceLock::new();
        static BY_ELEMENT: OnceLock<RadiusSet> = OnceLock::new();
        let built_in = |name: &str, text| {
            let atoms = file::parse(text).expect("the program's own files are correct");
            RadiusSet::new(name, "", &atoms, &OF_UNLISTED).expect("and have few radii")
        };
        Some(Radii(match name {
            "protor" => None,
            "naccess" => {
                let text = include_str!("radii/naccess.config");
                Some(NACCESS.get_or_init(|| built_in(name, text)))
            }
            "oons" => {
                let text = include_str!("radii/oons.config");
                Some(OONS.get_or_init(|| built_in(name, text)))
            }
            "bondi" => Some(BY_ELEMENT.get_or_init(|| {
                RadiusSet::new(name, "", &[], &BONDI).expect("there are few radii")
            })),
            _ => return None,
        }))
    }

    /// The set of a classifier file of FreeSASA. `name` is what [`Radii::name`] returns: the file's.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the line and what is wrong in it: the text is
    /// no such file, a radius is not 0.1 to 3.3 A, radii differ by 1.9 A or more, there are more than
    /// 63 different ones with those of elements, or the text has over 1 MiB.
    pub fn of_file(name: &str, text: &str) -> Result<Radii> {
        static SETS: Mutex<Vec<&'static RadiusSet>> = Mutex::new(Vec::new());
        let set = RadiusSet::new(name, text, &file::parse(text)?, &OF_UNLISTED)?;
        let mut sets = SETS.lock();
        let known = sets.iter().find(|known| known.id() == set.id());
        let set = known.copied().unwrap_or_else(|| Box::leak(Box::new(set)));
        if known.is_none() {
            sets.push(set);
        }
        Ok(Radii(Some(set)))
    }

    /// One of [`Radii::NAMES`], or the name that [`Radii::of_file`] took.
    pub fn name(self) -> &'static str {
        self.0.map_or(Radii::NAMES[0], |set| &set.name)
    }

    /// The text of the file; `None` for one of [`Radii::NAMES`].
    pub fn file_text(self) -> Option<&'static str> {
        let text = &self.0?.text;
        (!text.is_empty()).then_some(text)
    }

    /// The radius of an atom of this class in 0.001 A; 0 if the set has none for it. The class is of a
    /// structure with this set: [`Structure::radii`](super::Structure::radii).
    #[inline]
    pub fn milli_angstrom(self, class: AtomClass) -> u32 {
        let radius = self.by_index().get(usize::from(class.index()));
        radius.copied().unwrap_or(0)
    }

    /// The largest radius that an atom can have, in 0.001 A.
    pub fn max_milli_angstrom(self) -> u32 {
        let radii = self.by_index().iter().copied();
        radii.max().unwrap_or(0)
    }

    /// The number of different radii.
    pub(super) fn count(self) -> u8 {
        let radii = self.by_index().iter();
        radii.filter(|&&radius| radius > 0).count() as u8
    }

    /// The radii by the index that a class has; 0 for none. Other indices have no radius.
    pub(super) fn by_index(self) -> &'static [u32] {
        match self.0 {
            None => &AtomClass::RADII_MILLI_ANGSTROM,
            Some(set) => &set.radii,
        }
    }

    /// Sets the last of `classes` to those of the atoms of a residue, which are names and elements.
    /// `components` are its component and the one that this is a variant of. With ProtOr, they stay those
    /// of the residue's template.
    #[inline]
    pub(super) fn classify(
        self,
        components: [Text8; 2],
        atoms: impl ExactSizeIterator<Item = (Text8, u8)>,
        classes: &mut [AtomClass],
    ) {
        if let Some(set) = self.0 {
            let first = classes.len() - atoms.len();
            for (class, (name, element)) in classes[first..].iter_mut().zip(atoms) {
                *class = set.class(components, name, element);
            }
        }
    }

    /// The class of an atom of a ligand.
    pub(super) fn class_of_ligand_atom(
        self,
        component: Text8,
        name: Text8,
        element: u8,
    ) -> AtomClass {
        match self.0 {
            None => AtomClass::unknown(name, element),
            Some(set) => set.class([component; 2], name, element),
        }
    }
}

/// Whether the set is one of a file that lists none of the atoms that were read so far.
pub fn has_listed_none_so_far(radii: Radii) -> bool {
    let of_file = radii.0.filter(|_| radii.file_text().is_some());
    of_file.is_some_and(|set| !set.has_listed.load(Relaxed))
}

impl RadiusSet {
    /// A set of the atoms that are `listed`, and of elements for all others.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are too many different radii.
    fn new(
        name: &str,
        text: &str,
        listed: &[ListedAtom],
        by_element: &ElementRadii,
    ) -> Result<Self> {
        let of_elements = (0..=u8::MAX).map(|element| by_element.milli_angstrom(element));
        let mut radii: Vec<u32> = of_elements.clone().collect();
        radii.extend(listed.iter().map(|atom| atom.milli_angstrom));
        radii.push(0);
        radii.sort_unstable();
        radii.dedup();
        file::check_count(radii.len() - 1)?;
        let index = |radius: u32| radii.partition_point(|&other| other < radius) as u8;
        let elements = of_elements.map(index).collect();
        let class = |atom: &ListedAtom| {
            let class = AtomClass::of_index(index(atom.milli_angstrom), atom.name, atom.is_polar);
            ((atom.component, atom.name), class)
        };
        Ok(RadiusSet {
            name: name.to_owned(),
            text: text.to_owned(),
            atoms: listed.iter().map(class).collect(),
            elements,
            radii,
            has_listed: AtomicBool::new(false),
        })
    }

    fn id(&self) -> (&str, &str) {
        (&self.name, &self.text)
    }

    /// The class of an atom: as the file lists it for its component, then for any component, else
    /// by its element.
    fn class(&self, components: [Text8; 2], name: Text8, element: u8) -> AtomClass {
        let listed = |component: Text8| self.atoms.get(&(component, name)).copied();
        let of_component = components.into_iter().find_map(listed);
        // CA of any component is a carbon, and not a calcium ion.
        let of_any = || listed(ANY).filter(|_| !element::is_metal(element));
        if let Some(class) = of_component.or_else(of_any) {
            // Threads that only read share the cache line.
            if !self.has_listed.load(Relaxed) {
                self.has_listed.store(true, Relaxed);
            }
            return class;
        }
        let index = self.elements[usize::from(element)];
        AtomClass::of_index(index, name, AtomClass::is_polar_element(element))
    }
}

impl PartialEq for Radii {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(ptr::from_ref) == other.0.map(ptr::from_ref)
    }
}

impl Eq for Radii {}

impl Hash for Radii {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Radii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Radii").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests;
