//! An HTTP service in front of an engine, with tokio and hyper.
//!
//! `POST /square` takes numbers separated by white space and returns their squares. Requests of all
//! connections share batches. The service never queues without end:
//!
//! | | answer |
//! |---|---|
//! | two closed batches wait for a slot, or too many requests are being read | 503, with `Retry-After` |
//! | the request's batch had no slot within `timeout-ms` (a header; 1,000 by default) | 504 |
//! | the body, or its numbers, are too large | 413 |
//! | the body is no list of numbers | 400, with the place |
//! | the body takes too long to arrive | 408 |
//!
//! If a client closes its connection, the service takes the client's item out of its batch, unless
//! the batch has begun. After an interrupt (Ctrl-C), or when the engine has ended because its device was
//! lost, the service answers the requests that it has, and ends, after a minute at the latest.
//!
//! ```sh
//! cargo run --release -p tapeloop-engine --features cuda-12040 --example http_service -- 127.0.0.1:8080
//! curl --data '1 2 3' http://127.0.0.1:8080/square
//! ```

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::RETRY_AFTER;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop_engine::pipeline::{SubmitOptions, TrySubmitError};
use tapeloop_engine::*;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The largest body in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// The most requests whose bodies are in memory.
const REQUESTS_MAX: usize = 1024;
/// How long a client may take for the head of a request, and for its body.
const READ_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the service waits for its connections when it ends, and for the device.
const END_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a request waits for a slot unless it says otherwise.
const TIMEOUT_MS: u64 = 1000;

pub(crate) const TEXT: &str = r#"
extern "C" __global__ void square(const unsigned* header, const float* x, float* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0])
        y[i] = x[i] * x[i];
}
"#;

/// The kernel's CPU twin.
pub(crate) fn square(launch: &mut TwinLaunch<'_>) {
    let len = launch.read::<u32>()[0] as usize;
    let x = &launch.read::<f32>()[..len];
    for (y, x) in launch.write::<f32>().iter_mut().zip(x) {
        *y = x * x;
    }
}

/// Squares the numbers of each request.
pub(crate) struct Squares(pub(crate) Kernel);

impl Workload for Squares {
    type Item = Vec<f32>;
    type Output = Vec<f32>;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Vec<f32>) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        recorder.upload(header);
        recorder.upload(x);
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(&self.0, blocks, &[header.into(), x.into(), y.into()]);
        recorder.download(y);
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &Vec<f32>,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(*x).copy_from_slice(item);
        Ok(())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        _: &Vec<f32>,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(*y).to_vec())
    }
}

/// What all connections share.
struct Service {
    engine: Engine<Squares>,
    requests: Semaphore,
}

/// An answer other than 200.
type Refusal = (StatusCode, String);

impl Service {
    /// The body of the answer to a request.
    async fn answer(&self, request: Request<Incoming>) -> Result<String, Refusal> {
        if request.uri().path() != "/square" {
            return Err((StatusCode::NOT_FOUND, "POST numbers to /square".to_owned()));
        }
        if request.method() != Method::POST {
            let message = "POST the numbers".to_owned();
            return Err((StatusCode::METHOD_NOT_ALLOWED, message));
        }
        let expires_at = expiry(&request)?;
        let Ok(_request) = self.requests.try_acquire() else {
            return Err(full());
        };
        let item = numbers(&read_body(request.into_body()).await?)?;
        let options = SubmitOptions {
            expires_at,
            ..SubmitOptions::default()
        };
        // It takes the item or refuses it, and never waits, as no task may block.
        let ticket = match self.engine.try_submit(item, options) {
            // If the client disconnects, this future is dropped, and the item is cancelled with it.
            Ok(ticket) => ticket.cancel_on_drop(),
            Err(TrySubmitError::Full(_)) => return Err(full()),
            Err(TrySubmitError::Closed(_, reason)) => return Err(refusal(reason)),
        };
        let squares = ticket.await.and_then(|done| done.result).map_err(refusal)?;
        let squares: Vec<String> = squares.iter().map(f32::to_string).collect();
        Ok(squares.join(" ") + "\n")
    }
}

/// When a request expires, by its header `timeout-ms`.
fn expiry(request: &Request<Incoming>) -> Result<Option<Instant>, Refusal> {
    let timeout_ms = match request.headers().get("timeout-ms") {
        None => TIMEOUT_MS,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse().ok());
            let message = "timeout-ms must be a whole number of milliseconds".to_owned();
            number.ok_or((StatusCode::BAD_REQUEST, message))?
        }
    };
    // A time beyond the clock's range never comes.
    Ok(Instant::now().checked_add(Duration::from_millis(timeout_ms)))
}

async fn read_body(body: Incoming) -> Result<Bytes, Refusal> {
    let body = timeout(READ_TIME_MAX, Limited::new(body, BODY_BYTES_MAX).collect());
    match body.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the body has more than {BODY_BYTES_MAX} bytes");
            Err((StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, error.to_string())),
        Err(_) => {
            let message = "the body took too long".to_owned();
            Err((StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

fn numbers(body: &[u8]) -> Result<Vec<f32>, Refusal> {
    let malformed = |message: String| (StatusCode::BAD_REQUEST, message);
    let text = str::from_utf8(body).map_err(|error| malformed(error.to_string()))?;
    let number = |(at, word): (usize, &str)| {
        let number = word.parse();
        number.map_err(|_| malformed(format!("word {} is no number: {word:?}", at + 1)))
    };
    text.split_whitespace().enumerate().map(number).collect()
}

fn full() -> Refusal {
    let message = "the service is full; try again later".to_owned();
    (StatusCode::SERVICE_UNAVAILABLE, message)
}

/// The answer to an error of the engine.
fn refusal(error: Error) -> Refusal {
    let status = match error.kind() {
        ErrorKind::Input => StatusCode::BAD_REQUEST,
        ErrorKind::Capacity => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Expired => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

fn response(answer: Result<String, Refusal>) -> Response<Full<Bytes>> {
    let (status, text) = match answer {
        Ok(text) => (StatusCode::OK, text),
        Err((status, message)) => (status, message + "\n"),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let second = hyper::header::HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, second);
    }
    response
}

/// Serves until `end` is ready, then answers the requests that have arrived. Returns what the engine
/// has counted.
pub(crate) async fn serve(
    listener: TcpListener,
    engine: Engine<Squares>,
    end: impl Future<Output = ()>,
) -> Counters {
    let service = Arc::new(Service {
        engine,
        requests: Semaphore::new(REQUESTS_MAX),
    });
    let connections = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(READ_TIME_MAX);
    let mut end = std::pin::pin!(end);
    let mut ended = service.engine.until_ended();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, for instance: connections that end free some.
                    eprintln!("accept: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut end => break,
            error = &mut ended => {
                eprintln!("the engine has ended: {error}");
                break;
            }
        };
        let service = Arc::clone(&service);
        let handler = service_fn(move |request| {
            let service = Arc::clone(&service);
            async move { Ok::<_, Infallible>(response(service.answer(request).await)) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), handler);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // A client that breaks the connection harms no other.
            if let Err(error) = connection.await {
                eprintln!("connection: {error}");
            }
        });
    }
    drop(listener);
    if timeout(END_TIME_MAX, connections.shutdown()).await.is_err() {
        eprintln!("some connections are still open");
    }
    service.engine.close();
    let counters = service.engine.counters();
    if let Some(service) = Arc::into_inner(service) {
        // It waits, which no task may do.
        let ending = move || service.engine.shutdown(END_TIME_MAX);
        if let Ok(Err(left)) = tokio::task::spawn_blocking(ending).await {
            eprintln!("{} batches are left to the device", left.batches());
        }
    }
    counters
}

pub(crate) fn main() -> Result<()> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    // SAFETY: it touches the first `header[0]` elements of `x` and `y`, which the engine keeps
    // within their capacity.
    let kernel = unsafe { Kernel::from_cuda("square.cu", TEXT, "square") }?.twin(square);
    let engine = Engine::auto(Squares(kernel), &EngineConfig::new([1 << 20]))?;
    let runtime = tokio::runtime::Runtime::new().map_err(Error::io)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&address).await.map_err(Error::io)?;
        let (name, address) = (&engine.device().name, listener.local_addr());
        println!("{name}, at {}", address.map_err(Error::io)?);
        let interrupt = async {
            if let Err(error) = tokio::signal::ctrl_c().await {
                eprintln!("interrupts end the service at once: {error}");
                std::future::pending().await
            }
        };
        println!("{:?}", serve(listener, engine, interrupt).await);
        Ok(())
    })
}
