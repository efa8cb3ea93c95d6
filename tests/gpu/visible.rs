//! Listing devices and choosing among them. libcuda reads the environment once, so each value of
//! CUDA_VISIBLE_DEVICES is tried in a process of its own.

use crate::gpu::*;
use std::process::Command;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::cuda::CudaBackend;
use tapeloop::backend::{
    Backend, Choice, CudaOptions, DeviceChoice, DeviceEntry, Space, devices, select_with,
};
use tapeloop::replay::Mode;

/// The devices.
///
/// # Panics
/// With the reason, where there is none.
fn listed() -> Vec<DeviceEntry> {
    let listed = devices().unwrap();
    listed.unwrap_or_else(|reason| panic!("this test needs a CUDA device: {reason}"))
}

fn options(choice: &str) -> CudaOptions {
    CudaOptions {
        device: choice.parse().unwrap(),
        ..CudaOptions::default()
    }
}

/// The UUID of the device that `choice` opens.
fn opened(choice: &str) -> String {
    let backend = CudaBackend::open(&options(choice)).unwrap();
    backend.device().uuid.clone().unwrap()
}

/// The error with which `choice` opens no device.
fn refused(choice: &str) -> String {
    let error = CudaBackend::open(&options(choice)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.fix_text().is_some(), "{error}");
    error.message().to_owned()
}

/// The shortest prefix of a UUID that no other UUID has.
fn prefix_of(entry: &DeviceEntry, all: &[DeviceEntry]) -> String {
    let is_unique = |prefix: &str| {
        let with = all.iter().filter(|other| other.uuid.starts_with(prefix));
        with.count() == 1
    };
    let mut prefixes = (5..=entry.uuid.len()).map(|length| &entry.uuid[..length]);
    prefixes
        .find(|prefix| is_unique(prefix))
        .unwrap()
        .to_owned()
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_listed_device_is_described_and_opens_by_number_uuid_and_prefix() {
    let all = listed();
    for entry in &all {
        say(&format!("{entry:?}"));
        let free = *entry.memory_free_bytes.as_ref().unwrap();
        assert!(0 < free && free <= entry.memory_bytes);
        assert!(entry.multiprocessors > 0 && entry.copy_engines > 0);
        assert!(entry.compute_capability >= (5, 0));
        assert!(entry.block_shared_bytes >= 48 << 10);
        assert!(entry.block_shared_bytes_max >= entry.block_shared_bytes);
        assert!(entry.multiprocessor_shared_bytes >= entry.block_shared_bytes_max);
        if let (Some(now), Some(max)) = (entry.link, entry.link_max) {
            assert!(now.lanes <= max.lanes);
            assert!(now.gigatransfers_per_s <= max.gigatransfers_per_s);
        }
        let prefix = prefix_of(entry, &all);
        let choices = [
            entry.ordinal.to_string(),
            entry.uuid.clone(),
            entry.uuid.to_uppercase(),
            prefix,
        ];
        for choice in choices {
            let backend = CudaBackend::open(&options(&choice)).unwrap();
            let info = backend.device();
            assert_eq!(info.uuid.as_ref(), Some(&entry.uuid), "{choice}");
            assert_eq!(info.pci_bus_id.as_ref(), Some(&entry.pci_bus_id));
            assert_eq!(info.compute_capability, Some(entry.compute_capability));
            assert_eq!(info.memory_bytes, entry.memory_bytes);
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_wrong_number_or_uuid_is_refused_with_what_is_visible() {
    let all = listed();
    let first = &all[0];
    for choice in ["999", "GPU-nowhere", "MIG-GPU"] {
        let message = refused(choice);
        say(&message);
        assert!(message.contains(choice), "{message}");
        assert!(message.contains(&first.uuid), "{message}");
        assert!(message.contains("CUDA_VISIBLE_DEVICES"), "{message}");
        // A wrong choice on a machine with devices is an error, not a reason to use the CPU.
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().build().unwrap());
        assert!(select_with(Choice::Auto, &pool, &options(choice)).is_err());
    }
}

#[test]
#[ignore = "needs two CUDA devices"]
fn two_cards_that_a_prefix_fits_are_both_named() {
    let all = listed();
    let [first, second, ..] = &all[..] else {
        panic!("this test needs two CUDA devices");
    };
    let same = first.uuid.bytes().zip(second.uuid.bytes());
    let common = same.take_while(|(a, b)| a == b).count();
    let choice = DeviceChoice::Uuid(first.uuid[..common].to_owned());
    let options = CudaOptions {
        device: choice,
        ..CudaOptions::default()
    };
    let error = CudaBackend::open(&options).err().unwrap();
    assert!(error.message().contains("0 and 1"), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn asking_for_free_memory_leaves_an_open_device_alone() {
    let backend = device();
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, Mode::Graph);
    for index in 0..3 {
        round(&saxpy, &mut *device_slot, &mut executor, 0, index);
        assert!(!listed().is_empty());
        opened("most_free");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn most_free_opens_the_device_with_most_free_memory() {
    let all = listed();
    let first = &all[0];
    let held = CudaBackend::open(&options("0")).unwrap();
    let (free, _) = held.memory_bytes().unwrap();
    // Whatever else runs there, the others have more than what this leaves.
    let allocation = held
        .allocate(Space::Device, (free as usize / 8) * 7)
        .unwrap();
    let chosen = opened("most_free");
    match all.len() {
        1 => assert_eq!(chosen, first.uuid),
        _ => assert_ne!(chosen, first.uuid),
    }
    drop(allocation);
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_device_computes_the_same_bytes() {
    let saxpy = saxpy();
    for entry in listed() {
        let choice = DeviceChoice::Ordinal(entry.ordinal);
        let options = CudaOptions {
            device: choice,
            ..CudaOptions::default()
        };
        let backend = device_with(&options);
        for mode in MODES {
            let mut device_slot = one_slot(&backend, &saxpy.recording);
            let mut executor = ready(&backend, &saxpy.recording, &mut *device_slot, mode);
            for index in 0..3 {
                // Compares with what the host computes, to the bit.
                round(
                    &saxpy,
                    &mut *device_slot,
                    &mut executor,
                    entry.ordinal,
                    index,
                );
            }
        }
    }
}

const CHILD: &str = "TAPELOOP_TEST_CHILD";
/// The UUIDs that the child must see, separated by commas.
const EXPECTED: &str = "TAPELOOP_TEST_EXPECTED";
/// The UUIDs that the child must not see.
const HIDDEN: &str = "TAPELOOP_TEST_HIDDEN";

/// Runs the child's test below under a CUDA_VISIBLE_DEVICES.
fn under(visible: &str, expected: &[&str], all: &[DeviceEntry]) {
    let uuids = all.iter().map(|entry| entry.uuid.as_str());
    let hidden: Vec<&str> = uuids.filter(|uuid| !expected.contains(uuid)).collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "visible::a_child_sees_what_its_variable_shows"])
        .env(CHILD, "1")
        .env("CUDA_VISIBLE_DEVICES", visible)
        .env(EXPECTED, expected.join(","))
        .env(HIDDEN, hidden.join(","))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "CUDA_VISIBLE_DEVICES={visible}: {said}"
    );
}

#[test]
fn a_child_sees_what_its_variable_shows() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap();
    let listed = [EXPECTED, HIDDEN].map(|name| std::env::var(name).unwrap());
    let [expected, hidden] = [0, 1].map(|index: usize| {
        let uuids = listed[index].split(',').filter(|uuid| !uuid.is_empty());
        uuids.collect::<Vec<&str>>()
    });
    let found = match devices().unwrap() {
        Ok(found) => found,
        Err(reason) => {
            assert!(expected.is_empty(), "{reason}");
            let shown = match visible.as_str() {
                "" => "CUDA_VISIBLE_DEVICES is empty".to_owned(),
                value => format!("CUDA_VISIBLE_DEVICES is {value:?}"),
            };
            assert!(reason.contains(&shown), "{reason}");
            assert_eq!(refused("0"), reason);
            return;
        }
    };
    let uuids: Vec<&str> = found.iter().map(|entry| entry.uuid.as_str()).collect();
    assert_eq!(uuids, expected);
    for (ordinal, uuid) in expected.iter().enumerate() {
        assert_eq!(opened(&ordinal.to_string()), *uuid);
        assert_eq!(opened(uuid), *uuid);
    }
    let message = refused(&expected.len().to_string());
    assert!(message.contains(&format!("{visible:?}")), "{message}");
    for uuid in hidden {
        assert!(refused(uuid).contains("UUID"));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn variables_that_show_one_device_or_none_are_honoured() {
    let all = listed();
    let uuid = all[0].uuid.as_str();
    let under = |visible: &str, expected: &[&str]| under(visible, expected, &all);
    under("", &[]);
    under("-1", &[]);
    under("GPU-00000000-0000-0000-0000-000000000000", &[]);
    under(uuid, &[uuid]);
    if numbers_count_all() {
        under("99", &[]);
        under("0", &[uuid]);
    }
}

#[test]
#[ignore = "needs two CUDA devices"]
fn two_cards_are_shown_alone_and_reordered() {
    let all = listed();
    assert!(all.len() > 1, "this test needs two CUDA devices");
    let [first, second] = [0, 1].map(|ordinal| all[ordinal].uuid.as_str());
    let under = |visible: &str, expected: &[&str]| under(visible, expected, &all);
    under(second, &[second]);
    under(&format!("{second},{first}"), &[second, first]);
    if numbers_count_all() {
        under("1", &[second]);
        under("1,0", &[second, first]);
        // The entries after an invalid number are hidden too.
        under("0,99,1", &[first]);
    }
}

/// Whether numbers in the variable count all devices of the machine: those that it hides from this
/// process are not counted.
fn numbers_count_all() -> bool {
    let is_set = std::env::var_os("CUDA_VISIBLE_DEVICES").is_some();
    if is_set {
        say("numbers are not tried: CUDA_VISIBLE_DEVICES is set from outside");
    }
    !is_set
}
