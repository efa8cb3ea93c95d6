//! Kernels of the user's own, which compute further columns.

mod parameters;

use super::columns::{ColumnDecl, ColumnKind, NULL_COUNT, TableName};
use super::layout::{ATOMS, CHAINS, RESIDUES, STRUCTURES};
use super::recorder::{FeatureRecorder, OwnLaunch};
use crate::error::{Context, Result};
use crate::record::{Access, Arg, CudaSource, DType, Image, Kernel, ParamKind};
use parameters::{INPUTS, InputBuffer, OwnParam, read_kernel};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the header with the structs of the inputs, which the text may include.
pub const OWN_KERNEL_HEADER: &str = "tapeloop.cuh";

/// The text of that header.
const HEADER_TEXT: &str = include_str!("../../../kernels/layout.cuh");

/// The unit that each thread of a kernel handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Each residue.
    #[default]
    Residue,
    /// Each chain.
    Chain,
    /// Each structure.
    Structure,
    /// Each atom.
    Atom,
}

impl Threads {
    /// All of them with their names in a config.
    pub const NAMES: [(&'static str, Threads); 4] = [
        ("residue", Threads::Residue),
        ("chain", Threads::Chain),
        ("structure", Threads::Structure),
        ("atom", Threads::Atom),
    ];

    /// The table of columns that do not name theirs: one with a row a thread, or for threads of
    /// atoms that of residues.
    pub fn table(self) -> TableName {
        match self {
            Threads::Residue | Threads::Atom => TableName::Residues,
            Threads::Chain => TableName::Chains,
            Threads::Structure => TableName::Structures,
        }
    }

    /// The axis that the kernel has a thread for each element of.
    fn axis(self) -> usize {
        match self {
            Threads::Residue => RESIDUES,
            Threads::Chain => CHAINS,
            Threads::Structure => STRUCTURES,
            Threads::Atom => ATOMS,
        }
    }
}

/// A column that a kernel writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnColumn {
    /// The table: residues, chains or structures.
    pub table: TableName,
    /// The unit; empty if it has none.
    pub unit: String,
    /// A description.
    pub about: String,
}

/// Where the text of a kernel is, and what its parameters stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnKernelSettings {
    /// The path, which messages name.
    pub file: String,
    /// The text of the file.
    pub text: Arc<str>,
    /// The name of the `extern "C" __global__` function.
    pub entry: String,
    /// The unit that each thread handles.
    pub threads: Threads,
    /// The values of parameters that are numbers.
    pub values: BTreeMap<String, f64>,
    /// Columns by the name of their parameter. One that is not here has a row for each thread.
    pub columns: BTreeMap<String, OwnColumn>,
}

/// A kernel of the user's own.
///
/// It runs only on a GPU, after the built-in kernels, and computes columns. The name of a parameter
/// determines its argument:
///
/// - `const` pointers named as an input ([`OwnKernel::INPUTS`]): `header` (`unsigned`), `structures`
///   (`StructureSpan`), `residues` (`ResidueSpan`), `chains` (`ChainSpan`), `members` (`unsigned`),
///   `atoms`, `ca` and `cb` (`Atom`), `backbone` (`Backbone`), `side_chains` (`SideChain`), `b` and
///   `atom_b` (`float`: B factors in A^2, or pLDDTs), `sequence` and `row_numbers` (`int`).
///   [`OWN_KERNEL_HEADER`] has the structs.
/// - `const float* channel_NAME`: the annotation NAME of each residue, NaN where there is none.
/// - `float*` and `int*`: a column of that name, which is null where the kernel writes nothing, NaN
///   or -1.
/// - Numbers: [`OwnKernelSettings::values`].
#[derive(Clone, Debug, PartialEq)]
pub struct OwnKernel {
    settings: OwnKernelSettings,
    block_threads: u32,
    params: Vec<(String, OwnParam)>,
}

impl OwnKernel {
    /// Reads the parameters of a kernel.
    ///
    /// # Safety
    /// The kernel reads and writes only memory behind its parameters: of an input, the elements below
    /// the header's total along its axis; of a column, those of the rows. Spans in the inputs lie
    /// within the inputs. It has a thread for each unit of [`OwnKernelSettings::threads`], and some
    /// more. A batch's part of a structure that was rejected is zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a text without such a kernel, for one
    /// that writes no column or whose launch bound cannot be read, for a parameter that stands for
    /// nothing or is of another type, and for a value or a column that is of no parameter. The
    /// message names the file.
    pub unsafe fn new(settings: OwnKernelSettings) -> Result<Self> {
        let read = read_kernel(&settings).within(|| settings.file.clone());
        let (block_threads, params) = read?;
        Ok(OwnKernel {
            settings,
            block_threads,
            params,
        })
    }

    /// The name of its function, and of its file.
    pub fn name(&self) -> String {
        format!("{} of {}", self.settings.entry, self.settings.file)
    }

    /// Its settings.
    pub fn settings(&self) -> &OwnKernelSettings {
        &self.settings
    }

    /// The annotations that it reads.
    pub fn channels(&self) -> impl Iterator<Item = &str> {
        self.params.iter().filter_map(|(_, param)| match param {
            OwnParam::Channel(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether it reads the atoms, whose tags hold radii.
    pub(super) fn reads_atoms(&self) -> bool {
        self.params.iter().any(|(name, _)| name == "atoms")
    }

    /// The column of a parameter.
    fn column(&self, name: &str) -> OwnColumn {
        let column = self.settings.columns.get(name).cloned();
        column.unwrap_or_else(|| OwnColumn {
            table: self.settings.threads.table(),
            unit: String::new(),
            about: String::new(),
        })
    }

    /// The columns that it writes.
    pub fn columns(&self) -> impl Iterator<Item = ColumnDecl> {
        let outputs = self.params.iter().filter_map(|(name, param)| match param {
            OwnParam::Reals => Some((name, ColumnKind::Real)),
            OwnParam::Counts => Some((name, ColumnKind::Count)),
            _ => None,
        });
        outputs.map(|(name, kind)| {
            let OwnColumn { table, unit, about } = self.column(name);
            let about = if about.is_empty() {
                format!("Computed by the kernel {}.", self.name())
            } else {
                about
            };
            let column =
                ColumnDecl::residue(name, kind, interned_unit(&unit), about).in_table(table);
            // Values have no known bounds.
            let null = if kind.is_real() {
                0.0
            } else {
                f64::from(NULL_COUNT)
            };
            column.null_number(null)
        })
    }

    /// Records the launch of the user's kernel, with the inputs that it names and results that are
    /// null where it writes nothing.
    pub(super) fn record(&self, r: &mut FeatureRecorder<'_>) {
        let mut kernel = Kernel::new(&*self.settings.entry).block(self.block_threads);
        let mut args = Vec::with_capacity(self.params.len());
        for (name, param) in &self.params {
            let buffer = |dtype, access| ParamKind::Buffer { dtype, access };
            let table = self.column(name).table;
            let (kind, arg) = match param {
                OwnParam::Input(input) => {
                    let InputBuffer { name, arg, dtype } = INPUTS[*input];
                    if name == "structures" {
                        // A kernel may read both grids in the spans. That of atoms is uploaded with them; that of
                        // residues is zeros until this launch computes it.
                        r.residue_grids();
                    }
                    (buffer(dtype, Access::Read), arg(r))
                }
                OwnParam::Channel(channel) => (
                    buffer(DType::F32, Access::Read),
                    r.own_channel(channel).into(),
                ),
                // Not `Access::Write`: what the kernel leaves out keeps the null that was there before.
                OwnParam::Reals => {
                    let results = r.null_results::<f32>(table, name);
                    (buffer(DType::F32, Access::ReadWrite), results.into())
                }
                OwnParam::Counts => {
                    let results = r.null_results::<i32>(table, name);
                    (buffer(DType::I32, Access::ReadWrite), results.into())
                }
                OwnParam::Value(scalar) => {
                    let dtype = scalar.dtype;
                    (ParamKind::Scalar { dtype }, Arg::Scalar(*scalar))
                }
            };
            kernel = kernel.param(name, kind);
            args.push(arg);
        }
        r.launch_own(OwnLaunch {
            kernel,
            image: self.image(),
            axis: self.settings.threads.axis(),
            args,
        });
    }

    /// The user's text as an image, with the header that describes the inputs. NVRTC compiles it,
    /// as it comes with no binary, with contraction, as no twin has to agree with it.
    pub(super) fn image(&self) -> Arc<Image> {
        let OwnKernelSettings { file, text, .. } = &self.settings;
        Arc::new(Image {
            name: file.clone(),
            binary: None,
            source: Some(CudaSource {
                file: file.clone(),
                text: text.to_string(),
                headers: vec![(OWN_KERNEL_HEADER.to_owned(), HEADER_TEXT.to_owned())],
                options: vec!["--std=c++17".to_owned()],
            }),
        })
    }
}

/// A unit as a static text, as [`ColumnDecl`] has it. It is never freed; runs have few kernels, so
/// few texts are kept.
fn interned_unit(text: &str) -> &'static str {
    static UNITS: parking_lot::Mutex<Vec<&'static str>> = parking_lot::Mutex::new(Vec::new());
    let mut units = UNITS.lock();
    if let Some(same) = units.iter().find(|unit| **unit == text) {
        return same;
    }
    let unit: &'static str = text.to_owned().leak();
    units.push(unit);
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(params: &str) -> OwnKernelSettings {
        OwnKernelSettings {
            file: "own.cu".to_owned(),
            text: format!("extern \"C\" __global__ void own({params}) {{}}").into(),
            entry: "own".to_owned(),
            ..OwnKernelSettings::default()
        }
    }

    fn new_kernel(settings: OwnKernelSettings) -> Result<OwnKernel> {
        // SAFETY: it never runs.
        unsafe { OwnKernel::new(settings) }
    }

    #[test]
    fn parameters_say_by_their_names_what_they_take() {
        let mut all = settings(
            "const unsigned* header, const Atom* ca, const float* channel_score, float radius, \
             float* moment, int* near",
        );
        all.values.insert("radius".to_owned(), 8.5);
        let column = OwnColumn {
            table: TableName::Chains,
            unit: "A".to_owned(),
            about: "A length.".to_owned(),
        };
        all.columns.insert("near".to_owned(), column);
        let kernel = new_kernel(all).unwrap();
        assert_eq!(kernel.channels().collect::<Vec<_>>(), ["score"]);
        let columns: Vec<_> = kernel.columns().collect();
        let facts = columns.iter().map(|column| {
            (
                &*column.name,
                column.table,
                column.kind,
                column.unit,
                &*column.about,
            )
        });
        let expected = [
            (
                "moment",
                TableName::Residues,
                ColumnKind::Real,
                "",
                "Computed by the kernel own of own.cu.",
            ),
            (
                "near",
                TableName::Chains,
                ColumnKind::Count,
                "A",
                "A length.",
            ),
        ];
        assert_eq!(facts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        let refused = |params: &str, change: fn(&mut OwnKernelSettings)| {
            let mut settings = settings(params);
            change(&mut settings);
            new_kernel(settings).unwrap_err().to_string()
        };
        let unchanged = |_: &mut OwnKernelSettings| {};
        for (params, expected) in [
            ("const float* water, float* y", "parameter water"),
            ("const float* ca, float* y", "ca: .. const Atom*"),
            ("const Atom* b, float* y", "b: .. const float*"),
            ("const int* channel_x, float* y", "annotations"),
            ("double* y", "y: .. float* or int*"),
            ("float radius, float* y", "values = { radius = 1.0 }"),
            ("const unsigned* header", "kernel own .. column"),
        ] {
            let error = refused(params, unchanged);
            assert!(error.starts_with("own.cu: "), "{error}");
            let has = |part: &str| error.contains(part);
            assert!(
                expected.split(" .. ").all(has),
                "{error:?} lacks {expected:?}"
            );
        }
        let error = refused("float* y", |settings| settings.entry = "other".to_owned());
        assert!(
            error.contains("other") && error.contains("fix: its kernels are own"),
            "{error}"
        );
        let error = refused("float* y", |settings| {
            settings.values.insert("n".to_owned(), 1.0);
        });
        assert!(error.contains("named n"), "{error}");
        let error = refused("unsigned n, float* y", |settings| {
            settings.values.insert("n".to_owned(), -1.0);
        });
        assert!(error.contains("-1") && error.contains("u32"), "{error}");
        let error = refused("unsigned long long n, float* y", |settings| {
            settings
                .values
                .insert("n".to_owned(), 18_446_744_073_709_551_616.0);
        });
        assert!(error.contains("18446744073709552000"), "{error}");
        let error = refused("float n, float* y", |settings| {
            settings.values.insert("n".to_owned(), 1e300);
        });
        assert!(error.contains("f32"), "{error}");
        let error = refused("float* y", |settings| {
            let column = OwnColumn {
                table: TableName::Residues,
                unit: String::new(),
                about: String::new(),
            };
            settings.columns.insert("z".to_owned(), column);
        });
        assert!(error.contains("named z"), "{error}");
    }

    #[test]
    fn members_are_written_whatever_else_is_asked_for() {
        use super::super::{FeatureConfig, FeatureName};
        use crate::backend::DeviceInfo;
        use crate::record::Recorder;
        let kernel = new_kernel(settings("const unsigned* members, float* y")).unwrap();
        let config = FeatureConfig {
            features: vec![FeatureName::Torsions],
            own_kernels: vec![kernel],
            ..FeatureConfig::default()
        };
        let mut recorder = Recorder::new(&[1; 8]);
        let device = DeviceInfo::new("cpu", "made up");
        let buffers = config.record(&mut recorder, &device, |kernel, _, _| kernel);
        let inputs = buffers.unwrap().inputs;
        // The packer writes them with the chains.
        assert!(inputs.members.is_some() && inputs.chains.is_some());
    }
}
