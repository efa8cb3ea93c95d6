//! Test points on the unit sphere.

/// The golden-section spiral of `count` points, as FreeSASA generates it (`test_points` of
/// `sasa_sr.c`, Mitternacht 2016), in another order: points next to each other in the list are
/// close on the sphere.
pub(super) fn golden_spiral(count: u32) -> Vec<[f32; 3]> {
    let turn = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let step = 2.0 / f64::from(count);
    let (mut longitude, mut z) = (0f64, 1.0 - step / 2.0);
    let mut points = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let radius = (1.0 - z * z).sqrt();
        points.push([longitude.cos() * radius, longitude.sin() * radius, z].map(|v| v as f32));
        z -= step;
        longitude += turn;
    }
    cluster(&mut points);
    points
}

/// Sorts points so that every aligned group of a power of two is compact: it cuts off the largest
/// such group along the axis of the greatest extent, and sorts both parts in the same way.
fn cluster(points: &mut [[f32; 3]]) {
    if points.len() < 3 {
        return;
    }
    let extent = |axis: usize| {
        let values = || points.iter().map(|point| point[axis]);
        values().fold(f32::MIN, f32::max) - values().fold(f32::MAX, f32::min)
    };
    let widest = (0..3).max_by(|&a, &b| extent(a).total_cmp(&extent(b)));
    let axis = widest.unwrap_or(0);
    points.sort_by(|a, b| a[axis].total_cmp(&b[axis]));
    let (low, high) = points.split_at_mut(points.len().next_power_of_two() / 2);
    cluster(low);
    cluster(high);
}

#[cfg(test)]
mod tests {
    use super::golden_spiral;

    #[test]
    fn points_lie_on_the_sphere_each_at_its_height() {
        for count in [1, 2, 3, 100, 960, 1024] {
            let mut points = golden_spiral(count);
            points.sort_by(|a, b| b[2].total_cmp(&a[2]));
            assert_eq!(points.len(), count as usize);
            for (index, [x, y, z]) in points.into_iter().enumerate() {
                let height = 1.0 - (2 * index + 1) as f32 / count as f32;
                assert!((z - height).abs() < 1e-6, "{count}: {z}, not {height}");
                assert!((x * x + y * y + z * z - 1.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn sixteen_points_that_stand_together_lie_together() {
        let points = golden_spiral(100);
        for group in points.chunks_exact(16) {
            let sum = |axis: usize| group.iter().map(|point| point[axis]).sum::<f32>();
            let length = (0..3).map(|axis| sum(axis).powi(2)).sum::<f32>().sqrt();
            // For a cap of a sixth of the sphere it would be 0.83.
            assert!(length / 16.0 > 0.7, "{}", length / 16.0);
        }
    }
}
