//! Twin of `kernels/rsa.cu`.

use super::super::layout::{CHAINS, ChainSpan, ResidueSpan};
use super::super::rsa::{WINDOW, area_max};
use crate::record::TwinLaunch;
use rayon::prelude::*;

/// Areas relative to their maximum, and their means along the chain.
pub(in super::super) fn rsa(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let residues: &[ResidueSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let chains: &[ChainSpan] = bytemuck::cast_slice(launch.read::<u32>());
    let members: &[u32] = launch.read();
    let areas: &[[f32; 3]] = bytemuck::cast_slice(launch.read::<f32>());
    let out: &mut [[f32; 2]] = bytemuck::cast_slice_mut(launch.write::<f32>());

    let relative = |&member: &u32| {
        let (residue, area) = (&residues[member as usize], areas[member as usize][0]);
        match area_max(residue.aa) {
            Some(max) if residue.is(ResidueSpan::STANDARD) && !area.is_nan() => area / max,
            _ => f32::NAN,
        }
    };
    let of_chain = |chain: &ChainSpan| -> Vec<[f32; 2]> {
        let values: Vec<f32> = chain.members(members).iter().map(relative).collect();
        let means = (0..values.len()).map(|at| mean_around(&values, at));
        values
            .iter()
            .copied()
            .zip(means)
            .map(<[f32; 2]>::from)
            .collect()
    };
    let chains = &chains[..header[CHAINS] as usize];
    let values: Vec<_> = chains.par_iter().map(of_chain).collect();
    // Chains may interleave, so their results are put in place by one thread.
    for (chain, values) in chains.iter().zip(values) {
        for (&member, value) in chain.members(members).iter().zip(values) {
            out[member as usize] = value;
        }
    }
}

/// The mean of the values that are there in the window around `at`, of a chain
/// that is reflected at its ends as often as it takes.
fn mean_around(values: &[f32], at: usize) -> f32 {
    let last = values.len() - 1;
    let (mut sum, mut count) = (0f64, 0f64);
    for place in at as i64 - i64::from(WINDOW / 2)..=at as i64 + i64::from(WINDOW / 2) {
        let place = match last {
            0 => 0,
            _ => place.rem_euclid(2 * last as i64) as usize,
        };
        let value = values[place.min(2 * last - place)];
        if !value.is_nan() {
            sum += f64::from(value);
            count += 1.0;
        }
    }
    match count {
        0.0 => f32::NAN,
        _ => (sum / count) as f32,
    }
}
