//! Finds edges in images of any size, with three kernels for each batch: a blur along rows, a blur
//! along columns, and the length of the gradient.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example image_filter
//! ```

use std::sync::Arc;
use tapeloop_engine::record::TwinLaunch;
use tapeloop_engine::*;

/// The pixels and the images of a batch.
const BATCH: [u32; 2] = [1 << 20, 256];

const SOURCE: &str = r#"
struct Place { unsigned offset, width, height; };

/// The image of pixel `i`, and the pixel's row and column in it.
__device__ bool find(const unsigned* header, const unsigned* image, const unsigned* images, Place& place,
                     int& x, int& y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0])
        return false;
    const unsigned* of = images + 3 * image[i];
    place = {of[0], of[1], of[2]};
    // Zeros are an image that was rejected.
    if (place.width == 0)
        return false;
    x = (i - place.offset) % place.width;
    y = (i - place.offset) / place.width;
    return true;
}

/// The pixel at a column and a row, or the nearest one of the image.
__device__ float at(const float* pixels, const Place& place, int x, int y)
{
    x = min(max(x, 0), int(place.width) - 1);
    y = min(max(y, 0), int(place.height) - 1);
    return pixels[place.offset + y * place.width + x];
}

extern "C" __global__ void blur_rows(const unsigned* header, const unsigned* image,
                                     const unsigned* images, const float* in, float* out)
{
    Place p; int x, y;
    if (find(header, image, images, p, x, y))
        out[p.offset + y * p.width + x] = 0.25f * (at(in, p, x - 1, y) + at(in, p, x + 1, y)) + 0.5f * at(in, p, x, y);
}

extern "C" __global__ void blur_columns(const unsigned* header, const unsigned* image,
                                        const unsigned* images, const float* in, float* out)
{
    Place p; int x, y;
    if (find(header, image, images, p, x, y))
        out[p.offset + y * p.width + x] = 0.25f * (at(in, p, x, y - 1) + at(in, p, x, y + 1)) + 0.5f * at(in, p, x, y);
}

extern "C" __global__ void gradient(const unsigned* header, const unsigned* image,
                                    const unsigned* images, const float* in, float* out)
{
    Place p; int x, y;
    if (find(header, image, images, p, x, y)) {
        const float dx = at(in, p, x + 1, y) - at(in, p, x - 1, y);
        const float dy = at(in, p, x, y + 1) - at(in, p, x, y - 1);
        out[p.offset + y * p.width + x] = 0.5f * sqrtf(dx * dx + dy * dy);
    }
}
"#;

/// Of one image: the value of a pixel after a filter, from the pixels at columns and rows.
type Filter = fn(&dyn Fn(i64, i64) -> f32, i64, i64) -> f32;

fn blur_rows(at: &dyn Fn(i64, i64) -> f32, x: i64, y: i64) -> f32 {
    0.25 * (at(x - 1, y) + at(x + 1, y)) + 0.5 * at(x, y)
}

fn blur_columns(at: &dyn Fn(i64, i64) -> f32, x: i64, y: i64) -> f32 {
    0.25 * (at(x, y - 1) + at(x, y + 1)) + 0.5 * at(x, y)
}

fn gradient(at: &dyn Fn(i64, i64) -> f32, x: i64, y: i64) -> f32 {
    let (dx, dy) = (at(x + 1, y) - at(x - 1, y), at(x, y + 1) - at(x, y - 1));
    0.5 * (dx * dx + dy * dy).sqrt()
}

fn filter(filter: Filter, [width, height]: [usize; 2], from: &[f32], to: &mut [f32]) {
    let at = |x: i64, y: i64| {
        let x = x.clamp(0, width as i64 - 1) as usize;
        from[y.clamp(0, height as i64 - 1) as usize * width + x]
    };
    for (place, to) in to.iter_mut().enumerate() {
        *to = filter(&at, (place % width) as i64, (place / width) as i64);
    }
}

/// The twin of a kernel.
fn twin(apply: Filter) -> impl Fn(&mut TwinLaunch<'_>) + Send + Sync {
    move |launch| {
        let (header, _image) = (launch.read::<u32>(), launch.read::<u32>());
        let (images, from) = (launch.read::<u32>(), launch.read::<f32>());
        let to = launch.write::<f32>();
        for image in images.chunks_exact(3).take(header[1] as usize) {
            let [offset, width, height] = [0, 1, 2].map(|field| image[field] as usize);
            let pixels = offset..offset + width * height;
            filter(
                apply,
                [width, height],
                &from[pixels.clone()],
                &mut to[pixels],
            );
        }
    }
}

struct Image {
    width: u32,
    height: u32,
    /// By rows.
    pixels: Vec<f32>,
}

struct Edges([Kernel; 3]);

struct Buffers {
    pixels: Buffer<f32>,
    /// Of each pixel: its image in the batch.
    image: Buffer<u32>,
    /// Of each image: its first pixel, its width and its height.
    images: Buffer<u32>,
    edges: Buffer<f32>,
}

impl Edges {
    fn new() -> Result<Edges> {
        let filters: [(&str, Filter); 3] = [
            ("blur_rows", blur_rows),
            ("blur_columns", blur_columns),
            ("gradient", gradient),
        ];
        let mut kernels = Vec::new();
        for (name, filter) in filters {
            // SAFETY: it writes the pixels below `header[0]`, and reads pixels of the image that
            // `write` has put around each.
            let kernel = unsafe { Kernel::from_cuda("image_filter.cu", SOURCE, name) }?;
            kernels.push(kernel.twin_closure(twin(filter)));
        }
        Ok(Edges(kernels.try_into().expect("three filters")))
    }
}

impl Workload for Edges {
    type Item = Arc<Image>;
    type Output = Vec<f32>;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["pixels", "images"]
    }

    fn extent(&self, image: &Arc<Image>) -> Result<Extent> {
        let pixels = u64::from(image.width) * u64::from(image.height);
        if pixels == image.pixels.len() as u64 && pixels > 0 {
            Ok([image.pixels.len() as u32, 1].into())
        } else {
            Err(Error::input(format!(
                "{} pixels for {} by {}",
                image.pixels.len(),
                image.width,
                image.height
            )))
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let header = recorder.header();
        let pixels = recorder.upload_buffer::<f32>("pixels", 0, 1);
        let image = recorder.upload_buffer::<u32>("image", 0, 1);
        let images = recorder.upload_buffer::<u32>("images", 1, 3);
        let edges = recorder.download_buffer::<f32>("edges", 0, 1);
        let [rows, columns] =
            ["rows", "columns"].map(|name| recorder.device_buffer::<f32>(name, 0, 1));
        recorder.upload(header);
        recorder.upload(pixels);
        recorder.upload(image);
        recorder.upload(images);
        let blocks = recorder.capacity(0).div_ceil(128);
        let steps = [(pixels, rows), (rows, columns), (columns, edges)];
        for (kernel, (from, to)) in self.0.iter().zip(steps) {
            let tables = [header.into(), image.into(), images.into()];
            let args = [&tables[..], &[from.into(), to.into()]].concat();
            recorder.launch(kernel, blocks, &args);
        }
        recorder.download(edges);
        Ok(Buffers {
            pixels,
            image,
            images,
            edges,
        })
    }

    fn write(
        &self,
        buffers: &Buffers,
        image: &Arc<Image>,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.pixels).copy_from_slice(&image.pixels);
        views.take(buffers.image).fill(offset[1]);
        let place = [offset[0], image.width, image.height];
        views.take(buffers.images).copy_from_slice(&place);
        Ok(())
    }

    fn read(
        &self,
        buffers: &Buffers,
        _: &Arc<Image>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(buffers.edges).to_vec())
    }
}

/// A bright disc, and a gradient from left to right.
fn image(number: u32) -> Image {
    let (width, height) = (40 + number * 7 % 200, 30 + number * 13 % 150);
    let pixel = |place: u32| {
        let (x, y) = (place % width, place / width);
        let (dx, dy) = (
            x as f32 - width as f32 / 2.0,
            y as f32 - height as f32 / 2.0,
        );
        let disc = f32::from(u8::from(dx * dx + dy * dy < 100.0));
        disc + x as f32 / width as f32
    };
    Image {
        width,
        height,
        pixels: (0..width * height).map(pixel).collect(),
    }
}

/// The edges of an image, one step after the other.
fn expected(image: &Image) -> Vec<f32> {
    let mut pixels = image.pixels.clone();
    for step in [blur_rows as Filter, blur_columns, gradient] {
        let from = pixels.clone();
        let size = [image.width, image.height].map(|side| side as usize);
        filter(step, size, &from, &mut pixels);
    }
    pixels
}

pub(crate) fn main() -> Result<()> {
    let engine = Engine::auto(Edges::new()?, &EngineConfig::new(BATCH))?;
    let images: Vec<_> = (0..500).map(|number| Arc::new(image(number))).collect();
    let results = engine.submit_many(images.iter().map(Arc::clone))?.wait()?;
    let mut furthest = 0.0_f32;
    for (image, done) in images.iter().zip(results) {
        for (found, expected) in done.result?.iter().zip(expected(image)) {
            furthest = furthest.max((found - expected).abs());
        }
    }
    // The compiler for the GPU joins products and sums, which are rounded once then.
    assert!(furthest < 1e-5);
    let refused = Image {
        width: 3,
        height: 2,
        pixels: vec![0.0; 5],
    };
    let refused = engine.submit(Arc::new(refused))?.wait()?.result;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Input);
    println!(
        "{}: the edges of {} images; {}",
        engine.device().name,
        images.len(),
        engine.statistics().sentence()
    );
    Ok(())
}
