//! Definitions that several files check features against, written out naively.

use tapeloop::structure::Structure;

/// The squared distance of two positions, in (0.001 A)^2.
pub(crate) fn distance2(a: [i32; 3], b: [i32; 3]) -> i64 {
    (0..3)
        .map(|axis| (i64::from(a[axis]) - i64::from(b[axis])).pow(2))
        .sum()
}

pub(crate) fn c_alphas(s: &Structure) -> Vec<Option<[i32; 3]>> {
    s.residues.iter().map(|r| s.position(r.ca)).collect()
}

/// The weighted contact number of each residue, and how many pairs of C-alphas are in one place.
pub(crate) fn wcn(s: &Structure) -> (Vec<f64>, i32) {
    let ca = c_alphas(s);
    let mut coincident = 0;
    let mut sum = |a: [i32; 3]| -> f64 {
        let all = ca.iter().flatten().map(|b| distance2(a, *b));
        coincident += all.clone().filter(|d2| *d2 == 0).count() as i32 - 1;
        all.filter(|d2| *d2 > 0).map(|d2| 1e6 / d2 as f64).sum()
    };
    let sums = ca.iter().map(|a| a.map_or(f64::NAN, &mut sum)).collect();
    (sums, coincident / 2)
}

/// Fails where a value is neither within the relative tolerance nor NaN as expected.
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        let close = error <= tolerance * expected.abs().max(1e-3);
        let null = found.is_nan() && expected.is_nan();
        assert!(close || null, "{what} of {i}: {found}, expected {expected}");
    }
}
