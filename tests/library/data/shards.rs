//! Files dealt to shards.

use std::path::PathBuf;

use gmm_bmm::data::{Block, DataError, FileShards, ReadOptions};
use tempfile::TempDir;

use super::write;

fn written(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    write(folder.path(), name, text.as_bytes())
}

fn dealt(files: &[PathBuf], shards: usize) -> Result<FileShards, DataError> {
    ReadOptions::default().deal(files, shards)
}

fn read(files: &[PathBuf], shards: usize) -> Vec<Vec<f64>> {
    let dealt = dealt(files, shards).unwrap();
    let read_shard = |shard: usize| {
        let mut rows = ReadOptions::default().open_shard(&dealt, shard).unwrap();
        let mut block = Block::new(rows.columns().len());
        let mut values = Vec::new();
        while rows.read_block(&mut block, 3).unwrap() {
            values.extend_from_slice(block.values());
        }
        values
    };
    (0..shards).map(read_shard).collect()
}

#[test]
fn every_row_is_in_one_shard_whatever_the_line_ends_and_the_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<f64> = (0..37).flat_map(|i| [f64::from(i * i), 0.5]).collect();
    for end in ["\n", "\r\n", "\r"] {
        for header in ["", "alpha,beta", "\u{feff}alpha,beta"] {
            for last_end in [true, false] {
                let head = (!header.is_empty()).then(|| header.to_string());
                let rows = (0..37).map(|i| format!("{},0.5", i * i));
                let mut text = head.into_iter().chain(rows).collect::<Vec<_>>().join(end);
                text += if last_end { end } else { "" };
                let file = written(&folder, "rows.csv", &text);
                for shards in [1, 2, 5, 38, 45] {
                    let found = read(std::slice::from_ref(&file), shards);
                    assert_eq!(found.concat(), expected, "{shards} shards of {text:?}");
                }
            }
        }
    }
}

#[test]
fn ranges_are_of_about_equal_size_and_run_on_over_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = |from: u32, to: u32| (from..to).map(|i| format!("{i},1\n")).collect::<String>();
    let files = [
        written(&folder, "a.csv", &("x,y\n".to_string() + &text(1000, 1700))),
        written(&folder, "b.csv", &("x,y\n".to_string() + &text(1700, 2000))),
    ];
    let found = read(&files, 4);
    assert!(found.iter().all(|shard| shard.len() / 2 >= 248 && shard.len() / 2 <= 252));
    let rows = found.concat().chunks(2).map(|row| row[0]).collect::<Vec<_>>();
    assert_eq!(rows, (1000..2000).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn enough_files_are_dealt_whole_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> =
        (0..5).map(|i| written(&folder, &format!("{i}.csv"), &format!("{i},1\n"))).collect();
    let shards = read(&files, 2);
    assert_eq!(shards, [vec![0.0, 1.0, 2.0, 1.0, 4.0, 1.0], vec![1.0, 1.0, 3.0, 1.0]]);
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let packed = write(folder.path(), "rows.csv.gz", &[0x1f, 0x8b, 8, 0]);
    let said = dealt(std::slice::from_ref(&packed), 2).unwrap_err().to_string();
    assert!(said.contains("rows.csv.gz") && said.contains("cannot be cut into byte ranges"), "{said}");
    assert_eq!(dealt(&[packed], 1).unwrap().total_bytes(), 4);
    assert!(dealt(&[folder.path().join("none.csv")], 2).is_err());
}

#[test]
fn a_bad_row_in_a_range_is_named_by_where_the_range_begins() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..100).map(|i| if i == 80 { "x,1\n".into() } else { format!("{i},1\n") }).collect();
    let file = written(&folder, "rows.csv", &rows);
    let shards = dealt(&[file], 2).unwrap();
    let mut rows = ReadOptions::default().open_shard(&shards, 1).unwrap();
    let said = rows.read_block(&mut Block::new(2), 100).unwrap_err().to_string();
    assert!(said.contains("rows.csv from byte") && said.contains("'x'"), "{said}");
}
