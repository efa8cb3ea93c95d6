//! A recording in the making: inputs as they are asked for, cell lists made once,
//! launches, results.

mod areas;
mod results;

use super::columns::{Column, TableName};
use super::config::FeatureConfig;
use super::fused::{self, Program};
use super::inputs::Inputs;
use super::kernels;
use super::layout::{ATOMS, CELLS, CHAINS, RESIDUES, STRUCTURES, TILES};
use crate::error::Result;
use crate::record::{Arg, Buffer, DeviceInfo, Element, Kernel, Recorder, Unit};
use crate::workload::ReadViews;
use areas::Areas;
use results::ResultColumn;
pub(super) use results::{ResultBuffer, Results};

/// The workload's buffers.
#[derive(Debug, Default)]
pub struct FeatureBuffers {
    pub(super) inputs: Inputs,
    results: Vec<(TableName, ResultColumn)>,
}

impl FeatureBuffers {
    /// One item's columns of a table, in order.
    pub(super) fn read(&self, table: TableName, views: &ReadViews<'_>) -> Vec<Column> {
        let of_table = self.results.iter().filter(|(of, _)| *of == table);
        of_table.map(|(_, column)| column.read(views)).collect()
    }
}

/// The arguments of a launch; sorted atoms, which are six, stand between
/// semicolons: `args![header, atoms; cells; counts]`.
macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$($crate::record::Arg::from($arg)),*] };
    ($($arg:expr),*; $cells:expr; $($rest:expr),* $(,)?) => {{
        let [start, x, y, z, tag, source] = $crate::features::recording::Cells::args($cells);
        args![$($arg,)* start, x, y, z, tag, source, $($rest),*]
    }};
}
pub(super) use args;

/// Atoms sorted by cell, as `Cells` of `kernels/cells.cuh`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    start: Buffer<u32>,
    x: Buffer<i32>,
    y: Buffer<i32>,
    z: Buffer<i32>,
    tag: Buffer<u32>,
    source: Buffer<u32>,
}

impl Cells {
    /// The six arguments of a kernel that declares
    /// [`reads_cells`](kernels::reads_cells).
    pub(super) fn args(self) -> [Arg; 6] {
        [
            self.start.into(),
            self.x.into(),
            self.y.into(),
            self.z.into(),
            self.tag.into(),
            self.source.into(),
        ]
    }
}

/// A recording in the making. Launches are kept until all features have asked for
/// what they need, so that uploads come first.
pub(super) struct Recording<'a> {
    recorder: &'a mut Recorder,
    config: &'a FeatureConfig,
    header: Buffer<u32>,
    buffers: FeatureBuffers,
    steps: Vec<Step>,
    /// Launches for results in 16 bits, after all others, which may be fused.
    narrowing: Vec<Step>,
    downloads: Vec<ResultBuffer>,
    atom_cells: Option<Cells>,
    ca_cells: Option<Cells>,
    cb_cells: Option<Cells>,
    areas: Option<Areas>,
    atom_residue: Option<Buffer<u32>>,
}

/// What happens on the device.
enum Step {
    Zero(Buffer<u32>),
    Launch(Kernel, u32, Vec<Arg>),
}

fn launch_all(recorder: &mut Recorder, steps: &[Step]) {
    for step in steps {
        if let Step::Launch(kernel, blocks, args) = step {
            let kernel = kernels::with_code(kernel.clone(), recorder);
            recorder.launch(&kernel, *blocks, args);
        }
    }
}

impl<'a> Recording<'a> {
    pub(super) fn new(recorder: &'a mut Recorder, config: &'a FeatureConfig) -> Self {
        let header = recorder.header();
        recorder.upload(header);
        Recording {
            recorder,
            config,
            header,
            buffers: FeatureBuffers::default(),
            steps: Vec::new(),
            downloads: Vec::new(),
            narrowing: Vec::new(),
            atom_cells: None,
            ca_cells: None,
            cb_cells: None,
            areas: None,
            atom_residue: None,
        }
    }

    /// Records what was kept, launches one by one or as one, and the downloads.
    ///
    /// # Errors
    /// If the launches do not fit into one.
    pub(super) fn finish(mut self, device: &DeviceInfo) -> Result<FeatureBuffers> {
        // Nothing touches such a buffer before its launch, and one launch for all of
        // them needs all at zeros.
        for step in &self.steps {
            if let &Step::Zero(buffer) = step {
                self.recorder.memset(buffer, 0);
            }
        }
        let launches = self.steps.iter().filter_map(|step| match step {
            Step::Launch(kernel, _, args) => Some((kernel, args.as_slice())),
            Step::Zero(_) => None,
        });
        let program = Program::of(launches);
        // The same for all buckets, as they share their launches.
        let residues_max = self.recorder.largest_capacity(RESIDUES);
        if self.config.fusion.applies(&program, residues_max, device)? {
            let all = [self.header.into(), self.structures().into()];
            fused::record(self.recorder, all, &program);
        } else {
            launch_all(self.recorder, &self.steps);
        }
        launch_all(self.recorder, &self.narrowing);
        for buffer in self.downloads {
            match buffer {
                ResultBuffer::Count(buffer) => self.recorder.download(buffer),
                ResultBuffer::Real(buffer) => self.recorder.download(buffer),
                ResultBuffer::F16(buffer) => self.recorder.download(buffer),
                ResultBuffer::Bf16(buffer) => self.recorder.download(buffer),
            }
        }
        Ok(self.buffers)
    }

    /// The header, which every kernel takes first.
    pub(super) fn header(&self) -> Buffer<u32> {
        self.header
    }

    /// Values that kernels read from the header, from the returned index on.
    pub(super) fn constants<T: Element>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> usize {
        let named = |(index, value)| self.recorder.constant(&format!("{name}_{index}"), value);
        let places: Vec<usize> = values.enumerate().map(named).collect();
        places.first().copied().unwrap_or_default()
    }

    /// Launches `kernel` with a thread for each unit of `axis`.
    pub(super) fn launch_threads(&mut self, kernel: Kernel, axis: usize, args: &[Arg]) {
        let step = self.step_of_threads(kernel, axis, args);
        self.steps.push(step);
    }

    fn step_of_threads(&self, kernel: Kernel, axis: usize, args: &[Arg]) -> Step {
        let blocks = self.recorder.capacity(axis).div_ceil(kernel.block[0]);
        Step::Launch(kernel, blocks, args.to_vec())
    }

    /// Launches `kernel` with a warp for each unit of `axis`.
    pub(super) fn launch_warps(&mut self, kernel: Kernel, axis: usize, args: &[Arg]) {
        let blocks = self.recorder.capacity(axis).div_ceil(kernel.block[0] / 32);
        self.steps.push(Step::Launch(kernel, blocks, args.to_vec()));
    }

    /// Launches `kernel` with a block for each unit of `axis`.
    pub(super) fn launch_blocks(&mut self, kernel: Kernel, axis: usize, args: &[Arg]) {
        let blocks = self.recorder.capacity(axis);
        self.steps.push(Step::Launch(kernel, blocks, args.to_vec()));
    }

    /// A buffer that stays on the device, of `elements` for each unit of `axis`.
    pub(super) fn device<T: Element>(
        &mut self,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        self.recorder
            .device_buffer(name, Unit::PerAxis { axis, elements })
    }

    /// A buffer that stays on the device and begins each batch at zeros, of
    /// `elements` for each unit of `axis`.
    pub(super) fn zeros(&mut self, name: &str, axis: usize, elements: usize) -> Buffer<u32> {
        let buffer = self.device(name, axis, elements);
        self.steps.push(Step::Zero(buffer));
        buffer
    }

    fn input<T: Element>(
        &mut self,
        place: fn(&mut Inputs) -> &mut Option<Buffer<T>>,
        name: &str,
        axis: usize,
        elements: usize,
    ) -> Buffer<T> {
        let recorder = &mut *self.recorder;
        *place(&mut self.buffers.inputs).get_or_insert_with(|| {
            let buffer = recorder.upload_buffer(name, axis, elements);
            recorder.upload(buffer);
            buffer
        })
    }

    /// A `Structure` for each structure.
    pub(super) fn structures(&mut self) -> Buffer<u32> {
        self.input(
            |inputs| &mut inputs.structures,
            "structures",
            STRUCTURES,
            24,
        )
    }

    /// A `Residue` for each residue.
    pub(super) fn residues(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.residues, "residues", RESIDUES, 4)
    }

    /// A `Tile` for each 128 residues of a structure.
    pub(super) fn tiles(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.tiles, "tiles", TILES, 4)
    }

    /// A `Chain` for each chain.
    pub(super) fn chains(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.chains, "chains", CHAINS, 4)
    }

    /// The residues of each `Chain`.
    pub(super) fn members(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.members, "members", RESIDUES, 1)
    }

    /// An `Atom` for each atom.
    pub(super) fn atoms(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.atoms, "atoms", ATOMS, 4)
    }

    /// The C-alpha of each residue, an `Atom`.
    pub(super) fn ca(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.ca, "ca", RESIDUES, 4)
    }

    /// The C-beta of each residue, an `Atom`; glycine's, and one that is missing,
    /// where an ideal one would be.
    pub(super) fn cb(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.cb, "cb", RESIDUES, 4)
    }

    /// The `Backbone` of each residue.
    pub(super) fn backbone(&mut self) -> Buffer<i32> {
        self.input(|inputs| &mut inputs.backbone, "backbone", RESIDUES, 12)
    }

    /// The B factor of each residue's C-alpha.
    pub(super) fn b(&mut self) -> Buffer<f32> {
        self.input(|inputs| &mut inputs.b, "b", RESIDUES, 1)
    }

    /// The B factor of each atom.
    pub(super) fn atom_b(&mut self) -> Buffer<f32> {
        self.input(|inputs| &mut inputs.atom_b, "atom_b", ATOMS, 1)
    }

    /// Where each chain's loose atoms are.
    pub(super) fn loose(&mut self) -> Buffer<u32> {
        self.input(|inputs| &mut inputs.loose, "loose", CHAINS, 2)
    }

    /// Whether each residue has one of the names.
    pub(super) fn selected(&mut self, names: &[String]) -> Buffer<u8> {
        let buffer = self.recorder.upload_buffer("selected", RESIDUES, 1);
        self.recorder.upload(buffer);
        self.buffers.inputs.selected = Some((buffer, names.to_vec()));
        buffer
    }

    /// An annotation: a value for each residue.
    pub(super) fn channel(&mut self, name: &str) -> Buffer<f32> {
        let values = self
            .recorder
            .upload_buffer(&format!("channel_{name}"), RESIDUES, 1);
        self.recorder.upload(values);
        self.buffers.inputs.channels.push((name.to_owned(), values));
        values
    }

    /// All atoms by cell, of the structures' `atom_grid`.
    pub(super) fn atom_cells(&mut self) -> Cells {
        if let Some(cells) = self.atom_cells {
            return cells;
        }
        let atoms = self.atoms();
        let cells = self.sort("atom", atoms, ATOMS);
        *self.atom_cells.insert(cells)
    }

    /// C-alphas by cell, of the structures' `residue_grid`.
    pub(super) fn ca_cells(&mut self) -> Cells {
        if let Some(cells) = self.ca_cells {
            return cells;
        }
        let ca = self.ca();
        let cells = self.sort("ca", ca, RESIDUES);
        *self.ca_cells.insert(cells)
    }

    /// C-betas by cell, of the structures' `residue_grid`.
    pub(super) fn cb_cells(&mut self) -> Cells {
        if let Some(cells) = self.cb_cells {
            return cells;
        }
        let cb = self.cb();
        let cells = self.sort("cb", cb, RESIDUES);
        *self.cb_cells.insert(cells)
    }

    /// The residue of the batch that each atom is of, plus one; zero for none.
    pub(super) fn atom_residue(&mut self) -> Buffer<u32> {
        if let Some(residue_of) = self.atom_residue {
            return residue_of;
        }
        let residue_of = self.zeros("atom_residue", ATOMS, 1);
        let args = args![self.header, self.residues(), residue_of];
        self.launch_threads(kernels::atom_residue(), RESIDUES, &args);
        *self.atom_residue.insert(residue_of)
    }

    fn sort(&mut self, name: &str, atoms: Buffer<i32>, axis: usize) -> Cells {
        let (header, structures, chains) = (self.header, self.structures(), self.chains());
        let named = |part: &str| format!("{name}_cell_{part}");
        let counts = self.zeros(&named("counts"), CELLS, 1);
        let cells = Cells {
            start: self.device(&named("start"), CELLS, 1),
            x: self.device(&named("x"), axis, 1),
            y: self.device(&named("y"), axis, 1),
            z: self.device(&named("z"), axis, 1),
            tag: self.device(&named("tag"), axis, 1),
            source: self.device(&named("source"), axis, 1),
        };
        let of_axis = axis as u32;
        let args = args![header, structures, chains, atoms, counts, of_axis];
        self.launch_threads(kernels::cell_count(), axis, &args);
        let args = args![header, structures, counts, cells.start, of_axis];
        self.launch_blocks(kernels::cell_scan(), STRUCTURES, &args);
        let Cells {
            start,
            x,
            y,
            z,
            tag,
            source,
        } = cells;
        let args = args![
            header, structures, chains, atoms, start, counts, x, y, z, tag, source, of_axis
        ];
        self.launch_threads(kernels::cell_fill(), axis, &args);
        cells
    }
}
