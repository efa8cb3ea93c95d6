//! The reference programs follow the protocol of `benches/reference/README.md`, as far as plain
//! Python can show.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

struct ReferenceProcess {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl ReferenceProcess {
    fn start(file: &str) -> ReferenceProcess {
        let folder = tapeloop_test_support::repository("benches/reference");
        let child = Command::new("python3")
            .args([folder.join(file).as_os_str(), "--serve".as_ref()])
            // The test does not build this program.
            .env("RUSTSASA", "rustsasa")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("python3 starts");
        let requests = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        ReferenceProcess {
            child,
            requests,
            answers,
        }
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, request: &str) -> String {
        writeln!(self.requests, "{request}").unwrap();
        self.answer()
    }

    fn close_input(mut self) -> ExitStatus {
        drop(self.requests);
        self.child.wait().unwrap()
    }
}

fn value<'line>(line: &'line str, name: &str) -> &'line str {
    let mut words = line.split(' ').filter_map(|word| word.split_once('='));
    let found = words.find(|(key, _)| *key == name);
    found.unwrap_or_else(|| panic!("{line} has no {name}")).1
}

/// The hash of the outputs of all slots, which `output` makes from the inputs.
fn hash(slots: usize, inputs: usize, stride: usize, output: impl Fn(f32) -> f32) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for slot in 0..slots {
        for i in (0..inputs).step_by(stride) {
            let input = ((i * 7 + slot * 13) % 1_021) as f32;
            for byte in output(input).to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    format!("{hash:016x}")
}

#[test]
#[ignore = "needs Python"]
fn points_are_measured_again_and_again_and_their_outputs_hashed() {
    let mut reference = ReferenceProcess::start("host_loop.py");
    let hello = reference.answer();
    assert!(hello.starts_with("hello name=plain_Python "), "{hello}");

    let factors = [2.0, 0.5, 2.0_f32];
    let chain = hash(3, 600, 2, |x| factors.iter().fold(x, |x, a| x * a + 1.0));
    let advance = hash(2, 100, 1, |x| x + 2.0 * 7.0);
    let requests = [
        ("chain n=300 stride=2 kernels=3 slots=3", &chain),
        ("advance n=100 stride=1 kernels=2 steps=7 slots=2", &advance),
    ];
    for (point, expected) in requests.iter().chain(&requests) {
        for _ in 0..2 {
            let request = format!("period workload={point} mode=stream millis=1");
            let answer = reference.ask(&request);
            assert!(answer.starts_with("ok "), "{answer}");
            assert_eq!(value(&answer, "hash"), *expected, "{point}");
            assert!(value(&answer, "period_ns").parse::<f64>().unwrap() > 0.0);
            assert!(value(&answer, "batches").parse::<u64>().unwrap() >= 2);
        }
    }
    assert!(reference.close_input().success());
}

#[test]
#[ignore = "needs Python"]
fn what_a_reference_cannot_do_it_refuses_and_goes_on() {
    let mut reference = ReferenceProcess::start("host_loop.py");
    reference.answer();
    let chain = "period workload=chain n=8 stride=1 kernels=1 slots=1";
    let refused = [
        ("what", "no_request_is_what"),
        ("period mode", "mode_has_no_value"),
        ("period mode=stream", "workload_is_missing"),
        ("period mode=stream workload=x", "no_workload_is_called_x"),
        (
            "period mode=stream workload=chain n=0",
            "n=0_is_out_of_range",
        ),
        (
            "period mode=stream workload=chain n=999999999 stride=9 kernels=1",
            "n_*_stride_is_out_of_range",
        ),
        (
            &format!("{chain} mode=graph millis=1"),
            "there_are_no_graphs_here",
        ),
    ];
    for (request, reason) in refused {
        assert_eq!(reference.ask(request), format!("no reason={reason}"));
    }
    let answer = reference.ask(&format!("{chain} mode=stream millis=1"));
    assert!(answer.starts_with("ok "), "{answer}");
    writeln!(reference.requests, "quit").unwrap();
    assert_eq!(reference.answer(), "");
    assert!(reference.child.wait().unwrap().success());
}

#[test]
#[ignore = "needs Python"]
fn cpu_tools_name_what_is_missing() {
    let mut reference = ReferenceProcess::start("cpu_tools.py");
    let hello = reference.answer();
    assert!(hello.starts_with("hello name=CPU_tools "), "{hello}");
    let tools = reference.ask("tools");
    for name in ["freesasa", "zsasa", "lahuta", "biotite", "gemmi"] {
        assert_ne!(value(&tools, name), "");
    }
    // A crate: its version is known without it.
    assert_eq!(value(&tools, "rustsasa").split('.').count(), 3, "{tools}");

    let refused = [
        ("part=read tool=zsasa", "zsasa_is_not_run_for_read"),
        ("part=none tool=zsasa", "no_part_is_called_none"),
        (
            "part=read tool=gemmi threads=1 points=100 list=no/such/list",
            "no/such/list:_No_such_file_or_directory",
        ),
    ];
    for (request, reason) in refused {
        let answer = reference.ask(&format!("rate {request}"));
        assert_eq!(answer, format!("no reason={reason}"));
    }
    assert!(reference.close_input().success());
}
