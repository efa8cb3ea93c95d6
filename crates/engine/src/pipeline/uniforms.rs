//! [`Uniforms`]: new values of a recording's uniforms, which apply together.

use crate::error::{Error, Result};
use crate::record::{Scalar, UniformDecl};

/// New values of uniforms, which apply together: see [`Engine::set_uniforms`](super::Engine::set_uniforms).
pub struct Uniforms<'a> {
    declared: &'a [UniformDecl],
    changes: Vec<Change>,
}

/// The index of a uniform, and the bits of its new value.
pub(crate) type Change = (usize, u32);

impl Uniforms<'_> {
    /// Sets a uniform. The last value counts where one is set twice.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an unknown name, a constant, or another type
    /// than declared.
    pub fn set(&mut self, name: &str, value: impl Into<Scalar>) -> Result<()> {
        let value = value.into();
        let within = |message: String| Error::usage(message).within(format!("uniform {name}"));
        let of_name = |uniform: &UniformDecl| uniform.name == name && !uniform.is_constant;
        let Some(index) = self.declared.iter().position(of_name) else {
            let names = self.declared.iter().filter(|uniform| !uniform.is_constant);
            let names: Vec<&str> = names.map(|uniform| uniform.name.as_str()).collect();
            let error = Error::usage(format!("no uniform is named {name}"));
            return Err(if names.is_empty() {
                error.fix("the workload has none")
            } else {
                error.fix(format!("there are: {}", names.join(", ")))
            });
        };
        let (takes, got) = (self.declared[index].dtype, value.dtype);
        if takes != got {
            return Err(within(format!("the type is {takes:?}, not {got:?}")));
        }
        let bits = u32::try_from(value.bits)
            .map_err(|_| within(format!("it takes 32 bits, and got {:#x}", value.bits)))?;
        self.changes.push((index, bits));
        Ok(())
    }
}

/// The changes that `set` asks for. If it fails there are none.
pub(crate) fn changes(
    declared: &[UniformDecl],
    set: impl FnOnce(&mut Uniforms<'_>) -> Result<()>,
) -> Result<Vec<Change>> {
    let mut uniforms = Uniforms {
        declared,
        changes: Vec::new(),
    };
    set(&mut uniforms)?;
    Ok(uniforms.changes)
}

/// Makes `changes` to `values`, which are the bits of all uniforms.
pub(crate) fn apply(changes: &[Change], values: &mut [u32]) {
    for (index, bits) in changes {
        values[*index] = *bits;
    }
}
