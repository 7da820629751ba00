//! `fit --plot` and `show --plot`.

use std::fs;

use crate::common::*;
use crate::workplace::Workplace;

fn with_clusters() -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(1500, 3, 1), &["a", "b", "c"]));
    place
}

/// Lines in the colour of the first cluster, without the one in the legend: for each of its components two ellipses in each
/// panel of a pair, and a curve in each of one axis.
fn lines(svg: &str) -> usize {
    let is_line = |line: &&str| ["<polyline", "<path"].iter().any(|name| line.starts_with(name));
    svg.lines().filter(is_line).filter(|line| line.contains("#0072B2")).count() - 1
}

/// Components of the first cluster.
fn components(place: &Workplace) -> usize {
    place.json("show model.json")["clusters"][0]["components"].as_array().unwrap().len()
}

#[test]
fn a_fit_draws_the_k_that_it_keeps_and_the_same_seed_gives_the_same_picture() {
    let place = with_clusters();
    let result = place.json("fit --data rows.csv --k 1..4 --out model.json --plot one.svg");
    assert_eq!(result["plot"], "one.svg");
    let picture = place.read("one.svg");
    assert!(
        picture.contains(&format!("oBMM (whitened moments), K = {}", result["k"])),
        "{}",
        &picture[..600]
    );
    assert!(picture.contains("1,000 of 1,500 rows"));
    assert_eq!(lines(&picture), components(&place) * (2 * 3 + 3));
    place.run("fit --data rows.csv --k 1..4 --out again.json --plot two.svg --threads 1").success();
    assert_eq!(picture, place.read("two.svg"));
    assert_eq!(place.read("model.json"), place.read("again.json"), "looking does not change what is seen");
    place.run("fit --data rows.csv --k 1..4 --out other.json --seed 2 --plot three.svg").success();
    assert_ne!(picture, place.read("three.svg"));
}

#[test]
fn every_learner_and_every_source_of_rows_has_a_picture() {
    let place = with_clusters();
    for algo in ["oem", "odmm", "em"] {
        let line =
            format!("fit --data rows.csv --limit 600 --k 2 --algo {algo} --out m.json --plot {algo}.svg");
        let text = String::from_utf8(place.run(&line).success().get_output().stdout.clone()).unwrap();
        assert!(text.ends_with(&format!("picture written to {algo}.svg\n")), "{text}");
        assert!(place.read(&format!("{algo}.svg")).contains("all 600 rows"), "{algo}");
    }
    let mut piped = place.command("fit --data - --columns b --k 2 --out m.json --plot piped.png");
    piped.write_stdin(place.read("rows.csv")).assert().success();
    assert!(fs::read(place.path("piped.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn show_draws_a_model_with_rows_and_without() {
    let place = with_clusters();
    place.run("fit --data rows.csv --k 3 --out model.json").success();
    assert_eq!(place.json("show model.json --plot bare.svg")["plot"], "bare.svg");
    let bare = place.read("bare.svg");
    let components = components(&place);
    assert!(lines(&bare) == 9 * components && !bare.contains("rows"));
    place.run("show model.json --plot pair.svg --plot-axes c,1 --data rows.csv --limit 50").success();
    let pair = place.read("pair.svg");
    assert!(pair.contains("all 50 rows") && lines(&pair) == 4 * components);
    place.run("show model.json --plot apart.svg --overlap 1").success();
    assert_eq!(lines(&place.read("apart.svg")), 9, "each component has a colour of its own");
    place.run("show model.json --plot pc.svg --plot-axes principal --data rows.csv").success();
    assert!(place.read("pc.svg").contains("PC 3 ("));
    assert!(place.json("show model.json").get("plot").is_none());
    place.run("show model.json --plot quiet.svg --quiet").success().stdout("");
    assert_eq!(place.read("quiet.svg"), bare);
}

#[test]
fn what_cannot_be_drawn_is_refused_before_anything_is_learned() {
    let place = with_clusters();
    let fit = "fit --data rows.csv --k 2 --out model.json --plot";
    place.refuses(&format!("{fit} model.pdf"), 2, &["model.pdf", ".svg or .png"]);
    place.refuses(&format!("{fit} -"), 2, &[".svg or .png"]);
    place.refuses(&format!("{fit} a.svg --plot-axes bb"), 2, &["--plot-axes", "did you mean 'b'?"]);
    place.refuses(&format!("{fit} nowhere/a.svg"), 1, &["nowhere/a.svg"]);
    place.refuses("fit --data rows.csv --k 2 --out a.svg --plot a.svg", 2, &["a.svg", "replace"]);
    place.refuses("fit --data rows.csv --k 2 --out m.json --plot-axes a", 2, &["--plot"]);
    let parts = format!("{fit} a.svg --algo odmm --deal parts");
    place.refuses(&parts, 2, &["show MODEL --plot FILE --data FILE"]);
    assert_eq!(place.files(), ["rows.csv"]);
}

#[test]
fn rows_that_do_not_fit_the_model_are_refused_as_eval_does() {
    let place = with_clusters();
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    place.write("other.csv", &as_csv(&clusters(50, 3, 2), &["a", "b", "d"]));
    let told = |line: &str| {
        let assert = place.run(line).failure().code(1);
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let shown = told("show model.json --plot a.svg --data other.csv");
    assert!(shown.contains("no column 'c'"), "{shown}");
    assert_eq!(shown, told("eval --model model.json --data other.csv"));
    place.refuses("show model.json --data rows.csv", 2, &["--plot"]);
    place.refuses("show - --plot a.svg --data -", 2, &["standard input"]);
    place.refuses("show model.json --plot a.gif", 2, &["a.gif", ".svg or .png"]);
    assert!(!place.path("a.svg").exists());
}

#[test]
fn show_writes_a_page_with_rows_of_the_model_or_of_the_data() {
    let place = Workplace::new();
    place.write("rows.csv", &crate::common::as_csv(&crate::common::clusters(6000, 2, 1), &["x", "y"]));
    place.run("fit --data rows.csv --k 2..3 --out model.json --quiet").success();
    let shown = place.run("show model.json --html page.html").success();
    assert!(String::from_utf8_lossy(&shown.get_output().stdout).contains("page written to page.html"));
    let page = place.read("page.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("\"name\":\"x\""), "{page}");
    // With other rows, another K and nothing on standard output.
    place.write("few.csv", "y,x\n0,1\n0,2\n0,3\n");
    let quiet = place.run("show model.json --k 2 --data few.csv --html few.html --quiet").success();
    assert!(quiet.get_output().stdout.is_empty());
    let few = place.read("few.html");
    assert!(few.contains("\"rows_in_all\":3") && few.contains("2 components"), "{few}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("page.html")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "it has rows of the data");
    }
    place.refuses("show model.json --data rows.csv", 2, &["--plot FILE or --html FILE"]);
    place.refuses("show model.json --html model.json", 2, &["model.json"]);
}
