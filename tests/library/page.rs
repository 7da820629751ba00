//! The page of a model: what it holds, and what a browser makes of it and of clicks.

use std::fs;

use gmm_bmm::dist::{Factor, Gaussian, Uniting};
use gmm_bmm::model::Recipe;
use gmm_bmm::scores::ColumnSummary;
use gmm_bmm::{ColumnNames, FitSettings, GaussianMixture, Model, OnlineFit, PageOptions};
use ndarray::{Array2, s};

use crate::browser::chromium;
use crate::common::*;

/// A name that ends the script element, the text of an element or an attribute, if it is not escaped.
const HOSTILE: &str = "</script><script>document.title='bad'</script><img src=x onerror=alert(1)>\"'&<!--";

fn model(rows: &Array2<f64>, names: &[&str], settings: FitSettings) -> Model {
    let mut fit = OnlineFit::new(ColumnNames::named(names.iter().copied()), settings).unwrap();
    fit.observe(rows.view()).unwrap();
    fit.mixture().unwrap();
    fit.to_model().unwrap()
}

fn page(model: &Model) -> String {
    let findings = vec![format!("a finding about {HOSTILE}")];
    model.to_html(&PageOptions { findings, ..PageOptions::default() }).unwrap()
}

/// The document after its script and a script of the test have run, in a window of this width; `None` without a browser.
fn dom(page: &str, test: &str, width: u32) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut page = page.to_string();
    if !test.is_empty() {
        // The policy allows only the page's own script.
        let policy = page.find("script-src 'sha256-").unwrap();
        let end = policy + page[policy..].find(';').unwrap();
        page.replace_range(policy..end, "script-src 'unsafe-inline'");
        let told = "const told = []; const tell = (text) => told.push(String(text));";
        let write = "document.body.append(Object.assign(document.createElement('pre'), { id: 'told', textContent: told.join('\\n') }));";
        let script = format!(
            "<script>{told} try {{ {test} }} catch (error) {{ tell(error); }} {write}</script></body>"
        );
        page = page.replace("</body>", &script);
    }
    fs::write(folder.path().join("page.html"), page).unwrap();
    let address = format!("file://{}", folder.path().join("page.html").display());
    let size = format!("--window-size={width},900");
    let output = chromium(&["--virtual-time-budget=2000", &size, "--dump-dom", &address])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a script of a test says, line by line.
fn told(page: &str, test: &str, width: u32) -> Option<Vec<String>> {
    let dom = dom(page, test, width)?;
    let told = dom.split("<pre id=\"told\">").nth(1).unwrap_or_else(|| panic!("{dom}"));
    Some(told.split("</pre>").next().unwrap().lines().map(String::from).collect())
}

#[test]
fn a_page_stands_on_its_own_and_escapes_every_name() {
    let rows = clusters(9000, 3, 1);
    let model = model(&rows, &["a", HOSTILE, "c"], FitSettings::obmm(2..=3));
    let page = page(&model);
    assert_eq!(page.matches("</script>").count(), 2, "those of the content and of the script");
    assert!(!page.contains("<img") && !page.contains("<!--"));
    assert_eq!(page.matches("http").count(), 2, "the policy's header, and the name of SVG");
    for forbidden in ["eval(", "innerHTML", "document.write", "@import", "url(http", "new Function"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page, self::page(&model), "the same model gives the same bytes");
    let Some(dom) = dom(&page, "", 1200) else { return };
    assert!(dom.contains("<title>Gaussian mixture</title>") && !dom.contains("<img"), "{dom}");
    assert!(dom.contains("&lt;img src=x onerror=alert(1)&gt;"), "the name is shown as text");
    for id in ["findings", "clusters", "profiles", "pairs", "course", "by-k"] {
        assert!(dom.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    let changed = model.revisions().filter(|revision| revision.kept).count();
    assert_eq!(dom.matches("<line class=\"revision\"").count(), changed);
    assert_eq!(dom.matches("<polygon class=\"ellipse\"").count(), model.k());
    assert!(dom.matches("<circle class=\"row\"").count() == 400);
}

#[test]
fn changes_of_the_data_are_marked() {
    let mut rows = clusters(40_000, 2, 1);
    rows.slice_mut(s![20_000.., ..]).mapv_inplace(|value| value + 9.0);
    let model = model(&rows, &["a", "b"], FitSettings::obmm([3]));
    let changes = model.data_changes().expect("the test needs a change").list.len();
    let Some(dom) = dom(&page(&model), "", 900) else { return };
    assert_eq!(dom.matches("<line class=\"alarm\"").count(), changes);
    assert!(dom.contains("the data change about row 20,"), "{dom}");
}

#[test]
fn clicks_and_keys_change_the_page() {
    let mut rows = clusters(9000, 3, 1);
    // Clusters far apart.
    rows.outer_iter_mut().enumerate().for_each(|(i, mut row)| row[2] += 40.0 * (i % 3) as f64);
    let model = model(&rows, &["first", "second", "third"], FitSettings::obmm([3]));
    let test = r##"
        const one = (selector) => document.querySelector(selector);
        const all = (selector) => document.querySelectorAll(selector).length;
        const shape = () => one("#pair polygon").getAttribute("points");
        tell(all("#clusters li button") + " clusters");
        one("#clusters li button").click();
        tell(one("#clusters li button").getAttribute("aria-pressed") + " " + (all(".row.dim") > 200) + " " + all(".ellipse.dim"));
        one("#all").click();
        tell(all(".row.dim") + " " + all("button[aria-pressed=true]:not([data-axis])"));
        const before = shape();
        one("button[data-axis=y][data-column='2']").click();
        tell(one("#axis-y").value + " " + one("#axis-x").value + " " + (shape() !== before) + " " + one("#pair").getAttribute("aria-label").slice(0, 32));
        one("#axis-x").value = "1";
        one("#axis-x").dispatchEvent(new Event("change"));
        tell(one("button[data-axis=x][aria-pressed=true]").dataset.column);
        one("#swap").click();
        tell(one("#axis-x").value + one("#axis-y").value);
        const key = (key) => one("#profiles .scroll").dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
        tell(one("#readout").textContent.startsWith("first in cluster"));
        key("ArrowDown"); key("ArrowDown"); key("ArrowDown"); key("ArrowRight");
        tell(one("#readout").textContent.startsWith("third in cluster") + " " + one("td.active").cellIndex);
        one("#profile tbody tr td").click();
        tell(one("#readout").textContent.startsWith("first in cluster"));
        one("#groups").value = "components";
        one("#groups").dispatchEvent(new Event("change"));
        tell(all("#profile thead th") + " " + one("#readout").textContent.includes("in component"));
        one("#order").value = "difference";
        one("#order").dispatchEvent(new Event("change"));
        tell(one("#profile tbody th span").textContent);
        const focused = [...document.querySelectorAll("button, select, a, summary, [tabindex='0']")].filter((element) => element.checkVisibility());
        tell(focused.every((element) => { element.focus(); return document.activeElement === element || element.disabled; }));
    "##;
    let Some(said) = told(&page(&model), test, 600) else { return };
    let expected = [
        "3 clusters",
        "true true 2",
        "0 0",
        "2 0 true Pair plot of first and third: 40",
        "1",
        "21",
        "true",
        "true 2",
        "true",
        "4 true",
        "third",
        "true",
    ];
    assert_eq!(said, expected);
}

/// Fifty components over sixty columns, as a model without rows.
fn large() -> Model {
    let noise = normals(50, 60, 1);
    let component = |j: usize| {
        let mean = noise.slice(s![j, ..]).mapv(|value| 4.0 * value).to_vec();
        Gaussian::new(mean, Factor::from_standard_deviations(&[1.5; 60]).unwrap()).unwrap()
    };
    let mixture = GaussianMixture::new(vec![0.02; 50], (0..50).map(component).collect()).unwrap();
    let names = ColumnNames::named((0..60).map(|j| format!("a rather long name of column {j}")));
    let summaries: Vec<ColumnSummary> =
        noise.columns().into_iter().map(|column| column.iter().map(|value| 4.0 * value).collect()).collect();
    Model::from_mixtures(vec![mixture], Recipe::Truth { seed: 1 }, &names, &summaries)
}

#[test]
fn a_large_model_has_a_small_page_that_fits_a_telephone() {
    let (model, rows) = (large(), normals(5000, 60, 2));
    let options =
        PageOptions { rows: Some(rows.view()), clusters: Uniting::default(), ..PageOptions::default() };
    let page = model.to_html(&options).unwrap();
    assert!(page.len() < 1_000_000, "{}", page.len());
    let test = "
        const wide = [...document.querySelectorAll('body *')].filter((element) => {
            const scrolls = element.closest('.scroll');
            return (!scrolls || element === scrolls) && element.getBoundingClientRect().right > innerWidth + 1;
        });
        tell(wide.length + (wide[0] ? wide[0].outerHTML.slice(0, 100) : ''));
        tell(document.querySelectorAll('#profile td').length + ' ' + document.querySelectorAll('#pair polygon').length);
    ";
    // Narrower windows do not exist; the picture's letters keep their size.
    for width in [500, 1200] {
        let Some(said) = told(&page, test, width) else { return };
        assert_eq!(said, ["0", "3000 50"], "{width}");
    }
}

#[test]
fn a_model_of_few_rows_or_of_one_column_has_a_page() {
    let few = model(&clusters(60, 1, 1), &["only"], FitSettings::obmm([1]));
    let bare = few.clone().without_rows();
    assert!(few.to_html(&PageOptions { k: Some(7), ..PageOptions::default() }).is_none());
    for (model, rows) in [(few, 60), (bare, 0)] {
        let Some(dom) = dom(&page(&model), "", 600) else { return };
        assert!(dom.contains("<section id=\"pairs\"") && !dom.contains("NaN"), "{dom}");
        assert_eq!(dom.matches("<circle class=\"row\"").count(), rows);
    }
}

/// Leaves pages and pictures of them to look at: `PAGE_OUT=DIR cargo test --test library -- page:: --ignored`.
#[test]
#[ignore = "writes where PAGE_OUT says"]
fn pages_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var("PAGE_OUT").unwrap());
    let small = model(&clusters(9000, 3, 1), &["first", "second", "third"], FitSettings::obmm(2..=4));
    for (name, model) in [("small", small), ("large", large())] {
        fs::write(folder.join(format!("{name}.html")), page(&model)).unwrap();
        for (width, scheme) in [(400, 0), (400, 1), (1200, 0), (1200, 1)] {
            let frame = format!(
                "<body style='margin:0'><iframe src='{name}.html' style='border:0;width:{width}px;height:4000px'></iframe>"
            );
            fs::write(folder.join("frame.html"), frame).unwrap();
            let shot =
                format!("--screenshot={}", folder.join(format!("{name}-{width}-{scheme}.png")).display());
            let address = format!("file://{}", folder.join("frame.html").display());
            let (size, scheme) = (
                format!("--window-size={width},4000"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            );
            chromium(&["--virtual-time-budget=2000", &scheme, &size, &shot, &address]).unwrap();
        }
    }
}
