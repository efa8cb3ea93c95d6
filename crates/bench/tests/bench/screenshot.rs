//! The report in a browser: it fits its window at either width, on light and dark grounds.

use crate::made_up_run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tapeloop_bench::report::html;

const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The browser that `TAPELOOP_CHROMIUM` names, or the first on the path.
fn chromium() -> PathBuf {
    if let Some(named) = std::env::var_os("TAPELOOP_CHROMIUM") {
        return named.into();
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let places = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |f| f.join(name)));
    let found = places.into_iter().find(|place| place.is_file());
    found.expect("Chromium is on the path, or TAPELOOP_CHROMIUM names it")
}

struct BrowserView {
    width: u32,
    dark: bool,
}

const VIEWS: [BrowserView; 5] = [
    BrowserView {
        width: 1200,
        dark: false,
    },
    BrowserView {
        width: 1200,
        dark: true,
    },
    BrowserView {
        width: 390,
        dark: false,
    },
    BrowserView {
        width: 390,
        dark: true,
    },
    // The smallest width that shows wide drawings.
    BrowserView {
        width: 820,
        dark: false,
    },
];

/// Opens a page in the browser, with a new profile, and returns what the browser prints.
fn browse(
    chromium: &Path,
    folder: &Path,
    page: &Path,
    view: &BrowserView,
    more: &[String],
) -> String {
    let profile = tempfile::tempdir_in(folder).unwrap();
    let mut command = Command::new(chromium);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--window-size={},900", view.width));
    if view.dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    command.args(more).arg(format!("file://{}", page.display()));
    let output = command.stderr(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A script that runs in the page and replaces its body by the page's defects, one in each line.
const LOOKS: &str = r#"<script>
const wrong = [];
const seen = element => element.getClientRects().length > 0;
const name = element => (element.closest('figure') || {}).id || element.tagName;
// Headless windows have a smallest width, so the page has to fit a frame in the window.
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width)
  wrong.push('the page is ' + document.documentElement.scrollWidth + ' wide in ' + width);
const light = text => {
  const part = text.match(/[\d.]+/g).slice(0, 3).map(value => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const contrast = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const ground = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\)$|transparent/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
};
let drawings = 0, texts = 0;
for (const svg of document.querySelectorAll('figure svg[role=img]')) {
  if (!seen(svg)) continue;
  drawings += 1;
  const box = svg.getBoundingClientRect();
  if (!(box.width > 100 && box.height > 50)) wrong.push(name(svg) + ': an empty drawing');
  const boxes = [];
  for (const text of svg.querySelectorAll('text')) {
    texts += 1;
    const at = text.getBoundingClientRect();
    const says = name(svg) + ': "' + text.textContent.trim() + '" ';
    if (at.left < box.left - 4 || at.right > Math.min(box.right + 4, width))
      wrong.push(says + 'leaves the drawing: ' + at.left + ' to ' + at.right);
    if (at.top < box.top - 6 || at.bottom > box.bottom + 6) wrong.push(says + 'leaves it up or down');
    if (at.height < 11) wrong.push(says + 'is too small to read');
    const onBar = text.classList.contains('on-bar');
    if (!onBar && contrast(getComputedStyle(text).fill, ground(svg)) < 4.5)
      wrong.push(says + 'does not stand out');
    for (const [other, its] of boxes) {
      const over = Math.min(at.right, its.right) - Math.max(at.left, its.left);
      const under = Math.min(at.bottom, its.bottom) - Math.max(at.top, its.top);
      if (over > -3 && under > 4) wrong.push(says + 'overlaps "' + other.textContent.trim() + '"');
    }
    boxes.push([text, at]);
  }
}
for (const element of document.querySelectorAll('h1, h2, h3, p, li, figcaption, dt, dd, td, th')) {
  if (!seen(element) || element.closest('svg')) continue;
  const colour = getComputedStyle(element).color;
  if (contrast(colour, ground(element)) < 4.5)
    wrong.push(name(element) + ' "' + element.textContent.slice(0, 30) + '" does not stand out');
  const at = element.getBoundingClientRect();
  if (!element.closest('.scroll') && at.right > width + 1) wrong.push(name(element) + ' leaves the page');
}
const result = document.createElement('pre');
result.id = 'looks';
result.textContent = ['drawings ' + drawings, 'texts ' + texts, 'width ' + width,
  'ground ' + getComputedStyle(document.body).backgroundColor].concat(wrong).join('\n');
document.body.appendChild(result);
</script></body>"#;

/// What the browser finds in a page: its counts, and its defects.
fn looks(chromium: &Path, folder: &Path, page: &str, view: &BrowserView) -> Vec<String> {
    let file = folder.join("looked.html");
    // The page is shown in a frame, since windows do not become as narrow as a phone.
    let inner = page.replace("</body>", LOOKS);
    fs::write(&file, inner).unwrap();
    let frame = folder.join("frame.html");
    let scheme = if view.dark { "dark" } else { "light" };
    let framed = format!(
        "<!DOCTYPE html><html style=\"color-scheme: {scheme}\"><body style=\"margin: 0\">\
         <iframe id=frame src=\"looked.html\" style=\"width: {}px; height: 900px; border: 0\">\
         </iframe><script>window.onload = () => {{ const pre = document.createElement('pre'); \
         pre.id = 'outer'; pre.textContent = document.getElementById('frame').contentDocument\
         .getElementById('looks').textContent; document.body.appendChild(pre) }}</script></body>\
         </html>",
        view.width
    );
    fs::write(&frame, framed).unwrap();
    let more = [
        "--allow-file-access-from-files".to_owned(),
        "--virtual-time-budget=20000".to_owned(),
        "--dump-dom".to_owned(),
    ];
    let dom = browse(chromium, folder, &frame, view, &more);
    let (_, found) = dom
        .split_once("<pre id=\"outer\">")
        .expect("the page was looked at");
    let found = found.split("</pre>").next().unwrap();
    found.lines().map(str::to_owned).collect()
}

fn number(line: &str) -> u32 {
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn check(page: &str, drawings: u32) {
    let chromium = chromium();
    let page = &page.replace("<details", "<details open");
    let folder = tempfile::tempdir().unwrap();
    for view in &VIEWS {
        let found = looks(&chromium, folder.path(), page, view);
        let (counts, wrong) = found.split_at(4);
        assert!(wrong.is_empty(), "{} px: {wrong:#?}", view.width);
        assert_eq!(number(&counts[0]), drawings);
        assert_eq!(number(&counts[2]), view.width);
        let ground = if view.dark {
            "rgb(18, 23, 29)"
        } else {
            "rgb(255, 255, 255)"
        };
        assert_eq!(counts[3], format!("ground {ground}"));
    }
}

#[test]
#[ignore = "needs Chromium"]
fn a_full_report_fits_wide_and_narrow_light_and_dark() {
    check(&html(&made_up_run::full()).unwrap(), 14);
}

#[test]
#[ignore = "needs Chromium"]
fn a_report_with_trouble_and_long_names_fits() {
    let mut records = made_up_run::troubled();
    for record in &mut records {
        record.run.device = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition".to_owned();
        record.run.config += &"a_long_setting = ".repeat(20);
        if record.figures().is_some() {
            let figures = made_up_run::figures_of(record);
            for reference in &mut figures.references {
                reference.name += ", with a name that goes on for very much longer than it should";
            }
        }
    }
    check(&html(&records).unwrap(), 14);
}

#[test]
#[ignore = "needs Chromium"]
fn a_report_of_one_point_fits() {
    check(&html(&made_up_run::single()).unwrap(), 0);
}

#[test]
#[ignore = "needs Chromium"]
fn defects_of_a_page_are_found() {
    let chromium = chromium();
    let folder = tempfile::tempdir().unwrap();
    let page = html(&made_up_run::full()).unwrap();
    let broken = |from: &str, to: &str| {
        let view = &VIEWS[2];
        let page = page.replacen(from, to, 1);
        let found = looks(&chromium, folder.path(), &page, view);
        found[4..].join("\n")
    };
    let wide = broken("<main>", "<main><div style=\"width: 900px\">wide</div>");
    assert!(wide.contains("the page is"), "{wide}");
    let pale = broken("--ink: #1b2430", "--ink: #cccccc");
    assert!(pale.contains("does not stand out"), "{pale}");
    let words = "<text class=\"text\" x=\"50\" y=\"50\">words</text>";
    let end = "</svg>\n</div></figure>";
    let twice = broken(end, &format!("{words}{words}{end}"));
    assert!(twice.contains("overlaps \"words\""), "{twice}");
    let outside = broken(
        end,
        &format!("{}{end}", words.replace("\"50\" y", "\"350\" y")),
    );
    assert!(outside.contains("leaves the drawing"), "{outside}");
    // Both drawings are shown at once; the text of the wide one is too small to read.
    let small = broken(".wide-drawing { display: none }", "");
    assert!(small.contains("is too small to read"), "{small}");
}

#[test]
#[ignore = "needs Chromium"]
fn screenshots_show_something() {
    let chromium = chromium();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    fs::write(&page, html(&made_up_run::full()).unwrap()).unwrap();
    // A browser that draws one colour alone makes a file of a few kilobytes.
    for view in &VIEWS {
        let image = folder.path().join("shot.png");
        let more = [format!("--screenshot={}", image.display())];
        browse(&chromium, folder.path(), &page, view, &more);
        let bytes = fs::read(&image).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert!(bytes.len() > 20_000, "{} bytes", bytes.len());
        fs::remove_file(&image).unwrap();
    }
}
