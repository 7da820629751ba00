//! Shards learned apart: `fit --algo odmm`, and `fit --prior` with `gmm-bmm merge`.

use gmm_bmm::dist::Posterior;
use ndarray::{Axis, s};
use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

fn with_parts() -> Workplace {
    let place = Workplace::new();
    let rows = clusters(9000, 3, 1);
    let header = ["a", "b", "c"];
    for (i, part) in rows.axis_chunks_iter(Axis(0), 3000).enumerate() {
        place.write(&format!("part{i}.csv"), &as_csv(&part.to_owned(), &header));
    }
    place.run("fit --data part0.csv --k 3 --out prior.json").success();
    place.run("fit --data part1.csv --prior prior.json --out p1.json").success();
    place.run("fit --data part2.csv --prior prior.json --out p2.json").success();
    place
}

#[test]
fn odmm_gives_the_same_bytes_on_any_number_of_threads_and_goes_on_where_it_stopped() {
    let place = Workplace::new();
    let rows = clusters(6000, 3, 1);
    let header = ["a", "b", "c"];
    place.write("rows.csv", &as_csv(&rows, &header));
    place.write("a.csv", &as_csv(&rows.slice(s![..2777, ..]).to_owned(), &header));
    place.write("b.csv", &as_csv(&rows.slice(s![2777.., ..]).to_owned(), &header));
    let line = "--algo odmm --shards 7 --warmup 1500 --k 2..3";
    for threads in [1, 2, 64] {
        place.run(&format!("fit --data rows.csv {line} --threads {threads} --out t{threads}.json")).success();
    }
    assert_eq!(place.read("t1.json"), place.read("t2.json"));
    assert_eq!(place.read("t1.json"), place.read("t64.json"));
    place.run(&format!("fit --data a.csv {line} --out part.json")).success();
    place.run("fit --data b.csv --resume part.json --out part.json").success();
    assert_eq!(place.read("t1.json"), place.read("part.json"));
    let shown = place.json("show t1.json");
    assert!(shown["merged"]["disagreement"].as_array().unwrap().len() >= 2);
}

#[test]
fn merging_does_not_depend_on_order_or_grouping() {
    let place = with_parts();
    let result = place.json("merge --prior prior.json p1.json p2.json --out m.json");
    assert_eq!(result["shards"], 2);
    assert_eq!(result["rows"], 6000);
    assert_eq!(result["prior_rows"], 3000);
    place.run("merge --prior prior.json p2.json p1.json --out swapped.json").success();
    place.run("merge --prior prior.json p1.json --out one.json").success();
    place.run("merge --prior prior.json one.json p2.json --out grouped.json").success();
    let level = |model: &str| {
        number(&place.json(&format!("eval --model {model} --data part0.csv"))["mean_log_likelihood"])
    };
    assert_eq!(place.read("m.json"), place.read("swapped.json"));
    for other in ["swapped.json", "grouped.json"] {
        assert_close(level(other), level("m.json"), 1e-10, other);
    }
    assert_close(level("one.json"), level("p1.json"), 1e-10, "one part is itself");
    place.run("show m.json").success().stdout(predicates::str::contains("2 shards merged"));
}

/// A prior that chose its K among several keeps their scores, which are not those of what is merged.
#[test]
fn a_prior_of_several_k_can_be_merged_with() {
    let place = with_parts();
    place.run("fit --data part0.csv --init-rows 300 --k 2..3 --out prior.json").success();
    assert!(place.read("prior.json").contains("\"scores\""));
    for part in 1..3 {
        place.run(&format!("fit --data part{part}.csv --prior prior.json --out p{part}.json")).success();
    }
    place.run("merge --prior prior.json p1.json p2.json --out merged.json").success();
    place.run("eval --model merged.json --data part0.csv").success();
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let place = with_parts();
    place.run("fit --data part1.csv --k 3 --out other.json").success();
    place.run("fit --data part2.csv --prior other.json --out stranger.json").success();
    place.run("fit --data part0.csv --k 3 --algo em --out batch.json").success();
    place.run("merge --prior prior.json p1.json p2.json --out both.json").success();
    let merge = |shards: &str| format!("merge --prior prior.json {shards} --out m.json");
    place.refuses(&merge("p1.json stranger.json"), 1, &["stranger.json", "was learned from prior"]);
    place.refuses(&merge("p1.json other.json"), 1, &["other.json", "not learned from a common prior"]);
    place.refuses(&merge("p1.json p1.json"), 1, &["same rows"]);
    place.refuses(&merge("both.json p2.json"), 1, &["both.json", "p2.json", "same rows"]);
    place.refuses(&merge("p1.json missing.json"), 1, &["missing.json"]);
    place.refuses("merge --prior batch.json p1.json --out m.json", 1, &["'em'"]);
    place.refuses(
        "merge --prior prior.json p1.json --expect 2 --out m.json",
        1,
        &["one is lost", "'p1.json'"],
    );
    place.refuses("fit --data part1.csv --prior batch.json --out m.json", 1, &["batch.json", "prior"]);
    place.refuses("fit --data part1.csv --prior prior.json --k 3 --out m.json", 2, &["--prior"]);
    // The same rows in another order are the same shard.
    let text = place.read("part2.csv");
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.reverse();
    place.write("reversed.csv", &format!("a,b,c\n{}\n", lines.join("\n")));
    place.run("fit --data reversed.csv --prior prior.json --out p2again.json").success();
    place.refuses(&merge("p2.json p2again.json"), 1, &["same rows"]);
}

#[test]
fn permuted_components_are_detected_and_align_puts_them_back() {
    let place = with_parts();
    let mut model: Value = serde_json::from_str(&place.read("p2.json")).unwrap();
    let posterior = &mut model["state"]["candidates"][0]["learned"]["bayes"]["posterior"];
    for list in ["a", "components"] {
        posterior[list].as_array_mut().unwrap().rotate_left(1);
    }
    place.write("half_permuted.json", &model.to_string());
    place.refuses("show half_permuted.json", 1, &["half_permuted.json", "matrix state"]);
    model["state"]["candidates"][0]["learned"]["bayes"]["working"].as_array_mut().unwrap().rotate_left(1);
    place.write("permuted.json", &model.to_string());
    place.refuses("merge --prior prior.json p1.json permuted.json --out wrong.json", 1, &["checksum"]);
    model.as_object_mut().unwrap().remove("checksum");
    place.write("permuted.json", &model.to_string());
    place.run("merge --prior prior.json p1.json p2.json --out straight.json").success();
    let warned = place.run("merge --prior prior.json p1.json permuted.json --out wrong.json").success();
    let said = String::from_utf8_lossy(&warned.get_output().stderr).into_owned();
    assert!(said.contains("permuted.json") && said.contains("--align"), "{said}");
    place.run("merge --prior prior.json p1.json permuted.json --align --out aligned.json").success();
    let learned = |name: &str| {
        serde_json::from_str::<Value>(&place.read(name)).unwrap()["state"]["candidates"][0]["learned"].clone()
    };
    assert_eq!(learned("straight.json"), learned("aligned.json"));
    assert_ne!(learned("straight.json"), learned("wrong.json"));
}

#[test]
fn a_shard_can_be_stopped_and_gone_on_with() {
    let place = with_parts();
    let text = place.read("part1.csv");
    let lines: Vec<&str> = text.lines().collect();
    place.write("first.csv", &(lines[..1001].join("\n") + "\n"));
    place.write("rest.csv", &format!("{}\n{}\n", lines[0], lines[1001..].join("\n")));
    place.run("fit --data first.csv --prior prior.json --out half.json").success();
    place.run("fit --data rest.csv --resume half.json --out whole.json").success();
    let learned = |name: &str| {
        serde_json::from_str::<Value>(&place.read(name)).unwrap()["state"]["candidates"][0]["learned"].clone()
    };
    assert_eq!(learned("whole.json"), learned("p1.json"));
    // What was resumed holds the first half too: together they would count it twice.
    place.refuses("merge --prior prior.json half.json whole.json --out m.json", 1, &["same rows"]);
    place.run("merge --prior prior.json whole.json p2.json --out m.json").success();
}

#[test]
fn numbered_shards_that_are_missing_or_repeated_are_named() {
    let place = with_parts();
    for i in [1, 2] {
        let line = format!("fit --data part{i}.csv --prior prior.json --shard {i}/3 --out n{i}.json");
        place.run(&line).success();
    }
    let merge = |shards: &str| format!("merge --prior prior.json {shards} --out m.json");
    place.refuses(&merge("n1.json n2.json"), 1, &["shard 3 of 3 missing", "--partial"]);
    place.refuses(&merge("n2.json"), 1, &["shards 1, 3 of 3 missing"]);
    place.refuses(&merge("n1.json p2.json"), 1, &["p2.json", "not numbered"]);
    // A shard that is retried, even on other rows, is still the same shard.
    place.run("fit --data part0.csv --prior prior.json --shard 2/3 --out again.json").success();
    place.refuses(
        &merge("n2.json again.json n1.json"),
        1,
        &["'n2.json' and 'again.json' are both shard 2 of 3"],
    );
    place.run("fit --data part0.csv --prior prior.json --shard 3/4 --out other.json").success();
    place.refuses(&merge("n1.json other.json"), 1, &["other.json", "of 4 shards"]);
    let result = place.json(&(merge("n1.json n2.json") + " --partial"));
    assert_eq!(result["missing"], serde_json::json!([3]));
    // A partial merge is merged on with what was missing.
    place.run("fit --data part0.csv --prior prior.json --shard 3/3 --out n3.json").success();
    place.refuses("merge --prior prior.json m.json n2.json --out all.json", 1, &["same rows"]);
    place.run("merge --prior prior.json m.json n3.json --out all.json").success();
    for wrong in ["0/3", "4/3", "3", "a/b"] {
        let line = format!("fit --data part1.csv --prior prior.json --shard {wrong} --out x.json");
        place.refuses(&line, 2, &["--shard"]);
    }
}

#[test]
fn shards_that_read_their_own_parts_give_what_the_same_parts_give_one_by_one() {
    let place = Workplace::new();
    let rows = clusters(9000, 3, 1);
    for (i, part) in rows.axis_chunks_iter(Axis(0), 3000).enumerate() {
        place.write(&format!("part{i}.csv"), &as_csv(&part.to_owned(), &["a", "b", "c"]));
    }
    let line = "fit --data part*.csv --k 3 --init-rows 1000 --algo odmm --deal parts --shards 3";
    place.run(&format!("{line} --threads 1 --out one.json")).success();
    place.run(&format!("{line} --threads 7 --out seven.json")).success();
    assert_eq!(place.read("one.json"), place.read("seven.json"));
    // The warm-up is the first 1000 rows of the first part. The first shard learns the rest of that part.
    place.run("fit --data part0.csv --limit 1000 --k 3 --out prior.json").success();
    for (i, part) in ["part0.csv --skip 1000", "part1.csv", "part2.csv"].iter().enumerate() {
        place.run(&format!("fit --data {part} --prior prior.json --out p{i}.json")).success();
    }
    place.run("merge --prior prior.json p0.json p1.json p2.json --out merged.json").success();
    let posterior = |name: &str, kind: &str| -> Posterior {
        let model: Value = serde_json::from_str(&place.read(name)).unwrap();
        serde_json::from_value(model["state"]["candidates"][0]["learned"][kind]["posterior"].clone()).unwrap()
    };
    assert_same_posterior(&posterior("one.json", "sharded"), &posterior("merged.json", "bayes"), 1e-10);
}

#[test]
fn parts_that_cannot_be_dealt_are_refused() {
    let place = with_parts();
    let fit = "fit --k 3 --out m.json --deal parts";
    place.refuses(&format!("{fit} --data part0.csv"), 2, &["--algo odmm"]);
    let fit = format!("{fit} --algo odmm --init-rows 1000");
    place.refuses(&format!("{fit} --data -"), 1, &["standard input", "file"]);
    place.refuses(&format!("{fit} --data part0.csv --limit 100"), 2, &["--limit"]);
    place.refuses(&format!("{fit} --data part0.csv --trace t.csv"), 2, &["--deal rows"]);
    place.refuses(&format!("{fit} --data part0.csv --shards 10"), 1, &["start needs 1000", "fewer shards"]);
    place.refuses(&format!("{fit} --data nothing*.csv"), 1, &["nothing*.csv"]);
}

#[test]
fn rows_of_the_prior_that_are_learned_again_are_noticed() {
    let place = with_parts();
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stderr.clone()).unwrap();
    let merge = "merge --prior prior.json --out all.json";
    assert!(!said(&format!("{merge} p1.json p2.json")).contains("learned again"));
    // The file of the prior, alone and after others.
    let warning = "of 64 rows drawn from those that the common prior has learned, 64 were learned again";
    assert!(said("fit --data part0.csv --prior prior.json --out again.json").contains(warning));
    assert!(said(&format!("{merge} p1.json again.json")).contains(warning));
    let line =
        "fit --data part2.csv --data part0.csv --shuffle-buffer 5000 --prior prior.json --out again.json";
    assert!(said(line).contains(warning));
    // A part of them in each of several shards is seen once these are merged.
    let mut shards = String::new();
    for i in 0..6 {
        let part = format!("--data part0.csv --skip {} --limit 500", 500 * i);
        let line = format!("fit {part} --prior prior.json --out q{i}.json");
        assert!(!said(&line).contains("learned again"), "{line}");
        shards += &format!(" q{i}.json");
    }
    assert!(said(&format!("{merge}{shards}")).contains(warning));
    let result = place.json(&format!("{merge} p1.json q0.json"));
    let repeated = result["prior_rows_repeated"].as_u64().unwrap();
    assert!((1..16).contains(&repeated) && result["prior_rows_sampled"] == 64, "{repeated}");
    // A resumed shard and a merged one remember it.
    let line = "fit --data part1.csv --resume again.json --out on.json";
    assert!(said(line).contains("64 were learned again"));
    place.run(&format!("{merge}{shards}")).success();
    assert!(said("merge --prior prior.json all.json p1.json --out more.json").contains(warning));
}

/// The file `name` with some text replaced and without its checksum, as somebody might edit it.
fn edited(place: &Workplace, name: &str, from: &str, to: &str) -> String {
    let text = place.read(name);
    assert!(text.contains(from), "{from}");
    let text = text.replace(from, to);
    let end = text.rfind(",\n \"checksum\"").unwrap();
    place.write("edited.json", &format!("{}\n}}\n", &text[..end]));
    "edited.json".to_string()
}

#[test]
fn counts_that_no_run_can_have_are_refused() {
    let place = with_parts();
    place.run("fit --data part1.csv --prior prior.json --shard 1/2 --out s1.json").success();
    let merge = |shard: &str| format!("merge --prior prior.json {shard} --partial --out all.json");
    for (from, to, words) in [
        ("\"of\": 2", "\"of\": 4294967295", "one of 4294967295 shards, and there can be from 1 to 1000000"),
        ("\"of\": 2", "\"of\": 0", "one of 0 shards"),
        ("\"shards\": [1]", "\"shards\": [3]", "it is shard 3 of 2"),
        ("\"shards\": [1]", "\"shards\": [1, 1]", "the number of a shard twice"),
        (
            "\"prior_rows\": 3000",
            "\"prior_rows\": 18446744073709551615",
            "rows, and there can be 2^53 at most",
        ),
    ] {
        place.refuses(&merge(&edited(&place, "s1.json", from, to)), 1, &["'edited.json'", "damaged", words]);
    }
    for (name, commands) in [
        ("p1.json", ["merge --prior prior.json edited.json p2.json --out all.json", "show edited.json"]),
        ("prior.json", ["fit --data part1.csv --resume edited.json --out all.json", "show edited.json"]),
    ] {
        for (from, words) in [
            ("\"rows\": 3000,\n  \"summaries\"", "it counts 18446744073709551615 rows"),
            ("\"rows_out_of_range\": 0", "it counts 18446744073709551615 safeguards"),
        ] {
            let to = from.replace("3000", "18446744073709551615").replace(": 0", ": 18446744073709551615");
            edited(&place, name, from, &to);
            for command in commands {
                place.refuses(command, 1, &["'edited.json'", words]);
            }
        }
    }
    // The largest count that is read; together with other rows it is too large.
    edited(
        &place,
        "p1.json",
        "\"rows\": 3000,\n  \"summaries\"",
        "\"rows\": 9007199254740992,\n  \"summaries\"",
    );
    place.refuses(
        "merge --prior prior.json edited.json p2.json --out all.json",
        1,
        &["9007199254743992 rows"],
    );
    assert!(!place.path("all.json").exists());
}
