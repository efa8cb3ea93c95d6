//! Dictionaries of components: the wwPDB's `components.cif`, or files of its components.

use super::super::text8::Text8;
use crate::Result;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::{fmt, ptr};

/// The components of a local dictionary, which gives ligands' atoms their roles. Dictionaries are
/// kept until the program ends, and equal ones once, so that this is no more than a reference.
#[derive(Clone, Copy)]
pub struct Components(&'static Dictionary);

struct Dictionary {
    name: String,
    fingerprint: u64,
    components: ComponentMap,
}

/// Components by their ids.
pub(in super::super) type ComponentMap = HashMap<Text8, DictionaryComponent>;

/// The heavy atoms of a component.
#[derive(Debug, Default, PartialEq)]
pub(in super::super) struct DictionaryComponent {
    pub(in super::super) atoms: Vec<DictionaryAtom>,
    pub(in super::super) bonds: Vec<DictionaryBond>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct DictionaryAtom {
    pub(in super::super) name: Text8,
    /// 0 if it is not known.
    pub(in super::super) element: u8,
    /// The number of hydrogens that are bonded to it.
    pub(in super::super) hydrogens: u8,
}

/// A bond of two heavy atoms, by their indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct DictionaryBond {
    pub(in super::super) atoms: [u16; 2],
    /// Whether it is no single bond.
    pub(in super::super) is_multiple: bool,
    pub(in super::super) is_aromatic: bool,
}

impl Components {
    /// The dictionary of this name and fingerprint; `parse` makes its components if it is new.
    ///
    /// # Errors
    /// Those of `parse`.
    pub(in super::super) fn kept(
        name: &str,
        fingerprint: u64,
        parse: impl FnOnce() -> Result<ComponentMap>,
    ) -> Result<Components> {
        static ALL: Mutex<Vec<&'static Dictionary>> = Mutex::new(Vec::new());
        // Locked while it is parsed, so that threads that want the same one do not all parse it.
        let mut all = ALL.lock();
        let is_same = |known: &&&Dictionary| known.fingerprint == fingerprint && known.name == name;
        if let Some(known) = all.iter().find(is_same) {
            return Ok(Components(known));
        }
        let dictionary: &'static Dictionary = Box::leak(Box::new(Dictionary {
            name: name.to_owned(),
            fingerprint,
            components: parse()?,
        }));
        all.push(dictionary);
        Ok(Components(dictionary))
    }

    /// The name that [`Components::of_text`] took.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The number of components.
    pub fn count(self) -> usize {
        self.0.components.len()
    }

    /// A number that tells texts apart, the same on every machine.
    pub fn fingerprint(self) -> u64 {
        self.0.fingerprint
    }

    pub(super) fn get(self, comp_id: &Text8) -> Option<&'static DictionaryComponent> {
        self.0.components.get(comp_id)
    }
}

impl PartialEq for Components {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Components {}

impl Hash for Components {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self.0, state);
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Components").field(&self.name()).finish()
    }
}
