use super::super::config::RawConfig;
use super::super::feature_engine::{FeatureEngine, Inputs, Next};
use super::super::run_json::RunHeader;
use super::super::trusted_code::own_kernel;
use super::*;
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tapeloop::ErrorKind;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::features::OwnKernelSettings;

const TABLE_NAMES: [&str; 3] = ["residues", "chains", "structures"];

/// A plan on so many CPU backends, which stand in for cards.
fn plan(devices: usize) -> Plan {
    let text = "backend = \"cpu\"\nthreads = 2\nslots = 2\nbatch.residues = 256\n\
                features = [\"sasa\", \"dssp\", \"contact_number\"]";
    let raw = RawConfig::parse(text, Path::new("run.toml")).unwrap();
    let mut plan = Plan::of_any_input(Config::resolve(raw).unwrap()).unwrap();
    while plan.backends.len() < devices {
        let another = CpuBackend::new(Arc::clone(&plan.pool));
        plan.backends.push(Arc::new(another));
    }
    plan
}

/// The tables of all samples.
fn tables(plan: Plan) -> Vec<RecordBatch> {
    let engine = FeatureEngine::of_plan(plan).unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let inputs = Inputs::Paths(vec![samples.to_str().unwrap().to_owned()]);
    let mut stream = engine.stream(inputs, &TABLE_NAMES, false).unwrap();
    let mut batches = Vec::new();
    loop {
        match stream.next_within(Duration::from_secs(60)).unwrap() {
            Next::Batch(table, batch) => batches.push((table, batch)),
            Next::Pending => {}
            Next::End => break,
        }
    }
    let of_table = |table: &str| {
        let of_table: Vec<&RecordBatch> = batches
            .iter()
            .filter(|(name, _)| *name == table)
            .map(|(_, batch)| batch)
            .collect();
        concat_batches(stream.schema(table).unwrap(), of_table).unwrap()
    };
    TABLE_NAMES.map(of_table).to_vec()
}

#[test]
fn several_devices_give_the_tables_of_one() {
    let one = tables(plan(1));
    assert!(one.iter().all(|table| table.num_rows() > 20));
    for devices in [2, 3] {
        assert!(tables(plan(devices)) == one, "{devices} devices");
    }
}

#[test]
fn the_memory_is_that_of_all_devices_and_the_budget_counts_it() {
    let [one, three] = [1, 3].map(|devices| plan(devices).memory().unwrap());
    assert_eq!((one.slots, one.devices), (2, 1));
    assert_eq!((three.slots, three.devices), (6, 3));
    assert_eq!(three.device_bytes(), 3 * one.device_bytes());
    let within = |devices: usize| {
        let mut plan = plan(devices);
        plan.engine.memory_bytes_max = Some(2 * one.device_bytes());
        plan.start(&TableName::ALL)
    };
    assert_eq!(within(2).unwrap().statistics().devices.len(), 2);
    let error = within(3).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(error.message().contains("6 slots"), "{error}");
}

#[test]
fn the_devices_are_named_in_the_record() {
    let (one, two) = (plan(1), plan(2));
    let name = &one.first_device().name;
    assert_eq!(two.device_names(), format!("2 x {name}"));
    let backend = |plan: &Plan| RunHeader::new(plan, SystemTime::now()).json()["backend"].clone();
    assert!(backend(&one).get("devices").is_none());
    let backend = backend(&two);
    assert_eq!(backend["devices"].as_array().unwrap().len(), 2);
    assert_eq!(backend["devices"][1]["device"], **name);
}

#[test]
fn the_numbers_of_files_in_memory_end_at_the_largest() {
    let engine = FeatureEngine::of_plan(plan(1)).unwrap();
    let text = include_bytes!("../../../../samples/1ubi.pdb");
    let files = |count| vec![("1ubi.pdb".to_owned(), text.to_vec()); count];
    let stream = |first, count| {
        let files = files(count);
        engine.stream(Inputs::Memory { first, files }, &TABLE_NAMES, false)
    };
    let refused = stream(u64::MAX - 1, 2).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    let mut stream = stream(u64::MAX - 1, 1).unwrap();
    while !matches!(
        stream.next_within(Duration::from_secs(60)).unwrap(),
        Next::End
    ) {}
    assert_eq!(stream.counts().structures, 1);
}

#[test]
fn a_few_small_files_take_one_slot_and_one_bucket() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples");
    let engine = |inputs: &[&str], more: &str| {
        let inputs: Vec<_> = inputs
            .iter()
            .map(|name| format!("{samples}/{name}"))
            .collect();
        let text = format!("backend = \"cpu\"\nthreads = 2\ninput = {inputs:?}\n{more}");
        let raw = RawConfig::parse(&text, Path::new("run.toml")).unwrap();
        Plan::new(Config::resolve(raw).unwrap()).unwrap().engine
    };
    let few = engine(&["1ubi.pdb", "1a8o.cif.gz"], "");
    assert_eq!((few.slots, few.buckets.len()), (1, 1));
    // Its residues are those that the files could have at most, and more than they have.
    let residues = few.batch[0];
    assert!((76 + 70..16_384).contains(&residues), "{residues}");
    // As much room for pairs as in the largest bucket of other runs.
    let all = engine(&[""], "");
    assert_eq!(all.slots, 2);
    let factor = all.buckets.last().unwrap()[0].div_ceil(residues);
    let capacity = Features::capacity(residues);
    assert_eq!(few.buckets, [Features::with_pair_room(capacity, factor)]);
    for (inputs, more) in [
        (&["*.pdb"][..], ""),
        (&["1ubi.pdb"], "assembly = \"1\""),
        (&["1ubi.pdb"], "batch.residues = 64"),
        (&["1ubi.pdb", ""], ""),
    ] {
        assert!(engine(inputs, more).buckets.len() > 1, "{inputs:?} {more}");
    }
    let chosen = engine(&["1ubi.pdb"], "slots = 5");
    assert_eq!((chosen.slots, chosen.buckets.len()), (5, 1));
}

#[test]
fn the_tables_read_are_those_written_and_what_their_columns_are_made_of() {
    let read = |text: &str| {
        let text = format!("backend = \"cpu\"\n{text}");
        let raw = RawConfig::parse(&text, Path::new("run.toml")).unwrap();
        let plan = Plan::of_any_input(Config::resolve(raw).unwrap()).unwrap();
        TableName::ALL.map(|table| plan.tables_read().contains(&table))
    };
    let only = |tables: &[TableName]| TableName::ALL.map(|table| tables.contains(&table));
    let (residues, structures) = (TableName::Residues, TableName::Structures);
    let written = "tables.written = [\"structures\"]";
    assert_eq!(read(written), only(&[structures]));
    let reduced = format!("features = [\"sasa\"]\nreduce = [\"sasa.mean\"]\n{written}");
    assert_eq!(read(&reduced), only(&[structures, residues]));
    assert!(read("")[..3].iter().all(|is_read| *is_read));
}

#[test]
fn readers_share_what_the_engine_leaves_of_the_memory() {
    let mut plan = plan(1);
    let engine = plan.memory().unwrap();
    let bytes = engine.device_bytes() + engine.host_bytes();
    let mut budget = |memory: Option<u64>, reading: u64| {
        plan.config.memory_bytes_max = memory;
        plan.config.reading_bytes_max = reading;
        format!("{:?}", plan.read_budget(&engine))
    };
    for (memory, reading, expected) in [
        (None, 5000, 5000),
        (Some(bytes + 1000), 5000, 1000),
        (Some(bytes + 1000), 500, 500),
        (Some(bytes / 2), 5000, 0),
    ] {
        let said = budget(memory, reading);
        assert!(said.contains(&format!("bytes_max: {expected},")), "{said}");
    }
}

#[test]
fn the_reader_of_an_annotation_that_is_missing_is_named() {
    let message = |feature: &str| {
        let text = format!("features = [{feature:?}]\nsmooth.channels = [\"x\"]");
        let raw = RawConfig::parse(&text, Path::new("run.toml")).unwrap();
        let mut config = Config::resolve(raw).unwrap();
        let kernel = OwnKernelSettings {
            text: "extern \"C\" __global__ void own(const float* channel_x, float* y) {}".into(),
            entry: "own".to_owned(),
            ..OwnKernelSettings::default()
        };
        config.features.own_kernels = vec![own_kernel(kernel).unwrap()];
        let loaded = load_annotations(&config, &[], &WantedColumns::NONE);
        loaded.unwrap_err().message().to_owned()
    };
    let smooth = message("smooth");
    assert!(
        smooth.starts_with("`smooth.channels` names \"x\""),
        "{smooth}"
    );
    // The list of a feature that is not computed reads nothing.
    let kernel = message("rg");
    assert!(
        kernel.starts_with("a parameter of a kernel names \"x\""),
        "{kernel}"
    );
}
