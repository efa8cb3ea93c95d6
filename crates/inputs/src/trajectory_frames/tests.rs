//! Trajectories of all kinds, and damaged ones.

use crate::{Archives, FrameRange, Shard, Source, Sources, Trajectories};
use std::fs;
use std::sync::Arc;
use tapeloop_error::Result;
use tapeloop_files::text_of;
use tapeloop_structure::{ReadOptions, Reader, Structure, Topology};
use tapeloop_test_support::{random, repository};

/// A topology of `residues` alanines without CB, 3.8 A apart.
fn topology(residues: usize) -> Arc<Topology> {
    let mut text = String::new();
    for (atom, place) in positions(4 * residues, 0).iter().enumerate() {
        let (name, residue) = (["N", "CA", "C", "O"][atom % 4], atom / 4 + 1);
        let [x, y, z] = place;
        let serial = atom + 1;
        text += &format!(
            "ATOM  {serial:5}  {name:<3} ALA A{residue:4}    {x:8.3}{y:8.3}{z:8.3}  1.00  9.00\n"
        );
    }
    topology_of(&(text + "END\n"))
}

fn topology_of(text: &str) -> Arc<Topology> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top.pdb");
    fs::write(&path, text).unwrap();
    let mut reader = Reader::new(ReadOptions::default());
    Arc::new(reader.read_topology(&path).unwrap())
}

/// Positions of atoms in A, whose bonds are short. Each is a multiple of 0.25, which all formats keep.
fn positions(atoms: usize, frame: usize) -> Vec<[f32; 3]> {
    let place = |atom: usize| {
        let along = atom as f32 * 1.25;
        [along, (atom % 3) as f32 * 0.5, frame as f32 - 2.0]
    };
    (0..atoms).map(place).collect()
}

/// Frames, or the error of each.
fn read(
    name: &str,
    bytes: &[u8],
    topology: &Arc<Topology>,
) -> Vec<std::result::Result<Structure, String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let trajectories = Trajectories::Read(Arc::clone(topology), FrameRange::ALL);
    let sources = Sources::new(vec![text_of(&path)], Archives::Unknown, Shard::WHOLE)
        .with_trajectories(trajectories);
    let mut reader = Reader::new(ReadOptions::default());
    let read = |source: Source| {
        let structures = source.content?.read(&source.path, &mut reader)?;
        Ok(structures
            .into_iter()
            .next()
            .expect("a frame has a structure"))
    };
    let to_text = |read: Result<Structure>| read.map_err(|error| error.to_string());
    sources.map(read).map(to_text).collect()
}

/// Checks that the frames have the coordinates of [`positions`], and these times.
fn check(name: &str, bytes: &[u8], topology: &Arc<Topology>, times: &[Option<f32>]) {
    let found = read(name, bytes, topology);
    assert_eq!(found.len(), times.len(), "{name}");
    for (index, (structure, time)) in found.into_iter().zip(times).enumerate() {
        let structure = structure.unwrap();
        let xyz = positions(topology.file_atoms() as usize, index);
        let xyz: Vec<[i32; 3]> = xyz
            .into_iter()
            .map(|place| place.map(|angstrom| (angstrom * 1000.0) as i32))
            .collect();
        assert_eq!(structure.xyz, xyz, "{name} frame {index}");
        let frame = structure.frame.unwrap();
        assert_eq!(frame.index, index as u32);
        match (frame.time_ps, time) {
            (Some(found), Some(time)) => assert!((found - time).abs() < 1e-5, "{name}: {found}"),
            (found, time) => assert_eq!(found, *time, "{name}"),
        }
    }
}

/// How a DCD file is written.
#[derive(Clone, Copy, Default)]
struct DcdShape {
    is_big_endian: bool,
    is_xplor: bool,
    has_cell: bool,
    has_fourth: bool,
    /// The first atoms, which do not move.
    fixed: usize,
}

/// Writes three frames, 2 ps apart from 10 ps on.
fn dcd(atoms: usize, shape: DcdShape) -> Vec<u8> {
    let word = |word: u32| {
        if shape.is_big_endian {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    };
    let mut file = Vec::new();
    let mut record = |bytes: &[u8]| {
        file.extend(word(bytes.len() as u32));
        file.extend(bytes);
        file.extend(word(bytes.len() as u32));
    };
    let step = 0.001 / 0.048_888_21_f64;
    let mut words = [0; 20];
    (words[0], words[1], words[2]) = (3, 10_000, 2_000);
    words[8] = shape.fixed as u32;
    if shape.is_xplor {
        let bits = step.to_bits();
        let halves = [bits as u32, (bits >> 32) as u32];
        let [low, high] = halves;
        (words[9], words[10]) = if shape.is_big_endian {
            (high, low)
        } else {
            (low, high)
        };
    } else {
        words[9] = (step as f32).to_bits();
        (words[10], words[11]) = (shape.has_cell.into(), shape.has_fourth.into());
        words[19] = 24;
    }
    record(&[&b"CORD"[..], &words.map(word).concat()].concat());
    record(&[&word(2)[..], &[b' '; 160]].concat());
    record(&word(atoms as u32));
    if shape.fixed > 0 {
        let free: Vec<[u8; 4]> = (shape.fixed..atoms)
            .map(|atom| word(atom as u32 + 1))
            .collect();
        record(&free.concat());
    }
    for frame in 0..3 {
        if shape.has_cell {
            record(&[0; 48]);
        }
        let first = if frame == 0 { 0 } else { shape.fixed };
        let places = positions(atoms, frame);
        for axis in 0..3 {
            let axis = places[first..]
                .iter()
                .map(|place| word(place[axis].to_bits()));
            record(&axis.collect::<Vec<_>>().concat());
        }
        if shape.has_fourth {
            record(&vec![0; 4 * (atoms - first)]);
        }
    }
    file
}

#[test]
fn dcd_files_of_all_shapes_are_read() {
    let topology = topology(5);
    let plain = DcdShape::default();
    for is_big_endian in [false, true] {
        let order = DcdShape {
            is_big_endian,
            ..plain
        };
        for shape in [
            order,
            DcdShape {
                is_xplor: true,
                ..order
            },
            DcdShape {
                has_cell: true,
                ..order
            },
            DcdShape {
                has_cell: true,
                has_fourth: true,
                ..order
            },
        ] {
            let times = [10.0, 12.0, 14.0].map(Some);
            check("a.dcd", &dcd(20, shape), &topology, &times);
        }
    }
}

#[test]
fn fixed_atoms_stay_where_the_first_frame_has_them() {
    let topology = topology(5);
    let shape = DcdShape {
        fixed: 8,
        ..DcdShape::default()
    };
    let frames = read("a.dcd", &dcd(20, shape), &topology);
    assert_eq!(frames.len(), 3);
    for (index, frame) in frames.into_iter().enumerate() {
        let heights: Vec<i32> = frame.unwrap().xyz.iter().map(|place| place[2]).collect();
        let moved = (index as i32 - 2) * 1000;
        assert_eq!(heights, [vec![-2000; 8], vec![moved; 12]].concat());
    }
}

#[test]
fn a_time_beyond_the_columns_type_is_none() {
    let topology = topology(5);
    let mut bytes = dcd(20, DcdShape::default());
    // CHARMM's time of a step: the tenth word behind the first marker and `CORD`.
    bytes[44..48].copy_from_slice(&3e38_f32.to_le_bytes());
    for frame in read("a.dcd", &bytes, &topology) {
        assert_eq!(frame.unwrap().frame.unwrap().time_ps, None);
    }
}

/// Three frames as molly writes them, 2 ps apart.
fn xtc(atoms: usize, magic: molly::Magic) -> Vec<u8> {
    let mut writer = molly::XTCWriter::new_with_magic(Vec::new(), magic);
    for index in 0..3 {
        let places = positions(atoms, index);
        let frame = molly::Frame {
            step: index as u32,
            time: 2.0 * index as f32,
            precision: 10_000.0,
            positions: places
                .concat()
                .iter()
                .map(|angstrom| angstrom / 10.0)
                .collect(),
            ..molly::Frame::default()
        };
        writer.write_frame(&frame).unwrap();
    }
    writer.file
}

#[test]
fn xtc_files_of_few_and_many_atoms_and_of_both_sizes_are_read() {
    let times = [0.0, 2.0, 4.0].map(Some);
    for residues in [2, 3, 100] {
        let topology = topology(residues);
        for magic in [molly::Magic::Xtc1995, molly::Magic::Xtc2023] {
            check("a.xtc", &xtc(4 * residues, magic), &topology, &times);
        }
    }
}

/// Compresses a frame with whole numbers alone, as the format allows: the bits of x, y and z as one
/// number of a mixed base, and a 0 for "no run follows".
fn xtc_without_runs(places: &[[i32; 3]]) -> Vec<u8> {
    let least = [0, 1, 2].map(|axis| places.iter().map(|place| place[axis]).min().unwrap());
    let most = [0, 1, 2].map(|axis| places.iter().map(|place| place[axis]).max().unwrap());
    let sizes = [0, 1, 2].map(|axis| (most[axis] - least[axis] + 1) as u128);
    let product: u128 = sizes.iter().product();
    let bits = 128 - product.leading_zeros();
    let mut stream: Vec<bool> = Vec::new();
    for place in places {
        let [x, y, z] = [0, 1, 2].map(|axis| (place[axis] - least[axis]) as u128);
        let number = (x * sizes[1] + y) * sizes[2] + z;
        // Whole bytes come first, the lowest first, and then the bits that are left.
        let mut left = bits;
        let mut rest = number;
        while left > 0 {
            let width = left.min(8);
            stream.extend((0..width).rev().map(|bit| rest >> bit & 1 == 1));
            rest >>= width;
            left -= width;
        }
        stream.push(false);
    }
    let packed: Vec<u8> = stream
        .chunks(8)
        .map(|bits| {
            let bit = |(index, &bit): (usize, &bool)| u8::from(bit) << (7 - index);
            bits.iter().enumerate().map(bit).sum()
        })
        .collect();
    let mut file = Vec::new();
    let (atoms, bits_of) = (places.len() as i32, |real: f32| real.to_bits() as i32);
    let header = [&[1995, atoms, 7, bits_of(1.5)][..], &[0; 9], &[atoms]].concat();
    let coding = [&[bits_of(1000.0)][..], &least, &most, &[9]].concat();
    for word in [header, coding, vec![packed.len() as i32]].concat() {
        file.extend(word.to_be_bytes());
    }
    file.extend(&packed);
    file.resize(file.len().next_multiple_of(4), 0);
    file
}

#[test]
fn an_xtc_frame_of_an_independent_writer_is_read() {
    let topology = topology(100);
    let places: Vec<[i32; 3]> = positions(400, 0)
        .iter()
        .map(|place| place.map(|angstrom| (angstrom * 100.0).round() as i32))
        .collect();
    check("a.xtc", &xtc_without_runs(&places), &topology, &[Some(1.5)]);
}

#[test]
fn damaged_trajectories_are_errors_and_never_panics() {
    let structure = repository("samples/1ubi.pdb");
    let topology = topology_of(&fs::read_to_string(structure).unwrap());
    let mut random = random::Random::new(7);
    for name in ["a.xtc", "a.dcd"] {
        let bytes = fs::read(repository(&format!(
            "tests/data/trajectories/1ubi.{}",
            &name[2..]
        )))
        .unwrap();
        let (mut good, mut bad) = (0, 0);
        for round in 0..400 {
            let mut bytes = bytes.clone();
            // Half of the changes are in the headers.
            let end = if round % 2 == 0 { 300 } else { bytes.len() };
            for _ in 0..=random.below(3) {
                let offset = random.below(end);
                bytes[offset] ^= 1 << random.below(8);
            }
            if round % 10 == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            for frame in read(name, &bytes, &topology) {
                match frame {
                    Ok(structure) => {
                        assert_eq!(structure.xyz.len(), topology.atoms().len());
                        good += 1;
                    }
                    Err(_) => bad += 1,
                }
            }
        }
        assert!(good > 100 && bad > 100, "{name}: {good} good, {bad} bad");
    }
}
