//! Element types that some devices lack.

use super::driver::OR_CPU;
use crate::backend::DeviceInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Kernel, ParamKind};

/// Refuses a kernel with an element type that the device lacks.
///
/// # Errors
/// [`ErrorKind::Unavailable`], with the kernel, the parameter and the device.
pub(super) fn check(kernel: &Kernel, device: &DeviceInfo) -> Result<()> {
    let Some((major, minor)) = device.compute_capability else {
        return Ok(());
    };
    for param in &kernel.params {
        let mut dtypes = match &param.kind {
            ParamKind::Buffer { dtype, .. } | ParamKind::Scalar { dtype } => vec![*dtype],
            ParamKind::Struct { pointers, .. } => {
                pointers.iter().map(|pointer| pointer.dtype).collect()
            }
        };
        dtypes.retain(|dtype| (major, minor) < dtype.capability_min().unwrap_or_default());
        if let Some(dtype) = dtypes.first() {
            let least = dtype.capability_min().unwrap_or_default();
            let message = format!(
                "kernel {}: its parameter {} is of {dtype:?}, which cards have from compute \
                 capability {}.{} on, and {} has {major}.{minor}",
                kernel.name, param.name, least.0, least.1, device.name
            );
            return Err(Error::new(ErrorKind::Unavailable, message)
                .fix(format!("keep it in F32, use a newer card, {OR_CPU}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Element;

    fn outcome<T: Element>(capability: Option<(u32, u32)>) -> Result<()> {
        let kernel = Kernel::new("narrow")
            .reads::<f32>("wide")
            .writes::<T>("narrow");
        let device = DeviceInfo {
            compute_capability: capability,
            ..DeviceInfo::new("cuda", "an old card")
        };
        check(&kernel, &device)
    }

    #[test]
    fn a_type_that_the_card_lacks_is_refused_by_the_kernel_s_and_the_parameter_s_name() {
        use half::{bf16, f16};
        assert!(outcome::<f16>(Some((5, 3))).is_ok());
        assert!(outcome::<bf16>(Some((8, 0))).is_ok());
        assert!(outcome::<bf16>(Some((9, 0))).is_ok());
        assert!(outcome::<f64>(Some((5, 0))).is_ok());
        assert!(outcome::<bf16>(None).is_ok());
        let cases = [
            (outcome::<f16>(Some((5, 2))), "F16", "5.3", "5.2"),
            (outcome::<bf16>(Some((7, 5))), "BF16", "8.0", "7.5"),
        ];
        for (outcome, dtype, least, has) in cases {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            for part in ["kernel narrow: its parameter narrow", dtype, least, has] {
                assert!(error.message().contains(part), "{error} lacks {part}");
            }
            assert!(error.fix_text().unwrap().contains("F32"));
        }
    }
}
