//! The built-in workload: per-residue features of protein structures.
//!
//! [`Features`] packs structures side by side, residues and atoms behind a
//! descriptor each, records one or more launches a feature, and reads back one
//! [`FeatureTable`] a structure. What a structure gets does not depend on what
//! else is in its batch.

mod columns;
mod config;
mod cpu;
mod image;
mod kernels;
mod layout;
mod pack;

use crate::error::Result;
use crate::record::{Buffer, Element, Kernel, Recorder};
use crate::structure::Structure;
use crate::workload::{DeviceInfo, Extent, ReadViews, Workload, WriteViews};
use layout::{ATOMS, AXES, CHAINS, RESIDUES, STRUCTURES, TILE, TILES};

pub use columns::{Column, ColumnDecl, ColumnKind, NULL_COUNT};
pub use config::{Cutoff, FeatureConfig, FeatureName};
pub use image::{KERNEL_TARGETS, KERNELS_HASH, NVCC_VERSION, image};
pub use pack::virtual_c_beta;

/// One structure on its way through the engine, or why it could not be read.
#[derive(Debug)]
pub struct Input {
    /// Where it came from: a path.
    pub source: String,
    /// The place of the source in the list of inputs, from 0.
    pub ordinal: u64,
    /// What was read there.
    pub structure: Result<Structure>,
}

/// The features of one structure.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    /// One column for each of [`FeatureConfig::residue_columns`], one value for
    /// each of the structure's residues.
    pub residues: Vec<Column>,
    /// One column for each of [`FeatureConfig::structure_columns`], one value
    /// each.
    pub structure: Vec<Column>,
}

/// The workload.
pub struct Features {
    config: FeatureConfig,
    kernels: kernels::Kernels,
}

impl Features {
    /// The workload for a configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if nothing is asked for,
    /// or something twice.
    pub fn new(config: FeatureConfig) -> Result<Self> {
        config.check()?;
        Ok(Features {
            config,
            kernels: kernels::Kernels::new(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> &FeatureConfig {
        &self.config
    }

    /// A capacity for batches of `residues` residues: room for as many atoms and
    /// chains as so many residues can be expected to have at most.
    pub fn capacity(residues: u32) -> Extent {
        let structures = (residues / 16).max(1);
        let mut lengths = [0; AXES.len()];
        lengths[RESIDUES] = residues;
        lengths[ATOMS] = residues.saturating_mul(16);
        lengths[STRUCTURES] = structures;
        lengths[TILES] = residues / TILE + structures;
        lengths[CHAINS] = (residues / 2).max(1);
        Extent::from(lengths)
    }

    /// Buckets for batches of `residues` residues and single structures of up to
    /// `residues_max`: a small one for what is left at the end, the batch itself,
    /// and the largest.
    pub fn buckets(residues: u32, residues_max: u32) -> Vec<Extent> {
        let mut sizes = vec![(residues / 8).max(1), residues, residues_max.max(residues)];
        sizes.dedup();
        sizes.into_iter().map(Features::capacity).collect()
    }

    fn uses_tiles(&self) -> bool {
        let config = &self.config;
        config.has(FeatureName::ContactNumber)
            || config.has(FeatureName::Wcn)
            || config.has(FeatureName::HseA)
    }

    fn uses_ca(&self) -> bool {
        let config = &self.config;
        !config.ca_cutoffs().is_empty()
            || config.has(FeatureName::Wcn)
            || config.has(FeatureName::HseA)
            || config.has(FeatureName::Rg)
    }
}

/// A result column on its way back.
#[derive(Clone, Copy, Debug)]
enum ResultBuffer {
    Count(Buffer<i32>),
    Real(Buffer<f32>),
}

impl ResultBuffer {
    fn read(self, views: &ReadViews<'_>) -> Column {
        match self {
            ResultBuffer::Count(buffer) => Column::Count(views.get(buffer).to_vec()),
            ResultBuffer::Real(buffer) => Column::Real(views.get(buffer).to_vec()),
        }
    }
}

/// The workload's buffers; those that no chosen feature needs are not there.
#[derive(Debug, Default)]
pub struct FeatureBuffers {
    structures: Option<Buffer<u32>>,
    tiles: Option<Buffer<u32>>,
    chains: Option<Buffer<u32>>,
    members: Option<Buffer<u32>>,
    ca: Option<Buffer<i32>>,
    cb: Option<Buffer<i32>>,
    atoms: Option<Buffer<i32>>,
    links: Option<Buffer<u8>>,
    b: Option<Buffer<f32>>,
    residue_results: Vec<ResultBuffer>,
    structure_results: Vec<ResultBuffer>,
}

impl Workload for Features {
    type Item = Input;
    type Output = FeatureTable;
    type Buffers = FeatureBuffers;

    fn axes(&self) -> &'static [&'static str] {
        &AXES
    }

    fn extent(&self, item: &Input) -> Result<Extent> {
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        pack::extent(structure)
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<FeatureBuffers> {
        let header = recorder.header();
        recorder.upload(header);
        let mut recording = Recording {
            recorder,
            header,
            buffers: FeatureBuffers::default(),
        };
        self.record_uploads(&mut recording);
        self.record_contacts(&mut recording);
        self.record_exposure(&mut recording);
        self.record_b_z(&mut recording);
        self.record_rg(&mut recording);
        let Recording {
            recorder, buffers, ..
        } = recording;
        for result in buffers
            .residue_results
            .iter()
            .chain(&buffers.structure_results)
        {
            match *result {
                ResultBuffer::Count(buffer) => recorder.download(buffer),
                ResultBuffer::Real(buffer) => recorder.download(buffer),
            }
        }
        Ok(buffers)
    }

    fn write(
        &self,
        buffers: &FeatureBuffers,
        item: &Input,
        at: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        pack::write(buffers, structure, at, views);
        Ok(())
    }

    fn read(
        &self,
        buffers: &FeatureBuffers,
        _: &Input,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<FeatureTable> {
        let read = |results: &[ResultBuffer]| results.iter().map(|r| r.read(views)).collect();
        Ok(FeatureTable {
            residues: read(&buffers.residue_results),
            structure: read(&buffers.structure_results),
        })
    }
}

/// A recording in the making.
struct Recording<'a> {
    recorder: &'a mut Recorder,
    header: Buffer<u32>,
    buffers: FeatureBuffers,
}

impl Recording<'_> {
    fn upload<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Option<Buffer<T>> {
        let buffer = self.recorder.upload_buffer(name, axis, elements);
        self.recorder.upload(buffer);
        Some(buffer)
    }

    fn counts(&mut self, name: &str) -> Buffer<i32> {
        let buffer = self.recorder.download_buffer(name, RESIDUES, 1);
        self.buffers
            .residue_results
            .push(ResultBuffer::Count(buffer));
        buffer
    }

    fn reals(&mut self, name: &str) -> Buffer<f32> {
        let buffer = self.recorder.download_buffer(name, RESIDUES, 1);
        self.buffers
            .residue_results
            .push(ResultBuffer::Real(buffer));
        buffer
    }

    /// Blocks that cover the batch's capacity along `axis`, one a unit; those
    /// beyond the header's total return at once.
    fn launch(&mut self, kernel: &Kernel, axis: usize, args: &[crate::record::Arg]) {
        let blocks = self.recorder.capacity(axis);
        self.recorder.launch(kernel, blocks, args);
    }
}

const DECLARED: &str = "declared with the features that need it";

impl Features {
    fn record_uploads(&self, r: &mut Recording<'_>) {
        if self.uses_tiles() {
            r.buffers.tiles = r.upload("tiles", TILES, 4);
        }
        if self.uses_ca() {
            r.buffers.ca = r.upload("ca", RESIDUES, 3);
        }
        if !self.config.cb_cutoffs().is_empty() {
            r.buffers.cb = r.upload("cb", RESIDUES, 3);
        }
        if self.config.has(FeatureName::HseA) {
            r.buffers.links = r.upload("links", RESIDUES, 1);
        }
        if self.config.has(FeatureName::BZ) {
            r.buffers.chains = r.upload("chains", CHAINS, 4);
            r.buffers.members = r.upload("members", RESIDUES, 1);
            r.buffers.b = r.upload("b", RESIDUES, 1);
        }
        if self.config.has(FeatureName::Rg) {
            r.buffers.structures = r.upload("structures", STRUCTURES, 4);
            r.buffers.atoms = r.upload("atoms", ATOMS, 3);
        }
    }

    fn record_contacts(&self, r: &mut Recording<'_>) {
        let around = [
            (r.buffers.ca, self.config.ca_cutoffs()),
            (r.buffers.cb, self.config.cb_cutoffs()),
        ];
        let mut names = self
            .config
            .residue_columns()
            .into_iter()
            .map(|column| column.name);
        for (positions, cutoffs) in around {
            for cutoff in cutoffs {
                let tiles = r.buffers.tiles.expect(DECLARED);
                let positions = positions.expect(DECLARED);
                let counts = r.counts(&names.next().expect("one column a cutoff, first of all"));
                let args = [
                    r.header.into(),
                    tiles.into(),
                    positions.into(),
                    counts.into(),
                    cutoff.squared().into(),
                ];
                r.launch(&self.kernels.contact_number, TILES, &args);
            }
        }
        if self.config.has(FeatureName::Wcn) {
            let tiles = r.buffers.tiles.expect(DECLARED);
            let ca = r.buffers.ca.expect(DECLARED);
            let sums = r.reals("wcn");
            let args = [r.header.into(), tiles.into(), ca.into(), sums.into()];
            r.launch(&self.kernels.weighted_contact_number, TILES, &args);
        }
    }

    fn record_exposure(&self, r: &mut Recording<'_>) {
        if !self.config.has(FeatureName::HseA) {
            return;
        }
        let tiles = r.buffers.tiles.expect(DECLARED);
        let ca = r.buffers.ca.expect(DECLARED);
        let links = r.buffers.links.expect(DECLARED);
        let up = r.counts("hse_a_up");
        let down = r.counts("hse_a_down");
        let args = [
            r.header.into(),
            tiles.into(),
            ca.into(),
            links.into(),
            up.into(),
            down.into(),
            self.config.hse_radius.squared().into(),
        ];
        r.launch(&self.kernels.half_sphere_exposure, TILES, &args);
    }

    fn record_b_z(&self, r: &mut Recording<'_>) {
        if !self.config.has(FeatureName::BZ) {
            return;
        }
        let chains = r.buffers.chains.expect(DECLARED);
        let members = r.buffers.members.expect(DECLARED);
        let b = r.buffers.b.expect(DECLARED);
        let z = r.reals("b_z");
        let args = [
            r.header.into(),
            chains.into(),
            members.into(),
            b.into(),
            z.into(),
        ];
        r.launch(&self.kernels.b_factor_z, CHAINS, &args);
    }

    fn record_rg(&self, r: &mut Recording<'_>) {
        if !self.config.has(FeatureName::Rg) {
            return;
        }
        let structures = r.buffers.structures.expect(DECLARED);
        let atoms = r.buffers.atoms.expect(DECLARED);
        let ca = r.buffers.ca.expect(DECLARED);
        for (name, positions, of_atoms) in [("rg", atoms, 1u32), ("rg_ca", ca, 0)] {
            let radii = r.recorder.download_buffer(name, STRUCTURES, 1);
            r.buffers.structure_results.push(ResultBuffer::Real(radii));
            let args = [
                r.header.into(),
                structures.into(),
                positions.into(),
                radii.into(),
                of_atoms.into(),
            ];
            r.launch(&self.kernels.radius_of_gyration, STRUCTURES, &args);
        }
    }
}
