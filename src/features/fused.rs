//! A recording's launches as one: the fused kernel takes them as a program, and
//! each of its blocks runs all of them for one structure.

use super::kernels::{self, BLOCK, kernel};
use super::layout::STRUCTURES;
use super::{b_factor, ca_geometry, centrality, cluster, contact_number, contact_order, dssp};
use super::{cpu, half_sphere, interface, protrusion, radius_of_gyration, rsa, sasa, smooth};
use super::{summary, torsions, weighted_contact_number};
use crate::error::{Error, Result};
use crate::record::{Access, Arg, DType, Kernel, Param, ParamKind, Recorder, Scalar};
use crate::workload::DeviceInfo;
use std::sync::OnceLock;

/// Whether the launches of a batch are fused into one, in which each block takes
/// one structure through all of them. Results are the same to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusion {
    /// Where that is faster by measurement: on a GPU, in buckets for a peptide, if
    /// few of the launches are long.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always.
    On,
}

/// Buckets of more residues than this are faster as launches of their own, which
/// share a structure's residues out over the whole card (docs/ARCHITECTURE.md).
const RESIDUES_MAX: u32 = 16;
/// Launches that look at all atoms around each, and take longest. Each loses to one
/// multiprocessor what so many others win.
const LONG: [&str; 5] = [
    "contact_order",
    "nearest_chain",
    "protrusion",
    "sasa",
    "sasa_delta",
];
const OTHERS_A_LONG: usize = 10;
/// The oldest cards that have shared memory enough.
const CAPABILITY_MIN: (u32, u32) = (8, 0);

impl Fusion {
    /// All of them, by the names that a config gives them.
    pub const NAMES: [(&'static str, Fusion); 3] = [
        ("auto", Fusion::Auto),
        ("off", Fusion::Off),
        ("on", Fusion::On),
    ];

    /// Whether to fuse a bucket's launches on this device.
    pub(super) fn applies<'a>(
        self,
        residues: u32,
        launches: impl Iterator<Item = &'a Kernel>,
        device: &DeviceInfo,
    ) -> bool {
        let is_worth_it = || {
            let (long, others): (Vec<_>, Vec<_>) =
                launches.partition(|kernel| LONG.contains(&kernel.name.as_str()));
            others.len() >= OTHERS_A_LONG * long.len()
        };
        match self {
            Fusion::Off => false,
            Fusion::On => true,
            Fusion::Auto => {
                device.compute_capability >= Some(CAPABILITY_MIN)
                    && residues <= RESIDUES_MAX
                    && is_worth_it()
            }
        }
    }
}

/// What can be a step of a program, in the order of `kernels/fused.cu`.
pub(super) fn steps() -> &'static [Kernel] {
    static STEPS: OnceLock<Vec<Kernel>> = OnceLock::new();
    STEPS.get_or_init(|| {
        vec![
            dssp::amide_hydrogens(),
            kernels::atom_residue(),
            b_factor::b_factors(),
            dssp::bridge_partners(),
            ca_geometry::ca_geometry(),
            kernels::cell_count(),
            kernels::cell_fill(),
            kernels::cell_scan(),
            radius_of_gyration::chain_radius_of_gyration(),
            interface::chain_range(),
            summary::class_fractions(),
            cluster::cluster_join(),
            cluster::cluster_number(),
            cluster::cluster_start(),
            weighted_contact_number::coincident_pairs(),
            centrality::contact_list(),
            contact_number::contact_number(),
            contact_order::contact_order(),
            centrality::eigenvector(),
            half_sphere::half_sphere_exposure(),
            half_sphere::half_sphere_normal_a(),
            half_sphere::half_sphere_normal_b(),
            dssp::hydrogen_bonds(),
            dssp::ladders(),
            interface::nearest_chain(),
            b_factor::plddt(),
            protrusion::protrusion(),
            radius_of_gyration::radius_of_gyration(),
            contact_order::relative_contact_order(),
            rsa::rsa(),
            sasa::kernel_of(false),
            sasa::kernel_of(true),
            dssp::secondary_structure(),
            smooth::smooth(),
            summary::sum_of_rows(),
            torsions::torsions(),
            weighted_contact_number::weighted_contact_number(),
        ]
    })
}

/// Values that the kernel takes, and the longest program.
const VALUES: usize = 112;
const PROGRAM_BYTES_MAX: usize = 2048;
/// What a warp needs for areas.
const WORKSPACE_BYTES: u32 = 6656;

/// A value that steps are called with: a buffer, and how they use it, or a number.
struct Value {
    arg: Arg,
    kind: ParamKind,
}

/// Launches as a program: for each its number, and for each of its arguments the
/// place of the value.
#[derive(Default)]
struct Program {
    bytes: Vec<u8>,
    values: Vec<Value>,
}

impl Program {
    fn add(&mut self, kernel: &Kernel, args: &[Arg]) {
        let number = steps().iter().position(|step| step.name == kernel.name);
        let number = number.expect("every kernel is a step");
        self.bytes.push(number as u8);
        for (param, &arg) in kernel.params.iter().zip(args) {
            let place = self.place(arg, param.kind);
            self.bytes.push(place as u8);
        }
    }

    fn place(&mut self, arg: Arg, kind: ParamKind) -> usize {
        let known = self.values.iter().position(|value| value.arg == arg);
        let place = known.unwrap_or(self.values.len());
        if known.is_none() {
            self.values.push(Value { arg, kind });
        }
        if let ParamKind::Buffer { access: first, .. } = &mut self.values[place].kind
            && let ParamKind::Buffer { access, .. } = kind
            && *first == Access::Read
            && access.writes()
        {
            // What the first step writes holds nothing before.
            *first = Access::ReadWrite;
        }
        place
    }
}

/// Records launches, each a kernel and its arguments, as one.
///
/// # Errors
/// If they need more values than the kernel takes.
pub(super) fn record<'a>(
    recorder: &mut Recorder,
    [header, structures]: [Arg; 2],
    launches: impl Iterator<Item = (&'a Kernel, &'a [Arg])>,
) -> Result<()> {
    let mut program = Program::default();
    launches.for_each(|(kernel, args)| program.add(kernel, args));
    let (bytes, values) = (&program.bytes, &program.values);
    if values.len() > VALUES || bytes.len() > PROGRAM_BYTES_MAX {
        return Err(Error::config(format!(
            "the features need {} values of {VALUES} that the fused kernel takes, and {} bytes of \
             {PROGRAM_BYTES_MAX}",
            values.len(),
            bytes.len()
        ))
        .fix("ask for fewer features at once, or set fusion to off"));
    }

    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    let places = words
        .enumerate()
        .map(|(index, word)| recorder.uniform(&format!("step_word_{index}"), word));
    let first = places.collect::<Vec<_>>().first().copied();

    let mut fused = kernel("fused")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .scalar::<u32>("program")
        .scalar::<u32>("length")
        .twin(cpu::fused);
    fused.shared_bytes = BLOCK / 32 * WORKSPACE_BYTES;
    let mut args = vec![header, structures];
    args.push((first.unwrap_or_default() as u32).into());
    args.push((bytes.len() as u32).into());
    for index in 0..VALUES {
        let (kind, arg) = match values.get(index) {
            Some(Value { arg, kind }) => match arg {
                Arg::Buffer(_) => (*kind, *arg),
                Arg::Scalar(scalar) => word(scalar.bits),
            },
            None => word(0),
        };
        let name = format!("value_{index}");
        fused.params.push(Param { name, kind });
        args.push(arg);
    }
    recorder.launch(&fused, recorder.capacity(STRUCTURES), &args);
    Ok(())
}

/// A number as a parameter of 8 bytes.
fn word(bits: u64) -> (ParamKind, Arg) {
    let dtype = DType::U64;
    (
        ParamKind::Scalar { dtype },
        Arg::Scalar(Scalar { dtype, bits }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_as_in_the_kernel() {
        let source = include_str!("../../kernels/fused.cu");
        let list = source.split("#define STEPS(STEP)").nth(1).unwrap();
        let list = list.split("\n\n").next().unwrap();
        let names: Vec<&str> = list
            .split("STEP(")
            .skip(1)
            .map(|step| step.split(')').next().unwrap())
            .collect();
        let ours: Vec<&str> = steps().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(ours, names);
    }

    #[test]
    fn what_is_written_first_needs_nothing_before() {
        let kind = |access| ParamKind::Buffer {
            dtype: DType::U32,
            access,
        };
        let mut recorder = Recorder::new(&[1; 6]);
        let mut buffer = |name| {
            let unit = crate::record::Unit::PerBatch { elements: 1 };
            Arg::from(recorder.device_buffer::<u32>(name, unit))
        };
        let (made, given) = (buffer("made"), buffer("given"));
        let mut program = Program::default();
        assert_eq!(program.place(made, kind(Access::Write)), 0);
        assert_eq!(program.place(given, kind(Access::Read)), 1);
        assert_eq!(program.place(made, kind(Access::Read)), 0);
        assert_eq!(program.place(given, kind(Access::Write)), 1);
        let kinds: Vec<ParamKind> = program.values.iter().map(|value| value.kind).collect();
        assert_eq!(kinds, [kind(Access::Write), kind(Access::ReadWrite)]);
    }
}
