//! Centrality, clusters and smoothing over the graph of contacts.

use super::*;

fn near(a: Option<[i32; 3]>, b: Option<[i32; 3]>, milli: i64) -> bool {
    a.zip(b)
        .is_some_and(|(a, b)| distance2(a, b) < milli.pow(2))
}

/// Steps of A + I over the residues of a chain, and the residual.
fn power_iteration(ca: &[[i32; 3]]) -> (Vec<f64>, f64) {
    let n = ca.len();
    let joined = |i: usize, j: usize| i != j && near(Some(ca[i]), Some(ca[j]), 8000);
    let image = |v: &[f64]| -> Vec<f64> {
        let row = |i: usize| (0..n).filter(|&j| joined(i, j)).map(|j| v[j]).sum();
        (0..n).map(row).collect()
    };
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut v = vec![1.0 / (n as f64).sqrt(); n];
    for _ in 0..200 {
        let next: Vec<f64> = image(&v).iter().zip(&v).map(|(a, b)| a + b).collect();
        let length = norm(&next);
        v = next.iter().map(|x| x / length).collect();
    }
    let image = image(&v);
    let eigenvalue: f64 = image.iter().zip(&v).map(|(a, b)| a * b).sum();
    let rest: Vec<f64> = image
        .iter()
        .zip(&v)
        .map(|(a, b)| a - eigenvalue * b)
        .collect();
    (v, norm(&rest))
}

#[test]
fn centrality_is_the_eigenvector_after_so_many_steps() {
    let mut structures = made_up();
    // So dense that contacts do not fit a list.
    let mut dense = structure(120, 9);
    for position in &mut dense.xyz {
        *position = position.map(|coordinate| coordinate / 3);
    }
    structures.push(dense);
    // A chain without a C-alpha.
    let mut bare = structure(30, 2);
    for residue in bare
        .residues
        .iter_mut()
        .filter(|residue| residue.chain == 1)
    {
        residue.ca = MISSING;
    }
    structures.push(bare);
    let computed = Computed::of(&[FeatureName::Centrality], &structures);
    let mut most = 0;
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let mut expected = vec![f64::NAN; ca.len()];
        let mut residuals = Vec::new();
        for chain in 0..s.chains.len() {
            let of_chain = |i: &usize| s.residues[*i].chain as usize == chain && ca[*i].is_some();
            let rows: Vec<usize> = (0..ca.len()).filter(of_chain).collect();
            let own: Vec<_> = rows.iter().filter_map(|&i| ca[i]).collect();
            let (vector, residual) = power_iteration(&own);
            residuals.push(if own.is_empty() { f64::NAN } else { residual });
            rows.iter().zip(vector).for_each(|(&i, v)| expected[i] = v);
            let degree = |a: &[i32; 3]| {
                own.iter()
                    .filter(|b| near(Some(*a), Some(**b), 8000))
                    .count()
            };
            most = most.max(own.iter().map(degree).max().unwrap_or(0));
        }
        let found = computed.reals(n, TableName::Residues, "eigenvector");
        assert_close("eigenvector", found, &expected, 1e-4);
        let found = computed.reals(n, TableName::Chains, "eigenvector_residual");
        for (found, expected) in found.iter().zip(residuals) {
            let null = found.is_nan() && expected.is_nan();
            assert!(
                null || (f64::from(*found) - expected).abs() < 1e-6,
                "{found} {expected}"
            );
        }
    }
    assert!(most > 32, "{most} contacts fit a list");
}

fn selecting(select: &[&str]) -> FeatureConfig {
    let mut config = asking_for(&[FeatureName::Cluster]);
    let texts = select.iter().map(|name| (*name).to_owned()).collect();
    config
        .set(
            FeatureName::Cluster,
            "cluster.select",
            &Setting::Texts(texts),
        )
        .unwrap();
    config
}

#[test]
fn clusters_are_connected_components_of_selected_residues() {
    let mut structures = made_up();
    for s in &mut structures {
        for (index, residue) in s.residues.iter_mut().enumerate() {
            let (aa, parent, name) = match index * 7 % 13 {
                0 => (b'H', b"HIS     ", b"HIS     "),
                1 => (b'M', b"MET     ", b"MSE     "),
                2 => (b'C', b"CYS     ", b"CSO     "),
                _ => (b'A', b"ALA     ", b"ALA     "),
            };
            (residue.aa, residue.parent_comp_id, residue.comp_id) = (aa, *parent, *name);
        }
    }
    // A letter, a name of its own, and a parent's.
    let computed = Computed::new(selecting(&["H", "MSE", "CYS"]), &structures);
    let nothing = Computed::new(selecting(&["W"]), &structures);
    let (mut clusters, mut largest) = (0, 0);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let chosen = |i: usize| b"HMC".contains(&s.residues[i].aa) && ca[i].is_some();
        let mut expected = vec![NULL_COUNT; ca.len()];
        let mut count = 0;
        for first in 0..ca.len() {
            if !chosen(first) || expected[first] != NULL_COUNT {
                continue;
            }
            let mut stack = vec![first];
            expected[first] = count;
            let mut size = 0;
            while let Some(i) = stack.pop() {
                size += 1;
                for j in 0..ca.len() {
                    if chosen(j) && expected[j] == NULL_COUNT && near(ca[i], ca[j], 8000) {
                        expected[j] = count;
                        stack.push(j);
                    }
                }
            }
            largest = largest.max(size);
            count += 1;
        }
        assert_eq!(computed.counts(n, TableName::Residues, "cluster"), expected);
        assert_eq!(
            computed.counts(n, TableName::Structures, "clusters"),
            [count]
        );
        let in_chain = |chain: usize| {
            let of_chain = |i: &usize| s.residues[*i].chain as usize == chain;
            let own = (0..ca.len()).filter(of_chain).map(|i| expected[i]);
            let mut own: Vec<i32> = own.filter(|&cluster| cluster != NULL_COUNT).collect();
            own.sort_unstable();
            own.dedup();
            own.len() as i32
        };
        let expected: Vec<i32> = (0..s.chains.len()).map(in_chain).collect();
        assert_eq!(computed.counts(n, TableName::Chains, "clusters"), expected);
        assert_eq!(nothing.counts(n, TableName::Structures, "clusters"), [0]);
        clusters += count;
    }
    assert!(clusters > 15 && largest > 10, "{clusters} {largest}");
}

#[test]
fn clusters_need_a_selection_that_names_residues() {
    let refusal = |config: FeatureConfig| Features::new(config).err().map(|e| e.to_string());
    let message = refusal(selecting(&[])).unwrap();
    assert!(
        message.contains("cluster has nothing to compute"),
        "{message}"
    );
    assert!(message.contains("set cluster.select"), "{message}");
    let message = refusal(selecting(&["H", "his"])).unwrap();
    assert!(message.contains("\"his\""), "{message}");
    assert!(refusal(FeatureConfig::default()).is_none());
    let of_all = FeatureConfig::default().columns(TableName::Residues);
    assert!(of_all.iter().all(|column| column.name != "cluster"));
}

#[test]
fn channels_are_smoothed_over_contacts() {
    let mut structures = made_up();
    for s in &mut structures {
        let values = (0..s.residues.len()).map(|i| match i % 9 {
            4 => f32::NAN,
            _ => (i as f32 * 0.731).sin() * 1e-3,
        });
        s.channels = vec![Channel {
            name: "conservation".to_owned(),
            values: values.collect(),
        }];
    }
    let of_none = structure(50, 77);
    structures.push(of_none);
    for weighted in [false, true] {
        let mut config = asking_for(&[FeatureName::Smooth]);
        config.smooth.channels = vec!["b_ca".to_owned(), "conservation".to_owned()];
        config.smooth.weighted = weighted;
        let computed = Computed::new(config, &structures);
        for (n, s) in structures.iter().enumerate() {
            let ca = c_alphas(s);
            let b = |i: usize| s.b_factor.get(s.residues[i].ca as usize).copied();
            let conservation = |i: usize| s.channels.first().map(|own| own.values[i]);
            let smoothed = |value: &dyn Fn(usize) -> Option<f32>| -> Vec<f64> {
                let mean = |i: usize| {
                    let (mut sum, mut weights) = (0.0, 0.0);
                    for j in (0..ca.len()).filter(|&j| j != i && near(ca[i], ca[j], 10_000)) {
                        let d2 = distance2(ca[i].unwrap(), ca[j].unwrap());
                        let Some(x) = value(j).filter(|x| !x.is_nan()) else {
                            continue;
                        };
                        let weight = if weighted {
                            1.0 / (d2 as f64).sqrt()
                        } else {
                            1.0
                        };
                        if weight.is_finite() {
                            sum += weight * f64::from(x);
                            weights += weight;
                        }
                    }
                    sum / weights
                };
                (0..ca.len()).map(mean).collect()
            };
            let found = computed.reals(n, TableName::Residues, "smooth_b_ca");
            assert_close("smooth_b_ca", found, &smoothed(&b), 1e-6);
            let found = computed.reals(n, TableName::Residues, "smooth_conservation");
            // Sums of both signs may come near zero.
            for (found, expected) in found.iter().zip(smoothed(&conservation)) {
                let null = found.is_nan() && expected.is_nan();
                assert!(
                    null || (f64::from(*found) - expected).abs() < 1e-9,
                    "{found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_channel_that_does_not_fit_its_structure_is_refused() {
    let mut s = structure(20, 1);
    s.channels = vec![Channel {
        name: "conservation".to_owned(),
        values: vec![1.0; 19],
    }];
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(asking_for(&[FeatureName::Smooth])).unwrap();
    let config = EngineConfig::new(Features::capacity(64));
    let mut engine = Engine::new(workload, &[backend], pool, &config).unwrap();
    let outcome = tables::outcomes(&mut engine, std::iter::once(&s)).remove(0);
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("conservation has 19 values for 20 residues"),
        "{message}"
    );
}
