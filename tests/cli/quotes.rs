//! Quotation marks in text that is read.

use crate::workplace::Workplace;

/// Rows of two numbers and a note.
fn table(rows: usize, note: impl Fn(usize) -> &'static str) -> String {
    let row =
        |i: usize| format!("{},{},{}\n", (i * 7919 % 1000) as f64 / 7.0, (i * 104_729 % 997) as f64, note(i));
    "x,y,note\n".to_string() + &(1..=rows).map(row).collect::<String>()
}

fn stray(rows: usize, at: usize) -> String {
    table(rows, |i| if i == at { "\"6 inch pipe" } else { "ok" })
}

#[test]
fn a_text_that_ends_inside_a_quotation_is_refused_by_every_command() {
    let place = Workplace::new();
    place.write("good.csv", &table(2000, |_| "ok"));
    place.run("fit --data good.csv --k 1 --out model.json").success();
    let text = stray(20_000, 4001);
    place.write("stray.csv", &text);
    place.write("crlf.csv", &text.replace('\n', "\r\n"));
    let words = ["line 4002", "a quoted cell starting here is not closed in the 16000 lines to the end"];
    for line in [
        "fit --data stray.csv --k 1 --out m.json",
        "fit --data crlf.csv --k 1 --out m.json",
        "fit --data stray.csv --k 1 --out m.json --drop note --threads 1",
        "fit --data stray.csv --k 1 --out m.json --algo em",
        "eval --model model.json --data stray.csv",
        "predict --model model.json --data stray.csv --scores scores.csv",
        "predict --model model.json --data stray.csv --scores scores.csv --keep note",
        "impute --model model.json --data stray.csv --out filled.csv",
        "compare --no-pictures --data stray.csv --k 1 --algos obmm --out compared",
    ] {
        place.refuses(line, 1, &words);
        if !line.starts_with("compare") {
            place.refuses(&format!("{line} --bad-rows skip"), 1, &words);
        }
    }
    let piped = place.command("fit --data - --k 1 --out m.json").write_stdin(text).assert().code(1);
    assert!(String::from_utf8_lossy(&piped.get_output().stderr).contains(words[1]));
    for (text, line) in [(stray(20, 1), "line 2"), (stray(2000, 1), "line 2"), (stray(20, 20), "line 21")] {
        place.write("early.csv", &text);
        place.refuses("fit --data early.csv --k 1 --out m.json", 1, &[line, "a quoted cell starting here"]);
    }
    place.write("header.csv", &table(20, |_| "ok").replacen("note", "\"note", 1));
    place.refuses("fit --data header.csv --k 1 --out m.json", 1, &["line 1", "a quoted cell starting here"]);
    assert!(!place.files().contains(&"m.json".to_string()));
}

#[test]
fn a_quoted_cell_that_may_hold_rows_is_noted() {
    let place = Workplace::new();
    let said = |text: &str| {
        place.write("rows.csv", text);
        let assert = place.run("fit --data rows.csv --k 1 --out model.json").success();
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    let pair = |first, last| {
        table(20_000, move |i| match i {
            _ if i == first => "\"6 inch",
            _ if i == last => "5\"",
            _ => "ok",
        })
    };
    for (text, note) in [
        (pair(4001, 9001), "line 4002, row 4001: the quoted cell in column 'note' spans 5001 lines"),
        (pair(4001, 4003), "line 4002, row 4001: the quoted cell in column 'note' spans 3 lines"),
    ] {
        let said = said(&text);
        assert!(said.contains(note), "{said}");
    }
    let said = said(&table(2000, |_| "\"two\nlines\""));
    assert!(!said.contains("the quoted cell in column"), "{said}");
}

#[test]
fn a_cut_inside_a_quoted_cell_is_not_blamed_on_a_stray_quote() {
    let place = Workplace::new();
    place.write("rows.csv", &table(6001, |_| "\"a note of\nmany\nlines\nand\nmore\""));
    let fit = "fit --data rows.csv --k 1 --algo odmm --shards 3 --init-rows 100 --out model.json";
    place.refuses(&format!("{fit} --deal parts"), 1, &["cannot be cut into parts", "use --deal rows"]);
    place.run(&format!("{fit} --deal rows")).success();
}
