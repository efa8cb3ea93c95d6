//! The HTTP service among the examples.

use crate::http_service::{BODY_BYTES_MAX, Squares, TEXT, serve, square};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use tapeloop_engine::backend::{Backend, ThreadPoolBuilder, cpu::CpuBackend};
use tapeloop_engine::{Counters, Engine, EngineConfig, Kernel};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The numbers of a batch.
const BATCH: u32 = 1000;

/// Holds batches on the device until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// The batches that have come to the gate.
    arrived: usize,
}

impl Gate {
    fn set_closed(&self, closed: bool) {
        self.state.lock().unwrap().is_closed = closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.arrived += 1;
        self.changed.notify_all();
        drop(
            self.changed
                .wait_while(state, |state| state.is_closed)
                .unwrap(),
        );
    }

    /// Waits until a batch is on the device.
    fn wait_for_batch(&self) {
        let state = self.state.lock().unwrap();
        drop(
            self.changed
                .wait_while(state, |state| state.arrived == 0)
                .unwrap(),
        );
    }
}

/// A running service with one slot.
struct Running {
    address: SocketAddr,
    gate: Arc<Gate>,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<Counters>,
}

fn start() -> Running {
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let kernel = Kernel::declared_in(TEXT, "square").unwrap();
    let kernel = kernel.twin_closure(move |launch| {
        passed.pass();
        square(launch);
    });
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    // No thread of the service computes, so all of them answer while the gate is closed.
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::in_pool(Arc::clone(&pool)));
    let mut config = EngineConfig::new([BATCH]);
    config.slots = 1;
    let engine = Engine::new(Squares(kernel), &[backend], pool, &config).unwrap();
    let (end, ended) = oneshot::channel();
    let (listening, address) = mpsc::channel();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listening.send(listener.local_addr().unwrap()).unwrap();
            serve(listener, engine, async { ended.await.unwrap() }).await
        })
    });
    Running {
        address: address.recv().unwrap(),
        gate,
        end,
        thread,
    }
}

impl Running {
    fn end(self) -> Counters {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Opens a connection and sends a request.
fn send(address: SocketAddr, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let len = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The service may answer before it has read all of a body that is too large.
    let _ = stream.write_all(body.as_bytes());
    stream
}

/// The status, the head and the body of the answer.
fn answer(mut stream: TcpStream) -> (u16, String, String) {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    // A connection that was closed before all of its request was read may end with an error.
    while let Ok(len @ 1..) = stream.read(&mut part) {
        text.extend_from_slice(&part[..len]);
    }
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

fn post(address: SocketAddr, body: &str) -> (u16, String, String) {
    answer(send(address, "/square", "", body))
}

#[test]
fn concurrent_requests_get_their_own_results() {
    let running = start();
    let address = running.address;
    thread::scope(|scope| {
        for client in 0..8_u32 {
            scope.spawn(move || {
                for request in 0..25 {
                    let number = 100 * client + request;
                    let (status, _, body) = post(address, &format!("{number} {client}\n"));
                    let squares = format!("{} {}\n", number * number, client * client);
                    assert_eq!((status, body), (200, squares));
                }
            });
        }
    });
    let counters = running.end();
    assert_eq!(counters.items_done, 200);
}

#[test]
fn a_full_service_refuses_at_once_and_answers_what_it_took() {
    let running = start();
    running.gate.set_closed(true);
    // One batch on the device and two that wait, each of one request that fills it, and perhaps one
    // that is still open. Further requests are refused while the gate is closed.
    let full = vec!["3"; BATCH as usize].join(" ");
    let (report, reports) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..10 {
            let (report, full) = (report.clone(), &full);
            let address = running.address;
            // They must not expire before the gate opens.
            let send = move || send(address, "/square", "timeout-ms: 600000\r\n", full);
            scope.spawn(move || report.send(answer(send())).unwrap());
        }
        for _ in 0..6 {
            let (status, head, _) = reports.recv().unwrap();
            assert_eq!(status, 503);
            assert!(head.contains("retry-after: 1"), "{head}");
        }
        running.gate.set_closed(false);
    });
    drop(report);
    let squares = vec!["9"; BATCH as usize].join(" ") + "\n";
    let answers: Vec<_> = reports.into_iter().collect();
    let done = answers.iter().filter(|(status, ..)| *status == 200);
    assert!(done.clone().count() >= 3);
    assert!(done.clone().all(|(_, _, body)| *body == squares));
    let done = done.count() as u64;
    assert_eq!(running.end().items_done, done);
}

#[test]
fn a_request_that_expired_is_answered_and_not_computed() {
    let running = start();
    let expired = send(running.address, "/square", "timeout-ms: 0\r\n", "1 2");
    assert_eq!(answer(expired).0, 504);
    let counters = running.end();
    assert_eq!((counters.items_done, counters.items_expired), (0, 1));
}

#[test]
fn bad_requests_are_answered_with_the_reason() {
    let running = start();
    let address = running.address;
    let (status, _, body) = post(address, "1 two 3");
    assert_eq!((status, &*body), (400, "word 2 is no number: \"two\"\n"));
    let (status, _, body) = answer(send(address, "/square", "timeout-ms: soon\r\n", "1"));
    assert_eq!(status, 400, "{body}");
    assert_eq!(post(address, &"1 ".repeat(BODY_BYTES_MAX)).0, 413);
    // A body that fits, with more numbers than a batch has.
    let many = "1 ".repeat(BATCH as usize + 1);
    assert_eq!(post(address, &many).0, 413);
    assert_eq!(answer(send(address, "/cube", "", "1")).0, 404);
    assert_eq!(post(address, "").0, 200);
    running.end();
}

#[test]
fn the_service_ends_when_the_requests_that_it_has_are_answered() {
    let running = start();
    running.gate.set_closed(true);
    let held = send(running.address, "/square", "", "5");
    running.gate.wait_for_batch();
    // A second client leaves; its request harms neither the first nor the end.
    let left = send(running.address, "/square", "", "6");
    left.shutdown(Shutdown::Both).unwrap();
    let (address, gate) = (running.address, Arc::clone(&running.gate));
    let end = thread::spawn(|| running.end());
    // It takes no connection any more once it is ending.
    while TcpStream::connect(address).is_ok() {
        thread::yield_now();
    }
    gate.set_closed(false);
    let (status, _, body) = answer(held);
    assert_eq!((status, &*body), (200, "25\n"));
    assert!(end.join().unwrap().items_done >= 1);
}
