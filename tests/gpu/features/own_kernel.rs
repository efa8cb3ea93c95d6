//! User-defined kernels in a run with built-in ones.

use super::*;
use std::collections::BTreeMap;
use tapeloop::features::{OwnKernel, OwnKernelSettings, Threads};
use tapeloop::structure::{Channel, Radii};

/// The kernel that `tapeloop kernel new` writes.
const TEMPLATE: &str = include_str!("../../../crates/cli/src/bin/tapeloop/new_kernel.cu");

const SUMS: &str = r#"
#include "tapeloop.cuh"
// The sum of an annotation over a chain, and the residues of a structure.
extern "C" __global__ void __launch_bounds__(64)
sums(const unsigned* header, const ChainSpan* chains, const unsigned* members, const float* channel_score,
     float scale, unsigned short least, float* score_sum, int* long_enough)
{
    const unsigned chain = blockIdx.x * blockDim.x + threadIdx.x;
    if (chain >= header[CHAINS] || chains[chain].count == 0)
        return;
    float sum = 0;
    for (unsigned i = 0; i < chains[chain].count; i++)
        sum += channel_score[members[chains[chain].member_start + i]];
    score_sum[chain] = scale * sum;
    long_enough[chain] = chains[chain].count >= least;
}
"#;

fn kernel(text: &str, entry: &str, threads: Threads, values: &[(&str, f64)]) -> OwnKernel {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    let settings = OwnKernelSettings {
        file: format!("{entry}.cu"),
        text: text.into(),
        entry: entry.to_owned(),
        threads,
        values: values.collect(),
        columns: BTreeMap::new(),
    };
    // SAFETY: those that run compare their thread with the header, and follow spans that it covers.
    unsafe { OwnKernel::new(settings) }.unwrap()
}

#[test]
fn a_kernel_that_reads_atoms_is_refused_with_radii_that_tags_have_no_room_for() {
    let refused = |parameter: &str, radii: &str| {
        let text = format!(
            "extern \"C\" __global__ void near(const unsigned* header, {parameter}, float* y) {{}}"
        );
        let mut config = FeatureConfig {
            features: vec![FeatureName::Sasa],
            own_kernels: vec![kernel(&text, "near", Threads::Residue, &[])],
            ..FeatureConfig::default()
        };
        config.sasa.radii = Radii::named(radii).unwrap();
        Features::new(config).err().map(|error| error.to_string())
    };
    for radii in ["naccess", "oons", "bondi"] {
        let error = refused("const Atom* atoms", radii).unwrap();
        let words = ["near of near.cu reads `atoms`", radii, "sasa.radii"];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        assert_eq!(refused("const Atom* ca", radii), None);
    }
    assert_eq!(refused("const Atom* atoms", "protor"), None);
}

fn score(residue: usize) -> f32 {
    (residue % 16) as f32 * 0.5
}

fn with_scores(n: u64) -> Structure {
    let mut structure = structure(1 + n as usize * 31 % 200, n);
    structure.channels.push(Channel {
        name: "score".to_owned(),
        values: (0..structure.residues.len()).map(score).collect(),
    });
    structure
}

#[test]
#[ignore = "needs a CUDA device"]
fn own_kernels_compute_columns_after_the_built_in_ones() {
    let pool = pool();
    let gpu = gpu();
    let structures: Vec<_> = (0..60).map(with_scores).collect();
    let mut features = FeatureConfig {
        features: vec![FeatureName::ContactNumber, FeatureName::Rg],
        own_kernels: vec![
            kernel(
                TEMPLATE,
                "neighbours",
                Threads::Residue,
                &[("radius", 8000.0)],
            ),
            kernel(
                SUMS,
                "sums",
                Threads::Chain,
                &[("scale", 2.0), ("least", 3.0)],
            ),
        ],
        ..FeatureConfig::default()
    };
    features.contact_number.ca = vec![Cutoff::from_angstrom(8.0).unwrap()];
    let place = |table: TableName, name: &str| {
        let columns = features.columns(table);
        columns
            .iter()
            .position(|column| column.name == name)
            .unwrap()
    };
    let (near, cn) = (
        place(TableName::Residues, "neighbours"),
        place(TableName::Residues, "cn_ca_8"),
    );
    let (sum, long) = (
        place(TableName::Chains, "score_sum"),
        place(TableName::Chains, "long_enough"),
    );
    let mut all = Vec::new();
    for (mode, slots, residues) in [
        (Mode::Graph, 3, 1024),
        (Mode::Stream, 1, 256),
        (Mode::Resident, 2, 8192),
    ] {
        let run = Run {
            backend: &gpu,
            pool: &pool,
            policy: Policy::new(mode),
            slots,
            residues,
            wait: Wait::Block,
            fusion: Fusion::Off,
        };
        let tables = run.tables_of(&features, &structures);
        for (table, structure) in tables.iter().zip(&structures) {
            let column = |i| table.column(TableName::Residues, i);
            let (Column::Count(near), Column::Count(cn)) = (column(near), column(cn)) else {
                panic!("counts")
            };
            assert_eq!(near, cn, "C-alphas within 8 A, {mode:?}");
            let column = |i| table.column(TableName::Chains, i);
            let (Column::Real(sums), Column::Count(long)) = (column(sum), column(long)) else {
                panic!("a real and a count")
            };
            let mut expected = vec![(0.0, 0); structure.chains.len()];
            for (row, residue) in structure.residues.iter().enumerate() {
                expected[residue.chain as usize].0 += 2.0 * score(row);
                expected[residue.chain as usize].1 += 1;
            }
            for ((sum, long), (score, residues)) in sums.iter().zip(long).zip(expected) {
                match residues {
                    0 => assert!(sum.is_nan() && *long == -1, "null, and {sum} and {long}"),
                    _ => assert_eq!((*sum, *long), (score, i32::from(residues >= 3))),
                }
            }
        }
        all.push(tables);
    }
    for tables in &all[1..] {
        let [found, expected] = [tables, &all[0]].map(|tables| columns(&features, tables));
        for ((name, found), (_, expected)) in found.into_iter().zip(expected) {
            assert_eq!(bits(found), bits(expected), "{name}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_own_kernel_that_does_not_compile_names_its_line() {
    let pool = pool();
    let gpu = gpu();
    let text = "extern \"C\" __global__ void broken(float* y)\n{\n    y[0] = nothing;\n}\n";
    let features = FeatureConfig {
        features: vec![FeatureName::Rg],
        own_kernels: vec![kernel(text, "broken", Threads::Residue, &[])],
        ..FeatureConfig::default()
    };
    let workload = Features::new(features).unwrap();
    let config = EngineConfig::new(Features::capacity(64));
    let error = Engine::new(workload, &[gpu], pool, &config).err().unwrap();
    assert!(error.to_string().contains("broken.cu(3)"), "{error}");
}
