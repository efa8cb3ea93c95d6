//! Classifier files of FreeSASA: the types of atoms, each with a radius and a class, and the type of each
//! atom of each component.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::ListedAtom;
use crate::text8::{Text8, text8};
use crate::{Error, Result};
use tapeloop_error::internal::excerpt;

/// The most bytes of a file. Those of FreeSASA have a few kilobytes.
const BYTES_MAX: usize = 1 << 20;
/// The most bytes of a line, as in FreeSASA.
const LINE_BYTES_MAX: usize = 256;
/// The most bytes of the name of a component or an atom.
const NAME_BYTES_MAX: usize = 8;
/// The most different radii: an [`AtomClass`](crate::AtomClass) has six bits for the index of one.
const RADII_MAX: usize = 63;
/// The radii that an atom may have, in 0.001 A (docs/LIMITS.md).
const RADIUS: RangeInclusive<u32> = 100..=3300;
/// Kernels take radii that differ by less than this, in 0.001 A (docs/LIMITS.md).
const RADIUS_SPAN: u32 = 1900;

/// A section of a file.
#[derive(Clone, Copy, PartialEq)]
enum RadiiSection {
    Types,
    Atoms,
}

const SECTIONS: [(&str, Option<RadiiSection>); 3] = [
    ("name:", None),
    ("types:", Some(RadiiSection::Types)),
    ("atoms:", Some(RadiiSection::Atoms)),
];

/// A type of atoms: its radius in 0.001 A, and whether it is polar.
type AtomType = (u32, bool);

/// Reads the text of a file.
///
/// # Errors
/// Those of [`Radii::of_file`](super::Radii::of_file), but for the number of radii.
pub(super) fn parse(text: &str) -> Result<Vec<ListedAtom>> {
    if text.len() > BYTES_MAX {
        return Err(Error::config(format!("it has over {BYTES_MAX} bytes")));
    }
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut section = None;
    let mut types: HashMap<&str, AtomType> = HashMap::new();
    // Types may follow the atoms.
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let at_line = |problem: (String, &str)| {
            let (message, fix) = problem;
            Error::config(format!("line {number}: {message}")).fix(fix)
        };
        if line.len() > LINE_BYTES_MAX {
            let message = format!("it has over {LINE_BYTES_MAX} bytes");
            return Err(at_line((message, "put comments into lines of their own")));
        }
        let (content, _) = line.split_once('#').unwrap_or((line, ""));
        let fields: Vec<&str> = content.split_ascii_whitespace().collect();
        let Some(first) = fields.first() else {
            continue;
        };
        let heading = SECTIONS
            .iter()
            .find(|(heading, _)| first.starts_with(heading));
        if let Some((heading, started)) = heading {
            section = *started;
            if section.is_some() && (fields.len() > 1 || first != heading) {
                let message = format!("something follows {heading:?}");
                return Err(at_line((message, "start a line of its own after it")));
            }
            continue;
        }
        match section {
            None => {
                let message = format!("{} is in no section", quoted(first));
                let fix = "start the file with the lines of the section \"types:\"";
                return Err(at_line((message, fix)));
            }
            Some(RadiiSection::Types) => {
                let (name, kind) = parse_type(&fields).map_err(at_line)?;
                if types.insert(name, kind).is_some_and(|other| other != kind) {
                    let message = format!("type {} is there twice", quoted(name));
                    return Err(at_line((message, "leave one out")));
                }
            }
            Some(RadiiSection::Atoms) => lines.push((number, fields)),
        }
    }
    if types.is_empty() || lines.is_empty() {
        let missing = if types.is_empty() { "types" } else { "atoms" };
        let message = format!("it has no {missing}");
        let fix = format!("give a section \"{missing}:\", as classifier files of FreeSASA have it");
        return Err(Error::config(message).fix(fix));
    }
    check_span(&types)?;
    let mut atoms = Vec::new();
    let mut seen: HashMap<(Text8, Text8), AtomType> = HashMap::new();
    for (number, fields) in lines {
        let atom = parse_atom(&fields, &types).and_then(|atom| {
            let kind = (atom.milli_angstrom, atom.is_polar);
            let other = seen.insert((atom.component, atom.name), kind);
            if other.is_some_and(|other| other != kind) {
                let message = format!("atom {} is there twice", fields[..2].join(" "));
                return Err((message, "leave one out"));
            }
            Ok(atom)
        });
        atoms.push(atom.map_err(|(message, fix)| {
            Error::config(format!("line {number}: {message}")).fix(fix)
        })?);
    }
    Ok(atoms)
}

/// Checks the number of different radii, those of elements included.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are more than fit.
pub(super) fn check_count(radii: usize) -> Result<()> {
    if radii > RADII_MAX {
        let message = format!(
            "it has {radii} different radii, with those of elements, and the most is {RADII_MAX}"
        );
        return Err(Error::config(message).fix("give similar types one radius"));
    }
    Ok(())
}

/// An [`ErrorKind::Config`](crate::ErrorKind::Config) error unless the radii differ by less than
/// kernels take.
fn check_span(types: &HashMap<&str, AtomType>) -> Result<()> {
    let radii = types.values().map(|(radius, _)| *radius);
    let (least, most) = (radii.clone().min(), radii.max());
    match least.zip(most) {
        Some((least, most)) if most - least >= RADIUS_SPAN => {
            let [least, most, span] = [least, most, RADIUS_SPAN].map(|r| f64::from(r) / 1000.0);
            let message =
                format!("its radii are {least} to {most} A, which differ by {span} A or more");
            Err(Error::config(message).fix("leave out types that no heavy atom has"))
        }
        _ => Ok(()),
    }
}

/// A line of types: name, radius and class. The error is what is wrong, and what to do about it.
fn parse_type<'a>(fields: &[&'a str]) -> Result<(&'a str, AtomType), (String, &'static str)> {
    const FORM: &str = "write a name, a radius in A and a class: C_ALI 1.87 apolar";
    let &[name, radius, class] = fields else {
        let message = format!("a type has 3 fields, and here are {}", fields.len());
        return Err((message, FORM));
    };
    let milli = radius.parse::<f64>().unwrap_or(f64::NAN) * 1000.0;
    // A radius of three decimals is a whole number but for rounding.
    let rounded = milli.round();
    if milli.is_nan() {
        return Err((format!("radius {} is not a number", quoted(radius)), FORM));
    }
    if !RADIUS.contains(&(rounded as u32)) {
        let [least, most] = [RADIUS.start(), RADIUS.end()].map(|r| f64::from(*r) / 1000.0);
        let message = format!("radius {} is not {least} to {most} A", quoted(radius));
        return Err((message, "give the radius in angstrom, without the probe"));
    }
    if (milli - rounded).abs() > 1e-6 {
        let message = format!("radius {} has more than three decimals", quoted(radius));
        return Err((message, "round it to 0.001 A"));
    }
    let is_polar = match class.to_ascii_lowercase().as_str() {
        "polar" => true,
        "apolar" => false,
        _ => {
            let message = format!("class {} is not polar or apolar", quoted(class));
            return Err((message, "write polar or apolar"));
        }
    };
    Ok((name, (rounded as u32, is_polar)))
}

/// A line of atoms: component or ANY, name and type. The error is what is wrong, and what to do
/// about it.
fn parse_atom(
    fields: &[&str],
    types: &HashMap<&str, AtomType>,
) -> Result<ListedAtom, (String, &'static str)> {
    const FORM: &str = "write a residue or ANY, the name of an atom and a type: ALA CB C_ALI";
    let &[component, name, kind] = fields else {
        let message = format!("an atom has 3 fields, and here are {}", fields.len());
        return Err((message, FORM));
    };
    for (what, text) in [("residue", component), ("atom", name)] {
        if text.len() > NAME_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!(
                "{what} {} is not 1 to {NAME_BYTES_MAX} characters of ASCII",
                quoted(text)
            );
            return Err((message, "give the name that structure files have"));
        }
    }
    let Some(&(milli_angstrom, is_polar)) = types.get(kind) else {
        let message = format!("there is no type {}", quoted(kind));
        return Err((message, "add it to the section \"types:\""));
    };
    Ok(ListedAtom {
        component: text8(component.as_bytes()),
        name: text8(name.as_bytes()),
        milli_angstrom,
        is_polar,
    })
}

fn quoted(text: &str) -> String {
    format!("{:?}", excerpt(text))
}
