//! The verdict of the report: its headline, how far to trust it, and its claims.

use crate::made_up_run::{figures_of, full};
use crate::report::{drawing, edited, headline, page};

#[test]
fn the_headline_names_both_sides_and_where_they_are_equal() {
    let page = page(&full());
    assert_eq!(
        headline(&page),
        "Graph replay runs 12 small kernels with 16 KiB batches 6.2 times as fast as stream \
         launches; from 8 MiB the link to the GPU is the limit and both are equally fast"
    );
    assert!(page.contains("Each additional kernel costs 4.2"));
    let trust = page.split("<p class=\"trust\">").nth(1).unwrap();
    let trust = trust.split("</p>").next().unwrap();
    assert_eq!(trust, "All 91 measurements are steady.");
}

#[test]
fn the_headline_claims_only_what_the_figures_support() {
    // Both modes take the same time; then they are too noisy to compare.
    let alike = |periods: &'static [f64]| {
        let mut records = edited(|figures| figures.period_ns = periods.to_vec());
        records.retain(|record| record.point.workload == "launch");
        page(&records)
    };
    let same = alike(&[9.7e3, 9.71e3, 9.69e3, 9.7e3, 9.72e3]);
    assert!(headline(&same).contains("16 KiB batches as fast as stream launches"));
    let unclear = alike(&[9e3, 3e3, 20e3]);
    assert!(headline(&unclear).starts_with("Too noisy to compare graph replay with stream"));
    let slow = edited(|_| ()).into_iter().map(|mut record| {
        if record.point.mode == "graph" {
            let slower = figures_of(&mut record).period_ns.iter().map(|ns| ns * 40.0);
            let slower = slower.collect();
            figures_of(&mut record).period_ns = slower;
        }
        record
    });
    let slow = page(&slow.collect::<Vec<_>>());
    assert!(headline(&slow).contains("only 0."), "{}", headline(&slow));
    // Without shares and stages it is unknown what bounds the point.
    let blind = page(&edited(|figures| {
        figures.shares.clear();
        figures.stages = None;
    }));
    assert!(
        !headline(&blind).contains("the limit"),
        "{}",
        headline(&blind)
    );
}

#[test]
fn on_a_noisy_machine_the_headline_compares_nothing() {
    // Half of the repetitions take three times as long, and graphs are still faster.
    let page = page(&edited(|figures| {
        let spread = |(place, ns): (usize, &f64)| ns * [1.0, 3.0][place % 2];
        figures.period_ns = figures.period_ns.iter().enumerate().map(spread).collect();
    }));
    let noisy = "Too noisy to compare graph replay with stream launches: 12 small kernels";
    assert!(headline(&page).starts_with(noisy), "{}", headline(&page));
    assert!(page.contains(" measurements are noisy"));
    let claims = page.split("<ul class=\"says\">").nth(1).unwrap();
    let claims = claims.split("</ul>").next().unwrap();
    assert!(claims.contains("too noisy to compare") && !claims.contains("graph replay is"));
}

#[test]
fn the_headline_of_features_is_what_engine_reaches() {
    let mut records = full();
    records.retain(|record| record.point.workload == "features" && record.point.axis == "base");
    records.retain(|record| record.point.mode == "graph");
    let mut ring = records[0].clone();
    ring.point.front = "ring".to_owned();
    figures_of(&mut ring)
        .period_ns
        .iter_mut()
        .for_each(|ns| *ns /= 2.0);
    records[0].point.axis = "front".to_owned();
    records.insert(0, ring);
    let page = page(&records);
    assert!(
        headline(&page).starts_with("Features of structures: Engine "),
        "{}",
        headline(&page)
    );
    assert!(headline(&page).contains("; the ring alone "));
    assert!(drawing(&page, "fronts").contains("Engine, items in and out"));
}

#[test]
fn each_claim_has_its_chart_and_each_section_is_in_the_contents() {
    let page = page(&full());
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    let contents = page
        .split("<nav")
        .nth(1)
        .unwrap()
        .split("</nav>")
        .next()
        .unwrap();
    for section in [
        "Graph replay against stream launches",
        "Latency",
        "All points",
    ] {
        assert!(contents.contains(section), "{section}");
    }
    let claims = page.split("<ul class=\"says\">").nth(1).unwrap();
    let claims = claims.split("</ul>").next().unwrap();
    assert_eq!(
        claims.matches("<li>").count(),
        claims.matches(">chart</a>").count()
    );
}

#[test]
fn the_report_says_that_a_graph_saves_nothing_on_the_cpu() {
    let mut records = full();
    assert!(!page(&records).contains("the same calls"));
    for record in &mut records {
        record.run.backend = "cpu".to_owned();
    }
    let page = page(&records);
    assert!(page.contains("On the CPU a graph makes the same calls as stream launches."));
    let headline = headline(&page);
    let is_rate = headline.contains("files to results, 16 threads") && headline.contains("atoms/s");
    assert!(is_rate, "{headline}");
    let claims = page.split("<ul class=\"says\">").nth(1).unwrap();
    let claims = claims.split("</ul>").next().unwrap();
    assert!(
        !claims.contains("times as fast as stream launches"),
        "{claims}"
    );
}
