//! Other programs that do the same work, which run between the engine's repetitions.
//!
//! `benches/reference/README.md` defines the protocol.

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tapeloop_engine::error::{Context, Error, ErrorKind, Result};
use tapeloop_error::internal::{thread, thread_error};

/// The longest time for an answer, which may be about thousands of files. A program that takes longer is
/// killed, so that its late answer is not taken for that of the next request.
const ANSWER_MAX: Duration = Duration::from_secs(300);

/// The longest time from `quit` to the end of a program, which has only to free what it holds. One that takes
/// longer is killed.
const END_MAX: Duration = Duration::from_secs(5);

const ENDED: &str = "the program has ended";

/// A reference program that runs. Dropping it waits until the program has ended, 5 s at most.
pub struct ReferenceProgram {
    name: String,
    child: Child,
    /// Dropped to end the program.
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    /// Why the program gets no more requests.
    lost: Option<String>,
}

/// The answer of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Keys with their values.
    Done(Vec<(String, String)>),
    /// The reason why the program does not do the work.
    Not(String),
}

impl ReferenceProgram {
    /// Starts a program and waits for its greeting. A thread reads its output, so that waiting can end.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a program that does not start or does not greet, [`ErrorKind::Config`]
    /// for an empty command.
    pub fn start(command: &[String]) -> Result<Self> {
        let place = || format!("reference `{}`", command.join(" "));
        let Some((program, args)) = command.split_first() else {
            return Err(Error::config("a reference has an empty command"));
        };
        let spawned = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut child = spawned.within(place)?;
        let (sender, answers) = unbounded();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let Some(stdout) = stdout else {
            return Err(Error::new(ErrorKind::Io, "the program has no output")).within(place);
        };
        let reading = move || {
            let lines = BufReader::new(stdout).split(b'\n');
            for line in lines.map_while(|line| line.ok()) {
                // Text of another encoding is an answer too, and not the end of the program.
                let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
                if sender.send(line.into_owned()).is_err() {
                    break;
                }
            }
        };
        // The thread ends with the program's output.
        let started = thread("tapeloop-reference").spawn(reading);
        started.map_err(thread_error).within(place)?;
        let mut program = ReferenceProgram {
            name: String::new(),
            child,
            requests: stdin,
            answers,
            lost: None,
        };
        let hello = program.answer().within(place)?;
        let Some(facts) = hello.strip_prefix("hello ").map(pairs) else {
            return Err(Error::new(
                ErrorKind::Io,
                format!("the program began with {hello:?} instead of `hello`"),
            ))
            .within(place);
        };
        let fact = |key: &str| facts.iter().find(|(name, _)| name == key);
        let text = |key: &str| fact(key).map(|(_, value)| value.replace('_', " "));
        let parts = [text("name"), text("version")].into_iter().flatten();
        program.name = parts.collect::<Vec<_>>().join(" ");
        Ok(program)
    }

    /// The program's name and version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and waits for the answer. After a program has ended or failed to answer, it
    /// gets no more requests, and every answer is [`Answer::Not`].
    pub fn ask(&mut self, request: &str) -> Answer {
        if let Some(lost) = &self.lost {
            return Answer::Not(lost.clone());
        }
        match self.send(request).and_then(|()| self.answer()) {
            Ok(line) => parse(&line),
            Err(error) => {
                tracing::warn!(name = self.name, %error, request, "a reference program is lost");
                // This fails only for a program that has ended.
                let _ = self.child.kill();
                self.lost = Some(error.message().to_owned());
                Answer::Not(error.message().to_owned())
            }
        }
    }

    /// Writes a line. An error of kind [`ErrorKind::Io`] means that the program has ended.
    fn send(&mut self, request: &str) -> Result<()> {
        let requests = self.requests.as_mut();
        let sent = requests.map_or(Ok(()), |requests| writeln!(requests, "{request}"));
        sent.map_err(|_| Error::new(ErrorKind::Io, ENDED))
    }

    /// Waits for the program's next line, up to [`ANSWER_MAX`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if there is none by then, or the program has ended.
    fn answer(&mut self) -> Result<String> {
        self.answers.recv_timeout(ANSWER_MAX).map_err(|error| {
            Error::new(
                ErrorKind::Io,
                match error {
                    RecvTimeoutError::Timeout => "the program does not answer",
                    RecvTimeoutError::Disconnected => ENDED,
                },
            )
        })
    }
}

impl Drop for ReferenceProgram {
    fn drop(&mut self) {
        // A program that does not know `quit`, or was not sent it, ends with its input.
        let _ = self.send("quit");
        self.requests = None;
        let start = Instant::now();
        while start.elapsed() < END_MAX && self.lost.is_none() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // These fail only for a program that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// The value of a key, as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.text(key)?.parse().ok()
    }

    /// The value of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self {
            Answer::Done(pairs) => {
                let mut pairs = pairs.iter();
                pairs
                    .find(|(name, _)| name == key)
                    .map(|(_, value)| &**value)
            }
            Answer::Not(_) => None,
        }
    }
}

/// The words `key=value` of a line. Other words are skipped, as the protocol leaves room for more.
fn pairs(text: &str) -> Vec<(String, String)> {
    let words = text.split_whitespace();
    words
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Parses an answer of another program: `ok` with figures, or `no` with a reason, in which `_` stands for a
/// space.
fn parse(line: &str) -> Answer {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("ok", rest) => Answer::Done(pairs(rest)),
        ("no", rest) => {
            let reason = rest.strip_prefix("reason=").unwrap_or(rest);
            Answer::Not(reason.replace('_', " "))
        }
        _ => Answer::Not(format!("the program answered {line:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a shell script as a reference program.
    fn shell(script: &str) -> Result<ReferenceProgram> {
        ReferenceProgram::start(&["sh", "-c", script].map(str::to_owned))
    }

    #[test]
    fn answers_are_read_by_their_keys() {
        let script = "echo hello name=A_program version=1.2; read line; \
                      echo ok period_ns=12.5 asked=$(echo $line | tr ' ' _); \
                      read line; echo no reason=not_that";
        let mut program = shell(script).unwrap();
        assert_eq!(program.name(), "A program 1.2");
        let answer = program.ask("period n=3");
        assert_eq!(answer.number("period_ns"), Some(12.5));
        assert_eq!(answer.text("asked"), Some("period_n=3"));
        assert_eq!(program.ask("more"), Answer::Not("not that".to_owned()));
        assert_eq!(program.ask("again"), Answer::Not(ENDED.to_owned()));
        assert_eq!(program.ask("again").number("period_ns"), None);
    }

    #[test]
    fn an_answer_that_is_no_utf_8_does_not_end_the_program() {
        let script =
            "echo hello name=a; read line; printf 'no reason=\\377\\n'; read line; echo ok n=1";
        let mut program = shell(script).unwrap();
        assert_eq!(program.ask("one"), Answer::Not("\u{fffd}".to_owned()));
        assert_eq!(program.ask("two").number("n"), Some(1.0));
    }

    #[test]
    fn a_program_that_does_not_greet_is_an_error_with_its_command() {
        for (script, message) in [("echo good day", "good day"), ("exit 1", "ended")] {
            let error = shell(script).err().unwrap().to_string();
            assert!(error.contains(message) && error.contains(script), "{error}");
        }
        let error = ReferenceProgram::start(&["/nonexistent/program".to_owned()]);
        assert!(
            error
                .err()
                .unwrap()
                .to_string()
                .contains("/nonexistent/program")
        );
        assert!(ReferenceProgram::start(&[]).is_err());
    }
}
