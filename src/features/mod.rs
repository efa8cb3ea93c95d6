//! The built-in workload: per-residue features of protein structures.
//!
//! [`Features`] packs structures side by side, with a descriptor for each structure, chain and
//! residue, records one or more launches per feature, and reads back one [`FeatureTable`] per
//! structure. The results of a structure do not depend on the other structures of its batch.

mod atom_residue;
mod b_factor;
mod ca_geometry;
mod cell_kind;
mod cells;
mod centrality;
mod cluster;
mod columns;
mod config;
mod constants;
mod contact_number;
mod contact_order;
mod contacts;
mod cpu;
mod cutoff;
mod density;
mod dssp;
mod entries;
mod feature;
mod fused;
mod grid;
mod half_sphere;
mod image;
mod inputs;
mod interactions;
mod interface_residues;
mod interfaces;
mod kernels;
mod layout;
mod ligands;
mod own_kernels;
mod pack;
mod pairs;
mod protrusion;
mod radius_of_gyration;
mod reals;
mod recorder;
mod residue_depth;
mod residue_points;
mod results;
mod rsa;
mod sasa;
mod side_chain_atoms;
mod side_chains;
mod smooth;
mod summary;
mod table;
mod table_decl;
mod torsions;
mod weighted_contact_number;

use crate::backend::DeviceInfo;
use crate::error::{Error, Result};
use crate::record::{Image, Kernel, Recorder, Twin};
use crate::workload::{BatchItem, Extent, ReadViews, Workload, WriteViews};
use layout::{
    ATOMS, AXES, CELLS, CHAINS, CHAINS_MAX, LIGANDS, PAIR_ROOM, RESIDUES, STRUCTURES, TILE, TILES,
};
use pack::ClassTags;
use rayon::ThreadPool;
use std::sync::Arc;

pub use crate::structure::Input;
use crate::structure::Radii;
pub use columns::{ColumnDecl, ColumnKind, NULL_COUNT, Tolerance};
pub use config::settings::*;
pub use config::{FeatureConfig, FeatureName};
pub use contact_order::Separation;
pub use contacts::ContactPoint;
pub use cutoff::Cutoff;
pub use dssp::DsspVersion;
pub use feature::{About, Setting};
pub use fused::Fusion;
pub use image::{KERNEL_TARGETS, KERNELS_HASH, NVCC_VERSION, image, images};
pub use inputs::{B_CA, PLDDT};
pub use interactions::INTERACTION_KINDS;
pub use own_kernels::{OWN_KERNEL_HEADER, OwnColumn, OwnKernel, OwnKernelSettings, Threads};
pub use reals::Reals;
pub use recorder::FeatureBuffers;
pub use residue_depth::DepthChains;
pub use residue_points::virtual_c_beta;
pub use rsa::RsaScale;
pub use sasa::SasaAlgorithm;
pub use table::{Column, FeatureTable, Values};
pub use table_decl::{RowKind, TableDecl, TableName};

/// The workload that computes features of structures.
pub struct Features {
    config: FeatureConfig,
    /// The tables whose columns are read.
    tables: Vec<TableName>,
    tags: ClassTags,
}

impl Features {
    /// The workload for a configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no feature is requested or one twice, or
    /// if a setting is invalid.
    pub fn new(config: FeatureConfig) -> Result<Self> {
        config.check()?;
        Ok(Features {
            tags: ClassTags::new(config.sasa.radii),
            config,
            tables: TableName::ALL.to_vec(),
        })
    }

    /// Reads the columns of `tables` alone: the [`FeatureTable`]s have none of the others, and no
    /// time is spent on them. Rows of pairs are read in any case.
    #[must_use]
    pub fn reading(mut self, tables: &[TableName]) -> Self {
        self.tables = tables.to_vec();
        self
    }

    /// The configuration.
    pub fn config(&self) -> &FeatureConfig {
        &self.config
    }

    /// A capacity for batches of `residues` residues, with room for the most atoms, chains and
    /// ligands that this many residues are expected to have: 16 atoms each, of which proteins have
    /// 8, as nucleotides are no residues; chains of two residues; structures of 16.
    pub fn capacity(residues: u32) -> Extent {
        let structures = (residues / 16).max(1);
        let mut lengths = [0; AXES.len()];
        lengths[RESIDUES] = residues;
        lengths[ATOMS] = residues.saturating_mul(16);
        lengths[STRUCTURES] = structures;
        lengths[TILES] = residues / TILE + structures;
        lengths[CHAINS] = (residues / 2).clamp(1, CHAINS_MAX);
        lengths[CELLS] = lengths[ATOMS].saturating_add(structures.saturating_mul(grid::SLACK));
        lengths[PAIR_ROOM] = residues;
        lengths[LIGANDS] = residues;
        Extent::from(lengths)
    }

    /// A capacity with `factor` times the room for rows whose number follows from the data: contacts,
    /// hydrogen bonds, interfaces.
    pub fn with_pair_room(capacity: Extent, factor: u32) -> Extent {
        let room = capacity[PAIR_ROOM].saturating_mul(factor);
        capacity.with(PAIR_ROOM, room)
    }

    /// Buckets for batches of `residues` residues and single structures of up to `residues_max`: an
    /// eighth, a quarter and a half of a usual batch for the remainder at the end, the usual batch,
    /// and from there on each twice the one before, up to the largest.
    pub fn buckets(residues: u32, residues_max: u32) -> Vec<Extent> {
        let residues = residues.max(1);
        let largest = residues_max.max(residues);
        let smaller = [8, 4, 2].map(|part| (residues / part).max(1));
        let doubled = std::iter::successors(Some(residues), |last| last.checked_mul(2));
        let mut sizes = smaller.to_vec();
        sizes.extend(doubled.take_while(|size| *size < largest));
        sizes.push(largest);
        sizes.dedup();
        sizes.into_iter().map(Features::capacity).collect()
    }
}

/// The CPU twins of all kernels by kernel name. A worker process looks them up, as functions cannot
/// be sent to it.
pub fn twins() -> Vec<(String, Twin)> {
    let kernels = kernels::ALL.iter().map(|kernel| kernel());
    let all = kernels.chain([fused::declaration()]);
    all.filter_map(|kernel| {
        let twin = kernel.cpu_twin()?;
        Some((kernel.name().to_owned(), twin))
    })
    .collect()
}

/// Attaches the code of a kernel for `recorder`: `user_image`, or the image of a built-in kernel.
///
/// The kernels rely on the header and on the descriptors that [`pack`] writes. Only a recorder that
/// an engine made for [`Features`] guarantees both. Any other gets the kernel without its code, so
/// that only the twin can run.
fn with_code(kernel: Kernel, user_image: Option<&Arc<Image>>, recorder: &Recorder) -> Kernel {
    if !recorder.is_for::<Features>() {
        return kernel;
    }
    if let Some(user_image) = user_image {
        // SAFETY: the caller of `OwnKernel::new` promised that the code keeps to its parameters over
        // the inputs of an engine's batches, and the recorder is an engine's (checked above).
        return unsafe { kernel.code(user_image) };
    }
    let built_in = match kernel.name() {
        fused::NAME => fused::image(),
        name => image(name).expect("each built-in kernel has a file of its name"),
    };
    // SAFETY: the image is what the build made of `kernels/*.cu`, and each declaration was read
    // from the same text, so it names a function there with the parameters that it has. The build
    // checks that each kernel, apart from the fused one, first waits for its dependencies. A kernel
    // takes its bounds from the header and from descriptors, never from the grid alone. The
    // recorder is the engine's own for `Features` (checked above), so nothing else records
    // commands around these launches or writes what they upload: the engine writes the header
    // within the capacity, and `pack` writes descriptors that lie within the item's part of the
    // batch, for structures whose parts `CheckedStructure::new` checked. No parameter is declared
    // changeable.
    unsafe { kernel.code(&built_in) }
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
        let radii = self.config.sasa.radii;
        if structure.radii != radii {
            let [read, wanted] = [structure.radii, radii].map(Radii::name);
            let message =
                format!("the structure has the radii {read:?}, and sasa.radii is {wanted:?}");
            let fix = format!("read it with the radii {wanted:?}, or set sasa.radii to {read:?}");
            return Err(Error::input(message).fix(fix));
        }
        let mut extent = pack::extent(structure)?;
        if self.config.computes(FeatureName::Interactions) {
            extent = interactions::with_room(extent, structure);
        }
        Ok(if self.config.computes(FeatureName::ResidueDepth) {
            residue_depth::with_point_room(extent, structure)
        } else {
            extent
        })
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<FeatureBuffers> {
        if recorder.largest_capacity(CHAINS) > CHAINS_MAX {
            let message = format!("a bucket of more than {CHAINS_MAX} chains");
            return Err(Error::config(message).fix("make the largest bucket smaller"));
        }
        let mut buffers = self.config.record(recorder, device, with_code)?;
        buffers
            .results
            .retain(|(table, _)| self.tables.contains(table));
        Ok(buffers)
    }

    fn write(
        &self,
        buffers: &FeatureBuffers,
        item: &Input,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        let structure = item.structure.as_ref().map_err(Clone::clone)?;
        pack::write(&buffers.inputs, &self.tags, structure, offset, views);
        Ok(())
    }

    fn read(
        &self,
        buffers: &FeatureBuffers,
        _: &Input,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<FeatureTable> {
        // The views have the item's part alone, where it begins at 0.
        buffers.check(views, 0)?;
        let item = (Extent::default(), views.extent());
        let (columns, _) = buffers.read(views, &[item], None);
        Ok(FeatureTable::new(columns.0))
    }

    fn read_batch(
        &self,
        buffers: &FeatureBuffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, Input>>,
        views: &ReadViews<'_>,
        pool: Option<&ThreadPool>,
    ) -> Option<Vec<Result<FeatureTable>>> {
        let items: Vec<_> = items.map(|item| (item.offset, item.extent)).collect();
        let (columns, rows) = buffers.read(views, &items, pool);
        let columns = Arc::new(columns);
        let table = |((offset, extent), rows): ((Extent, Extent), _)| {
            buffers.check(views, offset[STRUCTURES])?;
            let columns = Arc::clone(&columns);
            Ok(FeatureTable::of_batch(columns, offset, extent, rows))
        };
        Some(items.into_iter().zip(rows).map(table).collect())
    }

    fn outgrown(
        &self,
        buffers: &FeatureBuffers,
        items: &mut dyn Iterator<Item = BatchItem<'_, Input>>,
        views: &ReadViews<'_>,
    ) -> Result<Vec<(usize, Extent)>> {
        let needed = |(index, item): (usize, BatchItem<'_, Input>)| {
            // A structure that is too dense was not computed; reading it returns the error.
            buffers.check(views, item.offset[STRUCTURES]).ok()?;
            Some((index, buffers.outgrown(views, item.offset, item.extent)?))
        };
        Ok(items.enumerate().filter_map(needed).collect())
    }
}
