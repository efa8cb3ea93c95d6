//! The arguments of a kernel of the user's own, which follow from the names and types of its
//! parameters.

use super::{OwnKernel, OwnKernelSettings};
use crate::error::{Context, Error, Result};
use crate::features::recorder::FeatureRecorder;
use crate::record::{Arg, DType, Scalar};
use half::{bf16, f16};
use std::collections::BTreeMap;
use tapeloop_signature::{CudaType, Declarations, NumberType, Parameter, PointerAccess};

/// The names of parameters that take an annotation of the residues begin with this.
const CHANNEL: &str = "channel_";

/// The argument that a parameter gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnParam {
    /// An index into [`INPUTS`].
    Input(usize),
    Channel(String),
    Reals,
    Counts,
    Value(Scalar),
}

/// An input by the name of its parameter.
pub(super) struct InputBuffer {
    pub(super) name: &'static str,
    pub(super) arg: fn(&mut FeatureRecorder<'_>) -> Arg,
    pub(super) dtype: DType,
}

macro_rules! inputs {
    ($($name:ident: $element:ty;)*) => {
        pub(super) const INPUTS: &[InputBuffer] = &[$(InputBuffer {
            name: stringify!($name),
            arg: |recorder| recorder.$name().into(),
            dtype: <$element as crate::record::Element>::DTYPE,
        }),*];

        impl OwnKernel {
            /// The names of the inputs.
            pub const INPUTS: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}
inputs! {
    header: u32;
    structures: super::super::layout::StructureSpan;
    residues: super::super::layout::ResidueSpan;
    chains: super::super::layout::ChainSpan;
    members: u32;
    atoms: super::super::layout::Atom;
    ca: super::super::layout::Atom;
    cb: super::super::layout::Atom;
    backbone: super::super::layout::Backbone;
    side_chains: super::super::layout::SideChain;
    b: f32;
    atom_b: f32;
    sequence: i32;
    row_numbers: i32;
}

/// The threads of a block, 128 without a launch bound (docs/config/kernels.md), and what the
/// parameters stand for.
///
/// # Errors
/// Those of [`OwnKernel::new`], without the name of the file.
pub(super) fn read_kernel(settings: &OwnKernelSettings) -> Result<(u32, Vec<(String, OwnParam)>)> {
    let OwnKernelSettings {
        text,
        entry,
        values,
        columns,
        ..
    } = settings;
    let kernels = Declarations::parse(text).kernels();
    let kernels = kernels.map_err(|error| Error::config(error.to_string()))?;
    let Some(kernel) = kernels.iter().find(|kernel| kernel.name == *entry) else {
        let error = Error::config(format!("it has no kernel named {entry}"));
        let names: Vec<&str> = kernels.iter().map(|kernel| &*kernel.name).collect();
        return Err(if names.is_empty() {
            error.fix("declare it as extern \"C\" __global__ void")
        } else {
            error.fix(format!("its kernels are {}", names.join(", ")))
        });
    };
    let mut params = Vec::with_capacity(kernel.parameters.len());
    for parameter in &kernel.parameters {
        let place = || format!("kernel {entry}, parameter {}", parameter.name);
        let param = read_param(parameter, values).within(place)?;
        params.push((parameter.name.clone(), param));
    }
    let has = |name: &str, wanted: fn(&OwnParam) -> bool| {
        params
            .iter()
            .any(|(param_name, param)| param_name == name && wanted(param))
    };
    let is_column = |param: &OwnParam| matches!(param, OwnParam::Reals | OwnParam::Counts);
    if let Some(name) = values
        .keys()
        .find(|name| !has(name, |param| matches!(param, OwnParam::Value(_))))
    {
        return Err(Error::config(format!(
            "kernel {entry} has no number named {name}"
        )));
    }
    if let Some(name) = columns.keys().find(|name| !has(name, is_column)) {
        return Err(
            Error::config(format!("kernel {entry} writes no column named {name}"))
                .fix("name a parameter that is float* or int*"),
        );
    }
    if !params.iter().any(|(_, param)| is_column(param)) {
        return Err(Error::config(format!("kernel {entry} writes no column"))
            .fix("give it a parameter that is float* or int*"));
    }
    if let Some(line) = kernel.unread_bound {
        let message = format!("the launch bound of kernel {entry} is no product of numbers");
        let error = Error::config(message).within(format!("line {line}"));
        return Err(error.fix("write the number, or a macro or constant of this text"));
    }
    Ok((kernel.block_threads.unwrap_or(128), params))
}

/// What a parameter of the user's kernel stands for, by its type and its name. A pointer to const
/// is an input or an annotation, any other a column, and a number has its value in the config.
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if it stands for nothing.
fn read_param(parameter: &Parameter, values: &BTreeMap<String, f64>) -> Result<OwnParam> {
    let Parameter {
        name,
        element,
        pointer,
        ..
    } = parameter;
    match (pointer, element) {
        (None, CudaType::Number(number)) => {
            let Some(value) = values.get(name) else {
                return Err(Error::config("it is a number without a value")
                    .fix(format!("set values = {{ {name} = 1.0 }}")));
            };
            number_of(*number, *value).map(OwnParam::Value)
        }
        (None, CudaType::Struct(_)) => Err(Error::config("structs cannot be passed")),
        (Some(PointerAccess::Read), element) => {
            if let Some(channel) = name
                .strip_prefix(CHANNEL)
                .filter(|channel| !channel.is_empty())
            {
                return match element {
                    CudaType::Number(NumberType::F32) => Ok(OwnParam::Channel(channel.to_owned())),
                    _ => Err(Error::config("annotations are const float*")),
                };
            }
            let input = INPUTS.iter().position(|input| input.name == name);
            let Some(input) = input else {
                let inputs = OwnKernel::INPUTS.join(", ");
                let fix = format!("the inputs are {inputs}, and {CHANNEL}NAME for annotations");
                return Err(Error::config("there is no such input").fix(fix));
            };
            let matches = match (element, INPUTS[input].dtype) {
                (CudaType::Number(number), dtype) => DType::from(*number) == dtype,
                (CudaType::Struct(name), DType::Struct(named)) => named.name() == *name,
                (CudaType::Struct(_), _) => false,
            };
            if matches {
                Ok(OwnParam::Input(input))
            } else {
                let takes = text_of(INPUTS[input].dtype);
                Err(Error::config(format!("the input is const {takes}*")))
            }
        }
        (Some(_), CudaType::Number(NumberType::F32)) => Ok(OwnParam::Reals),
        (Some(_), CudaType::Number(NumberType::I32)) => Ok(OwnParam::Counts),
        (Some(_), _) => Err(Error::config("columns are float* or int*")),
    }
}

/// The C++ name of a type, for messages.
fn text_of(dtype: DType) -> String {
    match dtype {
        DType::U32 => "unsigned".to_owned(),
        DType::I32 => "int".to_owned(),
        DType::F32 => "float".to_owned(),
        DType::Struct(named) => named.name(),
        other => format!("{other:?}"),
    }
}

/// A number as a parameter of this type takes it; reals are rounded.
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if it is no value of the type, or beyond it.
fn number_of(number: NumberType, value: f64) -> Result<Scalar> {
    macro_rules! integer {
        ($type:ty) => {{
            let integer = value as $type;
            // No f64 equals the largest integer of 64 bits, and the cast clamps larger values to
            // it.
            let is_beyond = <$type>::BITS == 64 && integer == <$type>::MAX;
            if integer as f64 != value || is_beyond {
                let name = stringify!($type);
                return Err(Error::config(format!("{value} is not a {name}")));
            }
            Scalar::from(integer)
        }};
    }
    macro_rules! real {
        ($type:ty, $narrow:expr) => {{
            let narrow: $type = $narrow;
            if narrow.is_infinite() && value.is_finite() {
                return Err(Error::config(format!(
                    "{value} is beyond {}",
                    stringify!($type)
                )));
            }
            Scalar::from(narrow)
        }};
    }
    Ok(match number {
        NumberType::U8 => integer!(u8),
        NumberType::I8 => integer!(i8),
        NumberType::U16 => integer!(u16),
        NumberType::I16 => integer!(i16),
        NumberType::U32 => integer!(u32),
        NumberType::I32 => integer!(i32),
        NumberType::U64 => integer!(u64),
        NumberType::I64 => integer!(i64),
        NumberType::F16 => real!(f16, f16::from_f64(value)),
        NumberType::BF16 => real!(bf16, bf16::from_f64(value)),
        NumberType::F32 => real!(f32, value as f32),
        NumberType::F64 => Scalar::from(value),
    })
}
