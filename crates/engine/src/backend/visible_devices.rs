//! Finds the devices that a [`DeviceChoice`] or a [`DeviceSet`] names among the visible ones.

use super::{DeviceChoice, DeviceSet};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;

/// A device as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownDevice {
    pub(super) name: String,
    pub(super) uuid: String,
}

/// The visible devices in the driver's order, at least one.
pub(super) struct Visible {
    pub(super) devices: Vec<KnownDevice>,
    /// The value of CUDA_VISIBLE_DEVICES.
    pub(super) variable: Option<String>,
}

impl Visible {
    /// The ordinal of the device that `choice` names. `free_bytes` returns the free memory of a
    /// device.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if no device or more than one matches; the first device's own
    /// error if the free memory of none is known.
    pub(super) fn choose(
        &self,
        choice: &DeviceChoice,
        free_bytes: impl Fn(usize) -> Result<u64>,
    ) -> Result<usize> {
        match choice {
            DeviceChoice::Ordinal(ordinal) if *ordinal < self.devices.len() => Ok(*ordinal),
            DeviceChoice::Ordinal(ordinal) => {
                Err(self.choice_error(format!("there is no device {ordinal}")))
            }
            DeviceChoice::Uuid(prefix) => self.find(prefix),
            DeviceChoice::MostFree => {
                let mut best: Option<(u64, usize)> = None;
                let mut failed = None;
                for ordinal in 0..self.devices.len() {
                    match free_bytes(ordinal) {
                        Ok(free) if best.is_none_or(|(most, _)| free > most) => {
                            best = Some((free, ordinal));
                        }
                        Ok(_) => {}
                        Err(error) => _ = failed.get_or_insert(error),
                    }
                }
                let none =
                    || failed.unwrap_or_else(|| self.choice_error("no GPU is visible".to_owned()));
                best.map(|(_, ordinal)| ordinal).ok_or_else(none)
            }
        }
    }

    /// The ordinals of the devices of `set`, each once.
    ///
    /// # Errors
    /// The errors of [`Visible::choose`]; [`ErrorKind::Config`] if `set` names no device, or one
    /// twice.
    pub(super) fn choose_all(
        &self,
        set: &DeviceSet,
        free_bytes: impl Fn(usize) -> Result<u64>,
    ) -> Result<Vec<usize>> {
        let choices = match set {
            DeviceSet::All => return Ok((0..self.devices.len()).collect()),
            DeviceSet::Named(choices) => choices,
        };
        if choices.is_empty() {
            let error = Error::config("no device is named");
            return Err(error.fix("name a device, or take all of them"));
        }
        let mut ordinals = Vec::with_capacity(choices.len());
        for (index, choice) in choices.iter().enumerate() {
            let ordinal = self.choose(choice, &free_bytes)?;
            if let Some(earlier) = ordinals.iter().position(|listed| *listed == ordinal) {
                let (first, KnownDevice { name, uuid }) =
                    (&choices[earlier], &self.devices[ordinal]);
                let message = format!(
                    "entries {} and {} ({first} and {choice}) name the same device: {ordinal} \
                     {uuid} {name}",
                    earlier + 1,
                    index + 1
                );
                return Err(Error::config(message).fix("name each device once"));
            }
            ordinals.push(ordinal);
        }
        Ok(ordinals)
    }

    /// The ordinal of the device whose UUID begins with `prefix`, in any case. None and several are
    /// errors.
    fn find(&self, prefix: &str) -> Result<usize> {
        let wanted = prefix.to_ascii_lowercase();
        let uuids = self.devices.iter().map(|device| &device.uuid);
        let uuids = uuids.map(|uuid| uuid.to_ascii_lowercase()).enumerate();
        let found = uuids.filter(|(_, uuid)| uuid.starts_with(&wanted));
        let found: Vec<usize> = found.map(|(ordinal, _)| ordinal).collect();
        match found[..] {
            [ordinal] => Ok(ordinal),
            [] => Err(self.choice_error(format!("no device has a UUID that begins with {prefix}"))),
            _ => {
                let ordinals: Vec<String> = found.iter().map(usize::to_string).collect();
                let ordinals = ordinals.join(" and ");
                let message = format!("the UUIDs of devices {ordinals} begin with {prefix}");
                Err(self.choice_error(message))
            }
        }
    }

    fn choice_error(&self, message: String) -> Error {
        Error::new(ErrorKind::Unavailable, format!("{message}; {self}")).fix(
            "choose a visible device by its number or enough of its UUID, or \"most_free\", or \
             make another visible with CUDA_VISIBLE_DEVICES before the program starts, or set \
             backend = \"cpu\"",
        )
    }
}

impl fmt::Display for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.devices.len() {
            1 => write!(f, "1 device is visible: ")?,
            count => write!(f, "{count} devices are visible: ")?,
        }
        for (ordinal, KnownDevice { name, uuid }) in self.devices.iter().enumerate() {
            let comma = if ordinal == 0 { "" } else { ", " };
            write!(f, "{comma}{ordinal} {uuid} {name}")?;
        }
        write!(f, "; {}", variable_text(self.variable.as_deref()))
    }
}

/// Describes the value of CUDA_VISIBLE_DEVICES.
pub(super) fn variable_text(value: Option<&str>) -> String {
    match value {
        None => "CUDA_VISIBLE_DEVICES is not set".to_owned(),
        Some("") => "CUDA_VISIBLE_DEVICES is empty, which hides all devices".to_owned(),
        Some(value) => format!("CUDA_VISIBLE_DEVICES is {value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUIDS: [&str; 3] = [
        "GPU-5cf1a000-0000-0000-0000-000000000001",
        "GPU-5cf1b000-0000-0000-0000-000000000002",
        "MIG-70000000-0000-0000-0000-000000000003",
    ];

    fn visible(count: usize, variable: Option<&str>) -> Visible {
        let known = |uuid: &&str| KnownDevice {
            name: "NVIDIA H200".to_owned(),
            uuid: (*uuid).to_owned(),
        };
        Visible {
            devices: UUIDS[..count].iter().map(known).collect(),
            variable: variable.map(str::to_owned),
        }
    }

    fn choose(text: &str) -> Result<usize> {
        let no_asking = |_| panic!("free memory is asked for where it decides nothing");
        visible(3, Some("1,0,MIG-7")).choose(&text.parse().unwrap(), no_asking)
    }

    #[test]
    fn a_device_is_named_by_its_number_or_enough_of_its_uuid_in_any_case() {
        let cases = [
            ("0", 0),
            ("2", 2),
            (UUIDS[1], 1),
            ("GPU-5cf1a", 0),
            ("gpu-5CF1B", 1),
            ("MIG-7", 2),
        ];
        for (text, ordinal) in cases {
            assert_eq!(choose(text).unwrap(), ordinal, "{text}");
        }
    }

    #[test]
    fn a_choice_of_no_device_or_two_is_refused_with_the_visible_ones() {
        let cases = [
            ("3", "device 3"),
            ("GPU-6", "GPU-6"),
            ("GPU-7", "GPU-7"),
            ("GPU-5CF1", "devices 0 and 1"),
        ];
        for (text, message) in cases {
            let error = choose(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            let said = error.message();
            assert!(said.contains(message), "{said}");
            for (ordinal, uuid) in UUIDS.iter().enumerate() {
                let device = format!("{ordinal} {uuid} NVIDIA H200");
                assert!(said.contains(&device), "{said}");
            }
            assert!(
                said.contains("CUDA_VISIBLE_DEVICES is \"1,0,MIG-7\""),
                "{said}"
            );
            let fix = error.fix_text().unwrap();
            assert!(fix.contains("CUDA_VISIBLE_DEVICES"), "{fix}");
        }
        let error = visible(1, None).choose(&DeviceChoice::Ordinal(1), |_| Ok(0));
        let message = error.unwrap_err().message().to_owned();
        assert!(message.contains("1 device is visible: 0 GPU-"), "{message}");
        assert!(message.ends_with("not set"), "{message}");
    }

    #[test]
    fn most_free_is_the_first_of_the_freest_that_are_known() {
        let chosen = |free: [Option<u64>; 3]| {
            visible(3, None).choose(&DeviceChoice::MostFree, |ordinal| {
                let silent = || Error::new(ErrorKind::Unavailable, format!("{ordinal} is held"));
                free[ordinal].ok_or_else(silent)
            })
        };
        assert_eq!(chosen([Some(5), Some(7), Some(7)]).unwrap(), 1);
        assert_eq!(chosen([Some(0), None, Some(0)]).unwrap(), 0);
        assert_eq!(chosen([None, None, Some(1)]).unwrap(), 2);
        assert_eq!(chosen([None; 3]).unwrap_err().message(), "0 is held");
    }

    fn set(texts: &[&str]) -> DeviceSet {
        DeviceSet::Named(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn a_set_is_all_devices_or_those_named_in_their_order() {
        let visible = visible(3, None);
        let choose = |set: &DeviceSet| visible.choose_all(set, |ordinal| Ok(ordinal as u64));
        assert_eq!(choose(&DeviceSet::All).unwrap(), [0, 1, 2]);
        assert_eq!(choose(&DeviceSet::default()).unwrap(), [0]);
        assert_eq!(choose(&set(&["2", "gpu-5CF1A"])).unwrap(), [2, 0]);
        assert_eq!(choose(&set(&["0", "most_free", "1"])).unwrap(), [0, 2, 1]);
        let error = choose(&set(&["0", "7"])).unwrap_err();
        assert!(error.message().contains("device 7"), "{error}");
    }

    #[test]
    fn a_set_that_is_empty_or_names_a_device_twice_is_refused() {
        let visible = visible(3, None);
        let refused = |set: DeviceSet| {
            let error = visible.choose_all(&set, |_| Ok(0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.fix_text().is_some(), "{error}");
            error.message().to_owned()
        };
        assert!(refused(DeviceSet::Named(Vec::new())).contains("no device"));
        let twice = refused(set(&["1", "0", "GPU-5cf1b"]));
        assert!(twice.contains("1 and 3 (1 and GPU-5cf1b)"), "{twice}");
        assert!(twice.contains(UUIDS[1]), "{twice}");
    }

    #[test]
    fn a_variable_that_hides_everything_is_explained() {
        assert!(variable_text(Some("")).starts_with("CUDA_VISIBLE_DEVICES is empty"));
    }
}
