//! Uniforms that change between batches.

use super::*;

/// Multiplies by a uniform of the header, and adds a constant.
struct Uniformed(Kernel);

struct UniformBuffers {
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Workload for Uniformed {
    type Item = f32;
    type Output = f32;
    type Buffers = UniformBuffers;

    fn axes(&self) -> &'static [&'static str] {
        &["values"]
    }

    fn extent(&self, _: &f32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<UniformBuffers> {
        let (x, y, _) = record_by_uniform(recorder, &self.0, [2.0, 1.0]);
        Ok(UniformBuffers { x, y })
    }

    fn write(
        &self,
        buffers: &UniformBuffers,
        item: &f32,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x)[0] = *item;
        Ok(())
    }

    fn read(
        &self,
        buffers: &UniformBuffers,
        _: &f32,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<f32> {
        Ok(views.get(buffers.y)[0])
    }
}

fn set_factor(pipeline: &mut Pipeline<Uniformed>, value: impl Into<Scalar>) -> Result<()> {
    pipeline.set_uniforms(|uniforms| uniforms.set("factor", value))
}

#[test]
fn a_uniform_changes_between_batches_and_the_graph_does_not() {
    let (backend, pool) = cpu();
    let config = EngineConfig::new([4]);
    let backends = [Arc::clone(&backend)];
    let mut pipeline = Pipeline::new(Uniformed(by_uniform()), &backends, pool, &config).unwrap();
    let edits = backend.driver_calls().graph_edits;
    let one = |pipeline: &mut Pipeline<Uniformed>| {
        pipeline.submit(3.0).unwrap();
        pipeline.wait().unwrap().1.result.unwrap()
    };
    assert_eq!(one(&mut pipeline), 7.0);
    set_factor(&mut pipeline, 10.0_f32).unwrap();
    assert_eq!(one(&mut pipeline), 31.0);
    assert_eq!(backend.driver_calls().graph_edits, edits);
    let error = set_factor(&mut pipeline, 10_u32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let bits = 1 << 32 | u64::from(5.0_f32.to_bits());
    let dtype = DType::F32;
    let error = set_factor(&mut pipeline, Scalar { dtype, bits });
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("uniform factor") && text.contains("0x140a00000"),
        "{text}"
    );
    for name in ["facto", "summand"] {
        // What the same call has set before is not set either.
        let error = pipeline.set_uniforms(|uniforms| {
            uniforms.set("factor", 5.0_f32)?;
            uniforms.set(name, 1.0_f32)
        });
        let error = error.unwrap_err();
        assert!(error.fix_text().unwrap().contains("factor"), "{error}");
    }
    assert_eq!(one(&mut pipeline), 31.0);
}

fn engine(config: &EngineConfig) -> Engine<Uniformed> {
    let (backend, pool) = cpu();
    Engine::new(Uniformed(by_uniform()), &[backend], pool, config).unwrap()
}

fn when_full() -> EngineConfig {
    EngineConfig {
        close: Close::Full,
        batch_wait: Duration::from_secs(3600),
        ..EngineConfig::new([1000])
    }
}

#[test]
fn equal_values_close_no_batch() {
    let engine = engine(&when_full());
    let set = |factor: f32| {
        engine
            .set_uniforms(|uniforms| {
                // The last value counts.
                uniforms.set("factor", factor + 1.0)?;
                uniforms.set("factor", factor)
            })
            .unwrap();
    };
    let mut tickets = Vec::new();
    for _ in 0..500 {
        set(2.0);
        tickets.push((engine.submit(3.0).unwrap(), 7.0));
        set(2.0);
    }
    // Of what closes a batch, the change comes first.
    set(4.0);
    for _ in 0..500 {
        set(4.0);
        tickets.push((engine.submit(3.0).unwrap(), 13.0));
    }
    engine.flush().unwrap();
    for (ticket, expected) in tickets {
        assert_eq!(ticket.wait().unwrap().result.unwrap(), expected);
    }
    let counters = engine.counters();
    assert_eq!(
        (counters.batches, counters.batches_closed_by_uniforms),
        (2, 1)
    );
}

#[test]
fn items_that_were_flushed_keep_the_values_of_their_submission() {
    let engine = engine(&EngineConfig::new([8]));
    for _ in 0..20 {
        for factor in [1.0_f32, 2.0] {
            engine
                .set_uniforms(|uniforms| uniforms.set("factor", factor))
                .unwrap();
            let tickets: Vec<_> = (0..40).map(|_| engine.submit(1.0).unwrap()).collect();
            engine.flush().unwrap();
            let other = engine.set_uniforms(|uniforms| uniforms.set("factor", 100.0_f32));
            other.unwrap();
            for ticket in tickets {
                assert_eq!(ticket.wait().unwrap().result.unwrap(), factor + 1.0);
            }
        }
    }
}

#[test]
fn the_statistics_name_changes_that_close_most_batches() {
    let run = |changes: usize| {
        let engine = engine(&when_full());
        let mut tickets = Vec::new();
        for n in 0..100 {
            let factor = (n % changes) as f32;
            engine
                .set_uniforms(|uniforms| uniforms.set("factor", factor))
                .unwrap();
            tickets.push(engine.submit(1.0).unwrap());
        }
        engine.flush().unwrap();
        for ticket in tickets {
            ticket.wait().unwrap().result.unwrap();
        }
        engine.statistics()
    };
    let statistics = run(2);
    assert!(statistics.closed_by_uniforms > 0.9, "{statistics:?}");
    let sentence = statistics.sentence();
    assert!(
        sentence.contains("changes of uniforms closed 99%"),
        "{sentence}"
    );
    assert!(!run(1).sentence().contains("uniforms"));
}

#[test]
fn a_packed_batch_has_the_uniforms_of_its_packing() {
    let (backend, pool) = cpu();
    let packer = Packer::new(
        Uniformed(by_uniform()),
        &[Extent::from([10])],
        &backend,
        pool,
    )
    .unwrap();
    let mut ring = Ring::new(
        &backend,
        &packer.buckets(),
        3,
        &Policy::default(),
        Wait::Spin,
    )
    .unwrap();
    for factor in [2.0_f32, 5.0, -1.0] {
        packer
            .set_uniforms(|uniforms| uniforms.set("factor", factor))
            .unwrap();
        let mut slot = ring.acquire().unwrap();
        let packed = packer.pack(&mut slot, vec![3.0, 4.0]);
        let packed = packed.map_err(|(error, _)| error).unwrap();
        let extent = packed.extent();
        ring.submit(slot, extent, packed).unwrap();
    }
    let mut found: Vec<Vec<f32>> = Vec::new();
    while let Some(Ok(slot)) = ring.wait() {
        found.push(packer.read(&slot).into_iter().map(Result::unwrap).collect());
        ring.release(Ok(slot));
    }
    assert_eq!(found, [vec![7.0, 9.0], vec![16.0, 21.0], vec![-2.0, -3.0]]);
}

#[test]
fn a_uniform_of_another_recording_or_type_is_refused() {
    let kernel = Kernel::new("k").reads::<f32>("value").writes::<f32>("y");
    let record = |record: &dyn Fn(&mut Recorder) -> Arg| {
        let mut recorder = Recorder::new(&[8]);
        let arg = record(&mut recorder);
        let header = recorder.header();
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        recorder.upload(header);
        recorder.launch(&kernel, 1, &[arg, y.into()]);
        recorder.download(y);
        recorder.finish().map(drop)
    };
    record(&|recorder| recorder.uniform("value", 1.0_f32).into()).unwrap();
    type Case<'a> = (&'a dyn Fn(&mut Recorder) -> Arg, &'a str);
    let cases: [Case<'_>; 3] = [
        (
            &|recorder| recorder.uniform("value", 1_u32).into(),
            "uniform value",
        ),
        (
            &|recorder| {
                recorder.uniform("value", 1.0_f32);
                Recorder::new(&[8]).uniform("value", 1.0_f32).into()
            },
            "another recording",
        ),
        (
            &|recorder| {
                recorder.header();
                let mut ladder = Recorder::ladder(&[&[8], &[9]]);
                *recorder = ladder.remove(0);
                ladder[0].uniform("value", 1.0_f32).into()
            },
            "another recording",
        ),
    ];
    for (case, part) in cases {
        let error = record(case).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    }
    let writes = Kernel::new("k").updates::<f32>("value");
    let mut recorder = Recorder::new(&[8]);
    let (header, value) = (recorder.header(), recorder.uniform("value", 1.0_f32));
    recorder.upload(header);
    recorder.launch(&writes, 1, &[value.into()]);
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.contains("kernels only read it"), "{error}");
}
