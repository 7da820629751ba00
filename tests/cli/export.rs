//! `gmm-bmm export` and what `show --json` has of every kind of model.

use serde_json::Value;

use crate::common::{as_csv, clusters};
use crate::workplace::Workplace;

/// A place with models of every kind of learner.
fn with_models() -> (Workplace, Vec<&'static str>) {
    let place = Workplace::new();
    let rows = |seed| as_csv(&clusters(600, 2, seed), &["\"x, m\"", "y"]);
    place.write("rows.csv", &rows(1));
    place.write("more.csv", &rows(2));
    place.write("other.csv", &rows(3));
    let fit = "fit --data rows.csv --quiet --init-rows 200";
    for (options, out) in [
        ("--k 3", "obmm"),
        ("--k 3 --algo oem", "oem"),
        ("--k 3 --algo odmm --shards 2", "odmm"),
        ("--k 2..3", "several"),
        ("--k 2..3 --algo oem", "severaloem"),
        ("--k auto", "auto"),
        ("--k 3 --no-rows", "norows"),
        ("--k 3 --algo odmm --deal parts --shards 2", "parts"),
    ] {
        place.run(&format!("{fit} {options} --out {out}.json")).success();
    }
    place.run("fit --data rows.csv --quiet --k 3 --algo em --out em.json").success();
    place.run("fit --data rows.csv --quiet --k 2..3 --algo em --out severalem.json").success();
    for (data, shard) in [("more", 1), ("other", 2)] {
        let line =
            format!("fit --data {data}.csv --prior obmm.json --shard {shard}/2 --out s{shard}.json --quiet");
        place.run(&line).success();
    }
    place.run("merge --prior obmm.json s1.json s2.json --out merged.json --quiet").success();
    place.run("synth --k 3 --d 2 --n 100 --out four.csv --truth truth.json --quiet").success();
    let kinds = vec![
        "obmm",
        "oem",
        "odmm",
        "several",
        "severaloem",
        "auto",
        "norows",
        "parts",
        "em",
        "severalem",
        "s1",
        "merged",
        "truth",
    ];
    (place, kinds)
}

/// The values of an array in an archive, which is the only one whose name has this length or is the first.
fn array<const N: usize>(archive: &[u8], name: &str) -> Vec<[u8; N]> {
    let begin = archive.windows(name.len()).position(|part| part == name.as_bytes()).unwrap();
    let number = |at: usize| u32::from_le_bytes(archive[at..at + 4].try_into().unwrap()) as usize;
    let (size, content) = (number(begin - 8 - 4), begin + name.len());
    let header = u16::from_le_bytes([archive[content + 8], archive[content + 9]]) as usize;
    let values = &archive[content + 10 + header..content + size];
    values.chunks_exact(N).map(|chunk| chunk.try_into().unwrap()).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

#[test]
fn every_kind_of_model_is_shown_and_exported_with_the_same_numbers() {
    let (place, kinds) = with_models();
    for kind in kinds {
        let shown = place.json(&format!("show {kind}.json"));
        let components = shown["components"].as_array().unwrap();
        let of = |name: &str| -> Vec<f64> { components.iter().flat_map(|c| numbers(&c[name])).collect() };
        let columns = shown["columns"].as_array().unwrap().len();
        assert_eq!(components.len() as u64, shown["k"].as_u64().unwrap(), "{kind}");
        assert!((of("weight").iter().sum::<f64>() - 1.0).abs() < 1e-9, "{kind}");
        assert_eq!(of("mean").len(), components.len() * columns, "{kind}");
        assert_eq!(of("covariance").len(), components.len() * columns * columns, "{kind}");
        for component in components {
            assert!(component["identifier"].is_u64(), "{kind}");
            assert_eq!(component["cluster"].is_u64(), component["outlier"] == false, "{kind}");
        }
        let written = place.json(&format!("export {kind}.json --out {kind}"));
        assert_eq!(written["files"].as_array().unwrap().len(), 3);
        let archive = std::fs::read(place.path(&format!("{kind}/mixture.npz"))).unwrap();
        let doubles = |name: &str| -> Vec<f64> {
            array::<8>(&archive, name).into_iter().map(f64::from_le_bytes).collect()
        };
        assert_eq!(doubles("weights.npy"), of("weight"), "{kind}");
        assert_eq!(doubles("means.npy"), of("mean"), "{kind}");
        assert_eq!(doubles("covariances.npy"), of("covariance"), "{kind}");
        let identifiers = array::<8>(&archive, "identifiers.npy").into_iter().map(u64::from_le_bytes);
        assert_eq!(identifiers.map(|own| own as f64).collect::<Vec<_>>(), of("identifier"), "{kind}");
        let (log_densities, rows) = (doubles("rank_log_densities.npy"), doubles("rank_rows.npy"));
        assert_eq!((rows.len(), rows.is_empty()), (log_densities.len(), kind == "truth"), "{kind}");
        let counted: f64 = rows.iter().sum();
        assert!(rows.is_empty() || kind == "merged" || Some(counted) == shown["rows"].as_f64(), "{kind}");
        assert!(log_densities.is_sorted(), "{kind}");
        let means = place.read(&format!("{kind}/means.csv"));
        assert_eq!(means.lines().count(), components.len() + 1, "{kind}: {means}");
        let line = means.lines().nth(1).unwrap();
        let cells: Vec<f64> = line.split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(cells[0], of("weight")[0]);
        assert_eq!(cells[1..], of("mean")[..columns]);
        let covariances = place.read(&format!("{kind}/covariances.csv"));
        assert_eq!(covariances.lines().count(), components.len() * columns + 1, "{kind}");
    }
}

#[test]
fn names_are_quoted_and_one_k_can_be_chosen() {
    let (place, _) = with_models();
    place.run("export several.json --k 2 --out two").success();
    let means = place.read("two/means.csv");
    assert!(means.starts_with("component,cluster,weight,\"x, m\",y\n"), "{means}");
    assert_eq!(means.lines().count(), 3);
    assert!(place.read("two/covariances.csv").lines().nth(1).unwrap().contains(",\"x, m\","));
    place
        .run("export several.json --k 2 --out two.npz")
        .success()
        .stdout(predicates::str::contains("two.npz"));
    assert_eq!(
        std::fs::read(place.path("two.npz")).unwrap(),
        std::fs::read(place.path("two/mixture.npz")).unwrap()
    );
    // Existing files are replaced.
    place.run("export several.json --out two").success();
    assert_eq!(
        place.read("two/means.csv").lines().count(),
        place.json("show several.json")["k"].as_u64().unwrap() as usize + 1
    );
    place.refuses("export several.json --k 9 --out nine", 2, &["K = 2–3"]);
}

#[test]
fn a_wrong_place_is_refused_before_anything_is_written() {
    let (place, _) = with_models();
    place.write("file", "mine");
    place.refuses("export obmm.json --out file", 2, &["'file' is a file, not a folder"]);
    place.refuses("export obmm.json --out means.csv", 2, &["neither a folder nor a file", ".npz"]);
    place.refuses("export obmm.json --out -", 2, &["neither a folder nor a file"]);
    place.refuses("export missing.json --out new", 1, &["there is no file 'missing.json'"]);
    place.refuses("export obmm.json --out no/where.npz", 1, &["where.npz", "make it first"]);
    place.refuses("export rows.csv --out new", 1, &["rows.csv", "looks like a CSV"]);
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::copy(place.path("obmm.json"), place.path("in/mixture.npz")).unwrap();
    place.refuses("export in/mixture.npz --out in", 2, &["would replace a file that this command reads too"]);
    assert_eq!(place.read("file"), "mine");
}
