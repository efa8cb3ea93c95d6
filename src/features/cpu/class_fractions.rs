//! Twin of `kernels/class_fractions.cu`.

use super::rows::Blocks;
use crate::record::TwinLaunch;

/// The shares of helix, strand and coil among the rows that have a secondary
/// structure.
pub(in super::super) fn class_fractions(launch: &mut TwinLaunch<'_>) {
    Blocks::<i32>::of(launch).for_each(3, |rows, states, fractions| {
        let mut counts = [0u32; 3];
        for row in rows.iter() {
            let class = usize::try_from(states[2 * row + 1]).ok();
            if let Some(count) = class.and_then(|class| counts.get_mut(class)) {
                *count += 1;
            }
        }
        let all: u32 = counts.iter().sum();
        for (fraction, count) in fractions.iter_mut().zip(counts) {
            *fraction = match all {
                0 => f32::NAN,
                _ => (f64::from(count) / f64::from(all)) as f32,
            };
        }
    });
}
