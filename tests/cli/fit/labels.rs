//! Clusters, outlier components, and labels that last.

use ndarray::{Array2, Axis, concatenate, s};
use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

/// Rows around three centres, one of which is a chain of overlapping parts: three clusters that are not all Gaussian.
fn chain_and_two(rows: usize, seed: u64) -> Array2<f64> {
    let mut data = normals(rows, 2, seed);
    for (i, mut row) in data.outer_iter_mut().enumerate() {
        let along = (i / 2 % 40) as f64 / 4.0;
        let centre = match i % 4 {
            0 | 1 => [along, 0.1 * along * along],
            2 => [0.0, 40.0],
            _ => [60.0, 40.0],
        };
        row[0] += centre[0];
        row[1] += centre[1];
    }
    data
}

fn identifiers(shown: &Value) -> Vec<u64> {
    let components = shown["components"].as_array().unwrap().iter();
    let mut identifiers: Vec<u64> =
        components.map(|component| component["identifier"].as_u64().unwrap()).collect();
    identifiers.sort_unstable();
    identifiers
}

/// The cells of some columns of a scores file.
fn labels(place: &Workplace, model: &str, data: &str) -> Vec<[u64; 3]> {
    place.run(&format!("predict --model {model} --data {data} --scores scores.csv")).success();
    let text = place.read("scores.csv");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("row,log_likelihood,component,probability,cluster,outlier,rank,not_scored")
    );
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 8, "{line}");
        [cells[2], cells[4], cells[5]].map(|cell| cell.parse().unwrap())
    };
    lines.map(cells).collect()
}

#[test]
fn show_and_predict_tell_of_the_same_clusters_and_spikes_are_no_mode() {
    let place = Workplace::new();
    let mut rows = chain_and_two(20_000, 3);
    // Twelve rows that belong nowhere.
    for i in 0..12 {
        rows[(i * 1600 + 77, i % 2)] += if i % 3 == 0 { -400.0 } else { 500.0 };
    }
    place.write("rows.csv", &as_csv(&rows, &["a", "b"]));
    place.run("fit --data rows.csv --k 7 --out model.json").success();
    let shown = place.json("show model.json");
    let clusters = shown["clusters"].as_array().unwrap();
    assert_eq!((clusters.len(), &shown["overlap"]), (3, &0.01.into()), "{shown}");
    assert_eq!(shown["outliers"].as_array().unwrap().len(), 1, "{shown}");
    let weights: Vec<f64> = clusters.iter().map(|cluster| number(&cluster["weight"])).collect();
    assert_close(weights[0], 0.5, 0.01, "the chain");
    for (component, cluster) in clusters.iter().flat_map(|cluster| {
        cluster["components"].as_array().unwrap().iter().map(move |component| (component, cluster))
    }) {
        let mut listed = shown["components"].as_array().unwrap().iter();
        let own = listed.find(|own| own["identifier"] == *component).unwrap();
        assert_eq!((&own["cluster"], &own["outlier"]), (&cluster["cluster"], &false.into()));
        assert!(cluster["cluster"].as_u64() <= component.as_u64(), "the smallest names the cluster");
    }

    let text = String::from_utf8(place.run("show model.json").success().get_output().stdout.clone()).unwrap();
    let chain = format!("  cluster {}", clusters[0]["cluster"]);
    let line = text.lines().find(|line| line.starts_with(&chain)).unwrap();
    assert!(text.contains("\n3 clusters (by --overlap: ") && line.contains(" %   components "), "{text}");
    let outliers = format!("  outliers          0.060 %   component {}\n", shown["outliers"][0]);
    assert!(text.contains(&outliers), "{text}");

    let found = labels(&place, "model.json", "rows.csv");
    let spikes: Vec<usize> = (0..12).map(|i| i * 1600 + 77).collect();
    for (i, [component, cluster, outlier]) in found.iter().enumerate() {
        let mut listed = shown["components"].as_array().unwrap().iter();
        let own = listed.find(|own| own["identifier"] == *component).unwrap();
        assert_eq!((own["cluster"].as_u64().unwrap_or(0), own["outlier"] == true), (*cluster, *outlier == 1));
        assert_eq!(*outlier == 1, spikes.contains(&i), "row {i}");
    }
    let of_mode = |mode: &[usize]| {
        let rows = found.iter().enumerate();
        let rows = rows.filter(|(i, [_, _, outlier])| mode.contains(&(i % 4)) && *outlier == 0);
        rows.map(|(_, [_, cluster, _])| *cluster).collect::<std::collections::BTreeSet<u64>>()
    };
    assert_eq!([of_mode(&[0, 1]).len(), of_mode(&[2]).len(), of_mode(&[3]).len()], [1, 1, 1]);

    let apart = place.json("show model.json --overlap 1");
    assert!(apart["clusters"].as_array().unwrap().len() > 4, "{apart}");
    for count in [1, 2, 5] {
        let shown = place.json(&format!("show model.json --clusters {count}"));
        assert_eq!(shown["clusters"].as_array().unwrap().len(), count, "{shown}");
        assert!(
            shown.get("overlap").is_none() && shown["outliers"].as_array().unwrap().len() == 1,
            "{shown}"
        );
    }
    place.run("predict --model model.json --data rows.csv --scores s.csv --clusters 2").success();
    let cluster = |line: &str| line.split(',').nth(4).unwrap().to_owned();
    let names: std::collections::BTreeSet<String> =
        place.read("s.csv").lines().skip(1).map(cluster).collect();
    assert_eq!(names.len(), 3, "two clusters, and 0 for outliers: {names:?}");
    place.run("export model.json --out exported --clusters 2").success();
    place.run("fit --data rows.csv --k 3 --out small.json --plot p.svg --clusters 2").success();
    place.refuses("fit --data rows.csv --k 3 --out small.json --clusters 2", 2, &["--plot", "'predict'"]);
    place.refuses("show model.json --clusters 99", 2, &["--clusters 99", "at most 6", "--k"]);
    for wrong in ["0", "-1"] {
        place.refuses(
            &format!("show model.json --clusters {wrong}"),
            2,
            &["--clusters", "whole number from 1"],
        );
    }
    place.refuses("show model.json --html -", 2, &["give its name"]);
    place.refuses("show model.json --clusters 2 --overlap 0.1", 2, &["--clusters", "--overlap"]);
    place.refuses("show model.json --overlap 1.5", 2, &["--overlap", "from 0 to 1"]);
    place.refuses("predict --model model.json --data rows.csv --overlap x", 2, &["--overlap"]);
}

#[test]
fn clusters_keep_their_names_while_a_stationary_stream_is_resumed_every_day() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&chain_and_two(12_000, 5), &["a", "b"]));
    place.write("test.csv", &as_csv(&chain_and_two(800, 6), &["a", "b"]));
    let clusters = || -> Vec<u64> {
        labels(&place, "model.json", "test.csv").into_iter().map(|[_, cluster, _]| cluster).collect()
    };
    place.run("fit --data rows.csv --limit 4000 --init-rows 2000 --k auto --out model.json").success();
    let first = clusters();
    for day in 1..5 {
        let skip = 4000 + (day - 1) * 2000;
        let line = format!("fit --data rows.csv --skip {skip} --limit 2000");
        place.run(&format!("{line} --resume model.json --out model.json")).success();
        assert_eq!(clusters(), first, "day {day}");
    }
}

/// Three clusters in the first part; a fourth appears in the second, third and last.
fn with_new_cluster() -> Workplace {
    let place = Workplace::new();
    let mut rows = normals(9000, 2, 3);
    for (i, mut row) in rows.outer_iter_mut().enumerate() {
        let centre = [[0.0, -100.0], [6.0, -100.0], [0.0, 0.0], [0.0, 40.0]];
        let centre = centre[if i >= 2000 && i % 2 == 0 { 3 } else { i % 3 }];
        row[0] += centre[0];
        row[1] += centre[1];
    }
    for (name, from, to) in [("a", 0, 2000), ("b", 2000, 4500), ("c", 4500, 9000)] {
        place.write(&format!("{name}.csv"), &as_csv(&rows.slice(s![from..to, ..]).to_owned(), &["x", "y"]));
    }
    place
}

#[test]
fn identifiers_are_small_and_no_other_component_gets_one_that_a_file_has_shown() {
    let place = with_new_cluster();
    let mut shown = std::collections::HashMap::<u64, Vec<f64>>::new();
    let mut line = "fit --data a.csv --init-rows 500".to_owned();
    for next in ["b", "c", ""] {
        place.run(&format!("{line} --out model.json")).success();
        line = format!("fit --data {next}.csv --resume model.json");
        for component in place.json("show model.json --all")["components"].as_array().unwrap() {
            let identifier = component["identifier"].as_u64().unwrap();
            let mean: Vec<f64> = component["mean"].as_array().unwrap().iter().map(number).collect();
            assert!(identifier < 30, "{component}");
            let before = shown.entry(identifier).or_insert_with(|| mean.clone());
            let moved = before.iter().zip(&mean).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(moved < 2.0, "{identifier}: {before:?} {mean:?}");
        }
    }
    assert!(shown.len() > 4, "{shown:?}");
}

#[test]
fn shards_and_merged_models_have_the_identifiers_of_their_prior() {
    let place = with_new_cluster();
    // The prior has identifiers of its own, from a revision.
    place.run("fit --data a.csv --data b.csv --init-rows 1000 --k 3 --out prior.json").success();
    let prior = place.json("show prior.json");
    assert!(identifiers(&prior).iter().any(|identifier| *identifier > 3), "{prior}");
    place.run("fit --data b.csv --prior prior.json --out p1.json").success();
    place.run("fit --data c.csv --prior prior.json --out p2.json").success();
    assert_eq!(identifiers(&place.json("show p1.json")), identifiers(&prior));
    place.run("merge --prior prior.json p1.json p2.json --out merged.json").success();
    let merged = place.json("show merged.json");
    assert_eq!(identifiers(&merged), identifiers(&prior), "nothing had to be moved");
    let own = |model: &str| labels(&place, model, "c.csv");
    assert_eq!(own("merged.json"), own("prior.json"));

    // The history begins with that of the prior.
    let (before, after) = (prior["revisions"].as_array().unwrap(), merged["revisions"].as_array().unwrap());
    assert_eq!(before.as_slice(), &after[..before.len()]);
    assert_eq!((after.len(), &after[before.len()]["reason"]), (before.len() + 1, &"merge".into()));
    let split = before.iter().flat_map(|revision| revision["moves"].as_array().unwrap());
    let split = &split.clone().next().expect("a new cluster takes a split")["split"];
    let words = format!("split {} into {} and {};", split["component"], split["into"][0], split["into"][1]);
    place.run("show merged.json --history").success().stdout(predicates::str::contains(words));

    // They last when more rows are learned.
    place.run("fit --data c.csv --resume merged.json --out more.json").success();
    assert_eq!(identifiers(&place.json("show more.json")), identifiers(&prior));
}

#[test]
fn the_closing_revision_of_a_merge_is_in_the_history_and_not_merged_again() {
    let place = with_new_cluster();
    place.run("fit --data a.csv --init-rows 1000 --k 3 --out prior.json").success();
    place.run("fit --data b.csv --prior prior.json --out p1.json").success();
    place.run("fit --data c.csv --prior prior.json --out p2.json").success();
    place.run("merge --prior prior.json p1.json --out one.json").success();
    let one = place.json("show one.json");
    let closing = one["revisions"].as_array().unwrap().last().unwrap();
    assert_eq!((&closing["reason"], &closing["kept"]), (&"merge".into(), &true.into()), "{closing}");
    let into = &closing["moves"][0]["split"]["into"][0];
    assert!(identifiers(&one).contains(&into.as_u64().unwrap()), "{one}");
    let kept = closing["moves"].as_array().unwrap().iter();
    let gone: Vec<u64> = kept.map(|made| made["split"]["component"].as_u64().unwrap()).collect();
    assert!(gone.iter().all(|component| !identifiers(&one).contains(component)), "{one}");

    place.run("merge --prior prior.json one.json p2.json --out grouped.json").success();
    place.run("merge --prior prior.json p1.json p2.json --out all.json").success();
    let weights = |model: &str| {
        let model: Value = serde_json::from_str(&place.read(model)).unwrap();
        vector(&model["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["a"])
    };
    let both = weights("grouped.json").into_iter().zip(weights("all.json"));
    both.for_each(|(grouped, all)| assert_close(grouped / all, 1.0, 1e-10, "a"));
}

#[test]
fn the_parts_of_odmm_have_the_identifiers_of_the_warm_up() {
    let place = with_new_cluster();
    let line = "fit --data a.csv --data b.csv --data c.csv --init-rows 1000 --k 3 --algo odmm --shards 3";
    let result = place.json(&format!("{line} --deal parts --out parts.json"));
    let closing = &result["revisions"][0];
    assert_eq!((&closing["reason"], &closing["kept"]), (&"merge".into(), &true.into()), "{closing}");
    let split = &closing["moves"][0]["split"];
    assert!((1..=3).contains(&split["component"].as_u64().unwrap()), "{closing}");
    assert!(split["into"][0].as_u64().unwrap() > 3);
}

#[test]
fn models_without_identifiers_count_their_components_in_the_order_of_the_file() {
    let place = Workplace::new();
    let rows = [[0.0, 0.2], [50.0, 0.3], [100.0, 0.5]]
        .map(|[centre, share]| normals((4000.0 * share) as usize, 1, 4) + centre);
    let rows = concatenate(Axis(0), &[rows[0].view(), rows[1].view(), rows[2].view()]).unwrap();
    place.write("rows.csv", &as_csv(&rows, &["x"]));
    place.run("fit --data rows.csv --k 3 --algo em --out em.json").success();
    let model: Value = serde_json::from_str(&place.read("em.json")).unwrap();
    let components =
        model["state"]["candidates"][0]["learned"]["point"]["mixture"]["components"].as_array().unwrap();
    let means: Vec<f64> = components.iter().map(|component| number(&component["mean"][0])).collect();
    for shown in place.json("show em.json")["components"].as_array().unwrap() {
        let place = shown["identifier"].as_u64().unwrap() as usize - 1;
        assert_eq!(number(&shown["mean"][0]), means[place]);
    }
    for ([component, ..], x) in labels(&place, "em.json", "rows.csv").iter().zip(rows.column(0)) {
        assert!((means[*component as usize - 1] - x).abs() < 8.0);
    }
}
