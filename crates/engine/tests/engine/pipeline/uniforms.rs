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
        assert_eq!(recorder.uniform("factor", 2.0_f32), HEADER_LEN);
        assert_eq!(recorder.constant("summand", 1.0_f32), HEADER_LEN + 1);
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        recorder.launch(&self.0, 1, &[header.into(), x.into(), y.into()]);
        recorder.download(y);
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

#[test]
fn a_uniform_changes_between_batches_and_the_graph_does_not() {
    let kernel = Kernel::new("by_uniform")
        .reads::<u32>("header")
        .reads::<f32>("x")
        .writes::<f32>("y")
        .twin(by_uniform);
    let (backend, pool) = cpu();
    let config = EngineConfig::new([4]);
    let mut pipeline =
        Pipeline::new(Uniformed(kernel), &[Arc::clone(&backend)], pool, &config).unwrap();
    let edits = backend.driver_calls().graph_edits;
    let one = |pipeline: &mut Pipeline<Uniformed>| {
        pipeline.submit(3.0).unwrap();
        pipeline.wait().unwrap().result.unwrap()
    };
    assert_eq!(one(&mut pipeline), 7.0);
    pipeline.set_uniform("factor", 10.0_f32).unwrap();
    assert_eq!(one(&mut pipeline), 31.0);
    assert_eq!(backend.driver_calls().graph_edits, edits);
    let error = pipeline.set_uniform("factor", 10_u32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let bits = 1 << 32 | u64::from(5.0_f32.to_bits());
    let dtype = DType::F32;
    let error = pipeline.set_uniform("factor", Scalar { dtype, bits });
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("uniform factor") && text.contains("0x140a00000"),
        "{text}"
    );
    assert_eq!(one(&mut pipeline), 31.0);
    for name in ["facto", "summand"] {
        let error = pipeline.set_uniform(name, 1.0_f32).unwrap_err();
        assert!(error.fix_text().unwrap().contains("factor"), "{error}");
    }
}
