//! Records the launches of all features. Inputs are uploaded if a feature asks for them, and
//! buffers that several features need are computed once.

use super::density;
use super::fused::{self, Fusion, StepProgram};
use super::inputs::StructureInputs;
use super::interfaces::{InterfaceBuffers, InterfaceColumns};
use super::kernels::{BuiltIn, WithCode};
use super::layout::{
    ATOMS, Atom, AtomFrame, AtomRoles, Backbone, CHAINS, ChainSpan, LIGANDS, Position, RESIDUES,
    ResidueSpan, STRUCTURES, StructureSpan, TILES, Tile,
};
use super::pairs::PairTable;
use super::reals::Reals;
use super::residue_depth::PointTotals;
use super::results::{KernelResults, ResultBuffer, ResultColumn, ResultNumber};
use super::table::{SharedColumns, SizedRows};
use super::table_decl::TableName;
use crate::backend::DeviceInfo;
use crate::error::{Context, Result};
use crate::record::{Arg, Buffer, Element, Image, Kernel, Number, Recorder};
use crate::workload::{Extent, ReadViews};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// The smallest number of values for which another thread pays off.
const VALUES_OF_TASK: usize = 1 << 17;

/// The workload's buffers.
#[derive(Debug, Default)]
pub struct FeatureBuffers {
    pub(super) inputs: StructureInputs,
    pub(super) results: Vec<(TableName, ResultColumn)>,
    pub(super) pairs: Vec<PairTable>,
    pub(super) interfaces: Option<InterfaceBuffers>,
    pub(super) depth_points: Option<PointTotals>,
    /// The flags of each structure's density, `[structures]`; 0 for a structure that is not too
    /// dense.
    pub(super) density: Option<Buffer<u32>>,
}

impl FeatureBuffers {
    /// Checks that the points of a structure are not too dense; `structure` is its index in the
    /// batch.
    ///
    /// # Errors
    /// See [`density::check`].
    pub(super) fn check(&self, views: &ReadViews<'_>, structure: u32) -> Result<()> {
        match self.density {
            // The host used to check this while it wrote the inputs, and `rejected.jsonl` still
            // names that stage.
            Some(flags) => density::check(views.get(flags)[structure as usize]).within(|| "write"),
            None => Ok(()),
        }
    }

    /// The columns of all rows that the views span, and for each of `items`, the parts of a batch by
    /// their starts and lengths, its rows of tables whose length follows from the data.
    pub(super) fn read(
        &self,
        views: &ReadViews<'_>,
        items: &[(Extent, Extent)],
        pool: Option<&ThreadPool>,
    ) -> (SharedColumns, Vec<SizedRows>) {
        let read = |(table, column): &(TableName, ResultColumn)| (*table, column.read(views));
        let columns: Vec<_> = match pool {
            Some(pool) => pool.install(|| {
                let rows = views.extent()[RESIDUES].max(1) as usize;
                let columns_per_task = VALUES_OF_TASK.div_ceil(rows);
                let columns = self.results.par_iter().with_min_len(columns_per_task);
                columns.map(read).collect()
            }),
            None => self.results.iter().map(read).collect(),
        };
        let mut shared = SharedColumns::default();
        for (table, values) in columns {
            shared.0[table as usize].push(values);
        }
        let mut rows = vec![SizedRows::default(); items.len()];
        for pairs in &self.pairs {
            pairs.read(views, items, &mut rows, &mut shared);
        }
        if let Some(buffers) = self.interfaces {
            let mut columns = InterfaceColumns::default();
            for (rows, &(offset, extent)) in rows.iter_mut().zip(items) {
                rows[TableName::Interfaces as usize] =
                    buffers.read(views, offset, extent, &mut columns);
            }
            shared.0[TableName::Interfaces as usize] = columns.into_values();
        }
        (shared, rows)
    }

    /// The extent that a structure needs for its rows and points whose number follows from the
    /// data; `None` if its extent is large enough.
    pub(super) fn outgrown(
        &self,
        views: &ReadViews<'_>,
        offset: Extent,
        extent: Extent,
    ) -> Option<Extent> {
        let pairs = self.pairs.iter();
        let pairs = pairs.filter_map(|pairs| pairs.outgrown(views, offset, extent));
        let interfaces = self.interfaces.as_ref();
        let interfaces = interfaces.and_then(|buffers| buffers.outgrown(views, offset, extent));
        let points = self.depth_points.as_ref();
        let points = points.and_then(|totals| totals.outgrown(views, offset, extent));
        pairs.chain(interfaces).chain(points).reduce(Extent::max)
    }
}

/// A launch that is not recorded yet.
struct PendingLaunch {
    kernel: Kernel,
    blocks: u32,
    args: Vec<Arg>,
}

/// A launch of a kernel of the user's own.
pub(super) struct OwnLaunch {
    /// The declaration; [`FeatureRecorder::finish`] attaches the code.
    pub(super) kernel: Kernel,
    pub(super) image: Arc<Image>,
    /// There is a thread for each unit of the axis.
    pub(super) axis: usize,
    pub(super) args: Vec<Arg>,
}

/// The index of a launch of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchIndex(usize);

/// The threads that work on one unit of an axis.
#[derive(Clone, Copy)]
enum WorkUnit {
    Thread,
    Warp,
    Block,
}

/// Records the features of one bucket. It collects launches until all features have asked for their
/// inputs, so that uploads come first.
pub(super) struct FeatureRecorder<'a> {
    pub(super) recorder: &'a mut Recorder,
    /// The settings of all features; `requested` are those of the features whose columns were
    /// requested.
    settings: Vec<&'a dyn Any>,
    requested: Vec<&'a dyn Any>,
    pub(super) reals: Reals,
    header: Buffer<u32>,
    pub(super) buffers: FeatureBuffers,
    /// Buffers that are zeroed at the start of each batch.
    zeroed: Vec<Buffer<u32>>,
    /// Results that are zeroed at the start of each batch.
    zeroed_counts: Vec<Buffer<i32>>,
    launches: Vec<PendingLaunch>,
    /// Launches of the user's own kernels. They follow the built-in ones, and are never fused.
    own_launches: Vec<OwnLaunch>,
    /// Results that are null where no kernel writes them. All bits set are null in both types.
    nulls: Vec<ResultBuffer>,
    /// Launches that round results to 16 bits. They follow all others, and are never fused.
    narrowing: Vec<PendingLaunch>,
    pub(super) downloads: Vec<ResultBuffer>,
    /// Values that features share, found by type.
    shared: Vec<Box<dyn Any>>,
    /// Whether a feature asked for C-alphas, and for C-betas.
    pub(super) asks_ca: bool,
    pub(super) asks_cb: bool,
}

impl<'a> FeatureRecorder<'a> {
    /// A recorder without launches. Uploads the header, which all kernels read. `settings` are
    /// those of all features, `requested` those that were asked for.
    pub(super) fn new(
        recorder: &'a mut Recorder,
        settings: Vec<&'a dyn Any>,
        requested: Vec<&'a dyn Any>,
        reals: Reals,
    ) -> Self {
        let header = recorder.header();
        recorder.upload(header);
        FeatureRecorder {
            recorder,
            settings,
            requested,
            reals,
            header,
            buffers: FeatureBuffers::default(),
            zeroed: Vec::new(),
            zeroed_counts: Vec::new(),
            launches: Vec::new(),
            own_launches: Vec::new(),
            nulls: Vec::new(),
            narrowing: Vec::new(),
            downloads: Vec::new(),
            shared: Vec::new(),
            asks_ca: false,
            asks_cb: false,
        }
    }

    /// Records the collected launches, one by one or fused, and the downloads.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if fusion is on, and the launches cannot be
    /// fused.
    pub(super) fn finish(
        mut self,
        fusion: Fusion,
        device: &DeviceInfo,
        with_code: WithCode,
    ) -> Result<FeatureBuffers> {
        self.check_density();
        if !self.own_launches.is_empty() {
            self.clear_derived();
        }
        // Zeroed first, because a fused launch needs all of them at its start.
        for &buffer in &self.zeroed {
            self.recorder.memset(buffer, 0);
        }
        for &buffer in &self.zeroed_counts {
            self.recorder.memset(buffer, 0);
        }
        for buffer in &self.nulls {
            match *buffer {
                ResultBuffer::Count(buffer) => self.recorder.memset(buffer, 0xff),
                ResultBuffer::Real(buffer) => self.recorder.memset(buffer, 0xff),
                ResultBuffer::F16(_) | ResultBuffer::Bf16(_) => unreachable!("kernels write f32"),
            }
        }
        let launches = self.launches.iter();
        let mut program = StepProgram::from_launches(
            launches.map(|launch| (&launch.kernel, launch.args.as_slice())),
        );
        let launches = if fusion.applies(&program, device)? {
            let spans_index = program.reads(self.structures());
            fused::record(self.recorder, self.header, spans_index, &program, with_code);
            Vec::new()
        } else {
            self.launches
        };
        for launch in launches {
            let kernel = with_code(launch.kernel, None, self.recorder);
            self.recorder.launch(&kernel, launch.blocks, &launch.args);
        }
        for launch in self.own_launches {
            let blocks = self
                .recorder
                .capacity(launch.axis)
                .div_ceil(launch.kernel.threads()[0]);
            let kernel = with_code(launch.kernel, Some(&launch.image), self.recorder);
            self.recorder.launch(&kernel, blocks, &launch.args);
        }
        for launch in self.narrowing {
            let kernel = with_code(launch.kernel, None, self.recorder);
            self.recorder.launch(&kernel, launch.blocks, &launch.args);
        }
        for buffer in self.downloads {
            buffer.download(self.recorder);
        }
        if let Some(flags) = self.buffers.density {
            self.recorder.download(flags);
        }
        Ok(self.buffers)
    }

    /// The settings of a feature.
    ///
    /// # Panics
    /// If `T` is not the settings of a feature.
    pub(super) fn settings<T: Any>(&self) -> &'a T {
        let found = self
            .settings
            .iter()
            .find_map(|settings| settings.downcast_ref());
        found.expect("the settings of all features are known")
    }

    /// Whether the columns of the feature with the settings `T` were requested.
    pub(super) fn is_requested<T: Any>(&self) -> bool {
        self.requested.iter().any(|settings| settings.is::<T>())
    }

    /// The shared value of type `T`.
    pub(super) fn shared<T: Any + Copy>(&self) -> Option<T> {
        self.shared
            .iter()
            .find_map(|shared| shared.downcast_ref())
            .copied()
    }

    /// Shares a value with later features. It replaces the shared value of the same type.
    pub(super) fn share<T: Any + Copy>(&mut self, value: T) -> T {
        self.shared.retain(|shared| !shared.is::<T>());
        self.shared.push(Box::new(value));
        value
    }

    /// The header, which every kernel takes first.
    pub(super) fn header(&self) -> Buffer<u32> {
        self.header
    }

    /// Adds constants to the header. Kernels read them from the returned index on.
    pub(super) fn constants<T: Number>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> usize {
        let named = |(index, value)| self.recorder.constant(&format!("{name}_{index}"), value);
        let all: Vec<_> = values.enumerate().map(named).collect();
        all.first().map_or(0, |first| first.id().header_index())
    }

    /// Launches a kernel with a thread for each unit of `axis`.
    pub(super) fn launch_threads<A: BuiltIn>(&mut self, axis: usize, args: A) -> LaunchIndex {
        self.launch(axis, args, WorkUnit::Thread)
    }

    /// Launches a kernel with a warp for each unit of `axis`.
    pub(super) fn launch_warps<A: BuiltIn>(&mut self, axis: usize, args: A) -> LaunchIndex {
        self.launch(axis, args, WorkUnit::Warp)
    }

    /// Launches a kernel with a block for each unit of `axis`.
    pub(super) fn launch_blocks<A: BuiltIn>(&mut self, axis: usize, args: A) -> LaunchIndex {
        self.launch(axis, args, WorkUnit::Block)
    }

    /// Replaces an earlier launch by a launch of another kernel, with a warp for each unit of
    /// `axis`.
    pub(super) fn relaunch_warps<A: BuiltIn>(&mut self, index: LaunchIndex, axis: usize, args: A) {
        self.launches[index.0] = self.launch_of(axis, args, WorkUnit::Warp);
    }

    /// Launches a kernel that rounds results, with a thread for each unit of `axis`, after all
    /// other launches.
    pub(super) fn narrow<A: BuiltIn>(&mut self, axis: usize, args: A) {
        let launch = self.launch_of(axis, args, WorkUnit::Thread);
        self.narrowing.push(launch);
    }

    /// Launches a kernel of the user's own after the built-in ones.
    pub(super) fn launch_own(&mut self, launch: OwnLaunch) {
        self.own_launches.push(launch);
    }

    /// Declares a column of one value a row, which is null where no kernel writes it.
    pub(super) fn null_results<T: ResultNumber>(
        &mut self,
        table: TableName,
        name: &str,
    ) -> Buffer<T> {
        let results = self.nulls_unless_written::<T>(table, name, 1);
        self.column(results, 0);
        results.buffer
    }

    /// Declares results of `values` a row, which are null where no kernel writes them.
    pub(super) fn nulls_unless_written<T: ResultNumber>(
        &mut self,
        table: TableName,
        name: &str,
        values: usize,
    ) -> KernelResults<T> {
        let results = self.results::<T>(table, name, values);
        self.nulls.push(T::result(results.buffer));
        results
    }

    /// Declares results of `values` counts a row, which are 0 where no kernel adds to them.
    pub(super) fn zero_counts(
        &mut self,
        table: TableName,
        name: &str,
        values: usize,
    ) -> KernelResults<i32> {
        let results = self.results(table, name, values);
        self.zeroed_counts.push(results.buffer);
        results
    }

    /// Keeps a launch until all features are recorded: a later one may replace it, and all of them
    /// may be fused.
    fn launch<A: BuiltIn>(&mut self, axis: usize, args: A, work_unit: WorkUnit) -> LaunchIndex {
        let launch = self.launch_of(axis, args, work_unit);
        self.launches.push(launch);
        LaunchIndex(self.launches.len() - 1)
    }

    /// A launch with as many blocks as a full batch needs: a thread, warp or block for each element
    /// of `axis`.
    fn launch_of<A: BuiltIn>(&self, axis: usize, args: A, work_unit: WorkUnit) -> PendingLaunch {
        let kernel = A::kernel();
        let units = match work_unit {
            WorkUnit::Thread => kernel.threads()[0],
            WorkUnit::Warp => kernel.threads()[0] / 32,
            WorkUnit::Block => 1,
        };
        PendingLaunch {
            blocks: self.recorder.capacity(axis).div_ceil(units),
            kernel,
            args: args.args(),
        }
    }

    /// Declares a buffer that stays on the device, of `elements` for each unit of `axis`.
    pub(super) fn device<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.recorder.device_buffer(name, axis, elements)
    }

    /// Declares a buffer that stays on the device and is zeroed at the start of each batch, of
    /// `elements` for each unit of `axis`.
    pub(super) fn zeros(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<u32> {
        let buffer = self.device(name, axis, elements);
        self.zeroed.push(buffer);
        buffer
    }

    /// The flags of each structure's density, `[structures]`.
    pub(super) fn density(&mut self) -> Buffer<u32> {
        let (recorder, zeroed) = (&mut *self.recorder, &mut self.zeroed);
        *self.buffers.density.get_or_insert_with(|| {
            let flags = recorder.download_buffer("density", STRUCTURES, 1);
            zeroed.push(flags);
            flags
        })
    }

    /// The input buffer in `field`, which is declared at the first call and uploaded with each
    /// batch.
    fn input<T: Element>(
        &mut self,
        field: fn(&mut StructureInputs) -> &mut Option<Buffer<T>>,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        let recorder = &mut *self.recorder;
        *field(&mut self.buffers.inputs).get_or_insert_with(|| {
            let buffer = recorder.upload_buffer(name, axis, elements);
            recorder.upload(buffer);
            buffer
        })
    }

    /// The span of each structure, `[structures]`.
    pub(super) fn structures(&mut self) -> Buffer<StructureSpan> {
        self.input(|inputs| &mut inputs.structures, "structures", STRUCTURES, 1)
    }

    /// The span of each residue, `[residues]`.
    pub(super) fn residues(&mut self) -> Buffer<ResidueSpan> {
        self.input(|inputs| &mut inputs.residues, "residues", RESIDUES, 1)
    }

    /// A tile for each 128 residues of a structure, `[tiles]`.
    pub(super) fn tiles(&mut self) -> Buffer<Tile> {
        self.input(|inputs| &mut inputs.tiles, "tiles", TILES, 1)
    }

    /// The span of each chain, `[chains]`.
    pub(super) fn chains(&mut self) -> Buffer<ChainSpan> {
        self.input(|inputs| &mut inputs.chains, "chains", CHAINS, 1)
    }

    /// The residues sorted by chain, `[residues]`. They are written with the spans of the chains.
    pub(super) fn members(&mut self) -> Buffer<u32> {
        self.chains();
        self.input(|inputs| &mut inputs.members, "members", RESIDUES, 1)
    }

    /// All atoms but those of ligands, `[atoms]`.
    pub(super) fn atoms(&mut self) -> Buffer<Atom> {
        self.input(|inputs| &mut inputs.atoms, "atoms", ATOMS, 1)
    }

    /// All atoms and those of ligands, `[atoms]`. Glycans come first among ligands.
    pub(super) fn bound_atoms(&mut self) -> Buffer<Atom> {
        self.input(|inputs| &mut inputs.bound_atoms, "bound_atoms", ATOMS, 1)
    }

    /// What each atom can be in an interaction, `[atoms]`.
    pub(super) fn roles(&mut self) -> Buffer<AtomRoles> {
        self.input(|inputs| &mut inputs.roles, "roles", ATOMS, 1)
    }

    /// The direction of each atom, or the centre and normal of its group, `[atoms]`.
    pub(super) fn frames(&mut self) -> Buffer<AtomFrame> {
        self.input(|inputs| &mut inputs.frames, "frames", ATOMS, 1)
    }

    /// The span of each ligand, `[ligands]`.
    pub(super) fn ligands(&mut self) -> Buffer<ResidueSpan> {
        self.input(|inputs| &mut inputs.ligands, "ligands", LIGANDS, 1)
    }

    /// For each atom of a ligand the index of that ligand in its structure, `[atoms]`.
    pub(super) fn ligand_of(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.ligand_of, "ligand_of", ATOMS, 1)
    }

    /// The C-beta that the file has of each residue, `[residues]`; missing for glycine.
    pub(super) fn betas(&mut self) -> Buffer<Position> {
        self.input(|inputs| &mut inputs.betas, "betas", RESIDUES, 1)
    }

    /// The backbone of each residue, `[residues]`.
    pub(super) fn backbone(&mut self) -> Buffer<Backbone> {
        self.input(|inputs| &mut inputs.backbone, "backbone", RESIDUES, 1)
    }

    /// The code of each atom's name, `[atoms]`.
    pub(super) fn names(&mut self) -> Buffer<u8> {
        self.input(|inputs| &mut inputs.names, "names", ATOMS, 1)
    }

    /// The B factor or pLDDT of each residue's C-alpha, `[residues]`.
    pub(super) fn b(&mut self) -> Buffer<f32> {
        self.input(|inputs| &mut inputs.b, "b", RESIDUES, 1)
    }

    /// The B factor or pLDDT of each atom, `[atoms]`.
    pub(super) fn atom_b(&mut self) -> Buffer<f32> {
        self.input(|inputs| &mut inputs.atom_b, "atom_b", ATOMS, 1)
    }

    /// The position of each residue in its chain's sequence, `[residues]`: from 1 in each chain, and
    /// at most 1,048,577. In chains without positions it is the row in the structure, from 1.
    pub(super) fn sequence(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.sequence, "sequence", RESIDUES, 1)
    }

    /// The row of each residue in its structure, `[residues]`, from 1.
    pub(super) fn row_numbers(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.row_numbers, "row_numbers", RESIDUES, 1)
    }

    /// The range of each chain's loose atoms, `[chains, 2]`: the first, and the number up to the
    /// last.
    pub(super) fn loose(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.loose, "loose", CHAINS, 2)
    }

    /// Whether each residue has one of the names, `[residues]`. Declares the buffer, which is
    /// uploaded with each batch.
    pub(super) fn selected(&mut self, names: &[String]) -> Buffer<u8> {
        let buffer = self.recorder.upload_buffer("selected", RESIDUES, 1);
        self.recorder.upload(buffer);
        self.buffers.inputs.selected = Some((buffer, names.to_vec()));
        buffer
    }

    /// The room of each structure for rows of pairs, `[structures, 2]`: the first row, and the
    /// number of rows, of which a unit of room has `rows_per_unit`. Declares the buffer, which is
    /// uploaded with each batch.
    pub(super) fn pair_rooms(&mut self, name: &str, rows_per_unit: usize) -> Buffer<u32> {
        let rooms = self.recorder.upload_buffer(name, STRUCTURES, 2);
        self.recorder.upload(rooms);
        self.buffers.inputs.pair_rooms.push((rooms, rows_per_unit));
        rooms
    }

    /// The room of each structure, `[structures, 2]`: the first unit, and the number of units.
    pub(super) fn rooms(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.rooms, "rooms", STRUCTURES, 2)
    }

    /// [`Self::channel`] for a kernel of the user's own: several may read the same one.
    pub(super) fn own_channel(&mut self, name: &str) -> Buffer<f32> {
        let mut channels = self.buffers.inputs.channels.iter();
        match channels.find(|(channel, _)| channel == name) {
            Some((_, buffer)) => *buffer,
            None => self.channel(name),
        }
    }

    /// An annotation of the residues, `[residues]`; NaN for a missing value. Declares the buffer,
    /// which is uploaded with each batch.
    pub(super) fn channel(&mut self, name: &str) -> Buffer<f32> {
        let values = self
            .recorder
            .upload_buffer(&format!("channel_{name}"), RESIDUES, 1);
        self.recorder.upload(values);
        self.buffers.inputs.channels.push((name.to_owned(), values));
        values
    }
}
