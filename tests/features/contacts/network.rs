//! Centrality, clusters and smoothing over the graph of contacts.

use super::*;

fn near(a: Option<[i32; 3]>, b: Option<[i32; 3]>, milli: i64) -> bool {
    a.zip(b)
        .is_some_and(|(a, b)| distance2(a, b) < milli.pow(2))
}

/// The contact matrix of a chain's C-alphas.
fn contact_matrix(ca: &[[i32; 3]]) -> Vec<Vec<f64>> {
    let joined = |i: usize, j: usize| i != j && near(Some(ca[i]), Some(ca[j]), 8000);
    let row = |i: usize| -> Vec<f64> {
        let joins = |j| f64::from(u8::from(joined(i, j)));
        (0..ca.len()).map(joins).collect()
    };
    (0..ca.len()).map(row).collect()
}

/// The eigenvalues of a symmetric matrix and its eigenvectors, by Jacobi's rotations.
fn eigenpairs(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = a.len();
    let mut vectors: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..30 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-15 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let turn = |x: f64, y: f64| (c * (x - t * y), c * (t * x + y));
                for row in &mut a {
                    (row[p], row[q]) = turn(row[p], row[q]);
                }
                for k in 0..n {
                    (a[p][k], a[q][k]) = turn(a[p][k], a[q][k]);
                    (vectors[p][k], vectors[q][k]) = turn(vectors[p][k], vectors[q][k]);
                }
            }
        }
    }
    let mut pairs: Vec<(f64, Vec<f64>)> = (0..n).map(|i| a[i][i]).zip(vectors).collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    pairs
}

/// The eigenvector of the largest eigenvalue, NaN if the two largest are the same.
fn centrality(ca: &[[i32; 3]]) -> Vec<f64> {
    let pairs = eigenpairs(contact_matrix(ca));
    match &pairs[..] {
        [first, second, ..] if first.0 - second.0 < 1e-6 * first.0.max(1e-9) => {
            vec![f64::NAN; ca.len()]
        }
        [first, ..] => first.1.iter().map(|value| value.abs()).collect(),
        [] => Vec::new(),
    }
}

/// A chain of C-alphas at the given positions, in 0.001 A.
fn chain_of(ca: &[[i32; 3]]) -> Structure {
    let mut s = structure(ca.len(), 5);
    for (residue, position) in s.residues.iter_mut().zip(ca) {
        residue.chain = 0;
        if residue.ca == MISSING {
            residue.ca = residue.n;
        }
        s.xyz[residue.ca as usize] = *position;
    }
    s.chains.truncate(1);
    s
}

/// Chains with difficult contact matrices: a line, a ring, pairs, and copies of a blob that a chain
/// of some residues links, or that nothing links.
fn awkward_chains() -> Vec<Structure> {
    let line = |n: i32, apart: i32| (0..n).map(move |i| [apart * i, 0, 0]);
    let ring = (0..24).map(|i| {
        let angle = f64::from(i) * std::f64::consts::TAU / 24.0;
        [angle.cos(), angle.sin(), 0.0].map(|x| (x * 24_000.0) as i32)
    });
    let blob = |centre: i32, sign: i32| {
        (0..40).map(move |i| {
            [
                centre + sign * (i * i * 73 % 11) * 900,
                i * 37 % 13 * 800,
                i % 7 * 1500,
            ]
        })
    };
    let linked = |n: i32| {
        let far = 24_000 + 3_800 * n;
        let link = (0..n).map(|i| [12_000 + 3_800 * i, 4_000, 4_000]);
        let chain: Vec<_> = blob(0, 1).chain(link).chain(blob(far, -1)).collect();
        chain
    };
    let mut chains: Vec<Vec<[i32; 3]>> = vec![
        line(1, 0).collect(),
        line(2, 7_000).collect(),
        line(2, 8_000).collect(),
        line(3, 7_000).collect(),
        line(3, 3_000).collect(),
        line(60, 3_800).collect(),
        line(61, 7_000).collect(),
        ring.collect(),
        (0..4).map(|i| [i % 2 * 5_000, i / 2 * 50_000, 0]).collect(),
        blob(0, 1).chain(blob(90_000, 1)).collect(),
    ];
    chains.extend([0, 2, 4, 8].map(linked));
    chains.iter().map(|ca| chain_of(ca)).collect()
}

#[test]
fn centrality_is_the_eigenvector_of_the_largest_eigenvalue() {
    let mut structures = made_up();
    structures.extend(awkward_chains());
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
    let computed = Computed::of_features(&[FeatureName::Centrality], &structures);
    let (mut most, mut known, mut double) = (0, 0, 0);
    for (n, s) in structures.iter().enumerate() {
        let ca = c_alphas(s);
        let found = computed.reals(n, TableName::Residues, "eigenvector");
        let residuals = computed.reals(n, TableName::Chains, "eigenvector_residual");
        let mut expected = vec![f64::NAN; ca.len()];
        for (chain, residual) in residuals.iter().enumerate() {
            let is_in_chain =
                |i: &usize| s.residues[*i].chain as usize == chain && ca[*i].is_some();
            let rows: Vec<usize> = (0..ca.len()).filter(is_in_chain).collect();
            let present: Vec<_> = rows.iter().filter_map(|&i| ca[i]).collect();
            let matrix = contact_matrix(&present);
            let vector = centrality(&present);
            if vector.iter().any(|value| value.is_nan()) {
                double += 1
            } else {
                known += 1
            }
            rows.iter().zip(vector).for_each(|(&i, v)| expected[i] = v);
            let degree = |row: &Vec<f64>| row.iter().sum::<f64>() as usize;
            most = most.max(matrix.iter().map(degree).max().unwrap_or(0));
            // The residual of what was found is in the table of chains, and below 1e-6.
            assert_eq!(residual.is_nan(), present.is_empty());
            let v: Vec<f64> = rows.iter().map(|&i| f64::from(found[i])).collect();
            let image = matrix
                .iter()
                .map(|row| row.iter().zip(&v).map(|(a, x)| a * x).sum::<f64>());
            let image: Vec<f64> = image.collect();
            let eigenvalue: f64 = image.iter().zip(&v).map(|(a, x)| a * x).sum();
            if !present.is_empty() && !eigenvalue.is_nan() {
                let rest = image.iter().zip(&v).map(|(a, x)| a - eigenvalue * x);
                let rest = rest.map(|x| x * x).sum::<f64>().sqrt();
                assert!(rest <= 1e-6 * eigenvalue, "{rest} of {eigenvalue}");
                assert!((rest - f64::from(*residual)).abs() <= 5e-7 * eigenvalue);
            }
        }
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let null = found.is_nan() && expected.is_nan();
            let close = (f64::from(*found) - expected).abs() < 1e-5;
            assert!(null || close, "{i} of {n}: {found}, expected {expected}");
        }
    }
    assert!(most > 32, "{most} contacts fit a list");
    assert!(known > 25 && double > 2, "{known} {double}");
}

#[test]
fn centrality_is_null_where_the_steps_do_not_suffice() {
    let line: Vec<[i32; 3]> = (0..300).map(|i| [3_000 * i, 0, 0]).collect();
    let mut config = asking_for(&[FeatureName::Centrality]);
    let found = |config: &FeatureConfig| {
        let computed = Computed::new(config.clone(), &[chain_of(&line)]);
        let residual = computed.reals(0, TableName::Chains, "eigenvector_residual")[0];
        let vector = computed.reals(0, TableName::Residues, "eigenvector");
        (vector.iter().all(|v| v.is_nan()), residual)
    };
    let (is_null, residual) = found(&config);
    assert!(!is_null && residual < 5e-6, "{residual}");
    config.centrality.steps = 20;
    let (is_null, residual) = found(&config);
    assert!(is_null && residual > 1e-4, "{residual}");
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
            let is_in_chain = |i: &usize| s.residues[*i].chain as usize == chain;
            let clusters = (0..ca.len()).filter(is_in_chain).map(|i| expected[i]);
            let mut clusters: Vec<i32> =
                clusters.filter(|&cluster| cluster != NULL_COUNT).collect();
            clusters.sort_unstable();
            clusters.dedup();
            clusters.len() as i32
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
    assert!(message.contains("cluster has nothing"), "{message}");
    assert!(message.contains("set cluster.select"), "{message}");
    let message = refusal(selecting(&["H", "his"])).unwrap();
    assert!(message.contains("\"his\""), "{message}");
    assert!(refusal(FeatureConfig::default()).is_none());
    let all_columns = FeatureConfig::default().columns(TableName::Residues);
    assert!(all_columns.iter().all(|column| column.name != "cluster"));
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
    let unrelated = structure(50, 77);
    structures.push(unrelated);
    for weighted in [false, true] {
        let mut config = asking_for(&[FeatureName::Smooth]);
        config.smooth.channels = vec!["b_ca".to_owned(), "conservation".to_owned()];
        config.smooth.weighted = weighted;
        let computed = Computed::new(config, &structures);
        for (n, s) in structures.iter().enumerate() {
            let ca = c_alphas(s);
            let b = |i: usize| s.b_factor.get(s.residues[i].ca as usize).copied();
            let conservation = |i: usize| s.channels.first().map(|channel| channel.values[i]);
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

#[test]
fn means_of_plddt_have_a_column_of_their_own() {
    let by_experiment = structure(60, 5);
    let mut predicted = by_experiment.clone();
    predicted.b_factor_kind = BFactorKind::Plddt;
    let computed = Computed::new(
        asking_for(&[FeatureName::Smooth]),
        &[by_experiment, predicted],
    );
    let values = |n, column| {
        let means = computed.reals(n, TableName::Residues, column);
        means.iter().map(|mean| mean.to_bits()).collect::<Vec<_>>()
    };
    let nothing = |means: &[u32]| means.iter().all(|mean| f32::from_bits(*mean).is_nan());
    assert!(!nothing(&values(0, "smooth_b_ca")) && nothing(&values(0, "smooth_plddt")));
    assert!(nothing(&values(1, "smooth_b_ca")));
    assert_eq!(values(1, "smooth_plddt"), values(0, "smooth_b_ca"));
}
