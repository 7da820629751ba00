//! A bounded run of the properties in `fuzz/properties.rs`: the saved corpus, changes to it, and hostile inputs by name.
//! `GMM_BMM_FUZZ_ROUNDS` multiplies the number of changes.

#![cfg(feature = "cli")]

mod common;
#[path = "../fuzz/properties.rs"]
mod properties;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use gmm_bmm::data::{Input, ReadOptions};
use gmm_bmm::model::Seal;
use gmm_bmm::settings::{Algorithm, ObmmSettings, OdmmSettings, OemSettings};
use gmm_bmm::{FitSettings, Model, ModelError, OnlineFit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Counts what is allocated, so that a test can say how much memory an input may take.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// Safety: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn rounds(usual: usize) -> usize {
    let times = std::env::var("GMM_BMM_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    usual * times
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = repository("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no files", folder.display());
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Pieces of text that have meaning to one of the readers.
const WORDS: [&[u8]; 40] = [
    b",",
    b";",
    b"\t",
    b" ",
    b"|",
    b"\n",
    b"\r",
    b"\r\n",
    b"\"",
    b"\"\"",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xe9",
    b"\x1f\x8b",
    b"NaN",
    b"inf",
    b"-",
    b"1e400",
    b"-1e150",
    b"1e151",
    b"4.9e-324",
    b"0",
    b"-0.0",
    b"1,5",
    b"NA",
    b"?",
    b"x",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"18446744073709551616",
    b"18446744073709551615",
    b"1e308",
    b"\\u0000",
    b":",
    b"--data",
    b"..",
];

/// A few changes at random places: bits flipped, stretches removed, doubled or overwritten by words, a cut.
fn changed(seed: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..20)).min(bytes.len());
        match rng.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => drop(bytes.splice(at..at, WORDS[rng.random_range(0..WORDS.len())].iter().copied())),
            4 => drop(bytes.splice(at..end, WORDS[rng.random_range(0..WORDS.len())].iter().copied())),
            5 if rng.random_range(0..10) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

/// The corpus as it is, and then changes to it. A failing input is named by how to make it again.
fn holds_for_corpus_and_changes(target: &str, property: fn(&[u8]), changes: usize) {
    let corpus = corpus(target);
    for (path, bytes) in &corpus {
        let held = std::panic::catch_unwind(|| property(bytes));
        assert!(held.is_ok(), "{} breaks the property", path.display());
    }
    for seed in 0..rounds(changes) as u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (path, bytes) = &corpus[rng.random_range(0..corpus.len())];
        let bytes = changed(bytes, &mut rng);
        if std::panic::catch_unwind(|| property(&bytes)).is_err() {
            let kept = std::env::temp_dir().join(format!("gmm-bmm-{target}-{seed}"));
            std::fs::write(&kept, &bytes).unwrap();
            panic!("change {seed} of {} breaks the property; kept as {}", path.display(), kept.display());
        }
    }
}

#[test]
fn any_text_can_be_read_as_csv() {
    holds_for_corpus_and_changes("csv", properties::csv, 6000);
}

#[test]
fn any_bytes_can_be_read_as_an_array_or_a_table() {
    holds_for_corpus_and_changes("tables", properties::tables, 3000);
}

#[test]
fn any_text_can_be_read_as_a_model() {
    holds_for_corpus_and_changes("model", properties::model, 3000);
}

/// A part of the format that no file of the corpus has is one that hardly any change reaches.
#[test]
fn the_corpus_has_models_of_every_version_and_kind() {
    let models = corpus("model");
    let has = |words: &[String]| {
        models.iter().any(|(_, bytes)| words.iter().all(|word| String::from_utf8_lossy(bytes).contains(word)))
    };
    for version in 4..=gmm_bmm::model::VERSION {
        assert!(has(&[format!("\"version\": {version},")]), "version {version}");
    }
    for kind in ["\"bayes\"", "\"point\"", "\"sharded\""] {
        assert!(has(&[kind.to_string(), "\"working\"".into(), "\"precision\"".into()]), "{kind}");
    }
}

/// The same runs, written by a program with version 5 of the format and by one with version 6.
#[test]
fn a_file_of_version_5_holds_what_one_of_version_6_holds() {
    let models = corpus("model");
    let read = |name: &str| {
        let (_, bytes) = models.iter().find(|(path, _)| path.ends_with(name)).unwrap();
        Model::read(bytes.as_slice()).unwrap()
    };
    for kind in ["em", "odmm", "oem", "several_k", "shard"] {
        assert_eq!(read(&format!("{kind}_version_5.json")), read(&format!("{kind}.json")), "{kind}");
    }
}

#[test]
fn a_file_of_version_4_holds_what_its_members_say() {
    let models = corpus("model");
    let (_, bytes) = models.iter().find(|(path, _)| path.ends_with("several_k_version_4.json")).unwrap();
    let members: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let model = Model::read(bytes.as_slice()).unwrap();
    assert_eq!(
        (model.rows(), model.seed()),
        (members["rows"].as_u64().unwrap(), members["seed"].as_u64().unwrap())
    );
    assert_eq!(model.ks().len(), members["rivals"].as_array().unwrap().len() + 1);
    let names: Vec<&str> =
        members["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(model.column_names().names, names);
    assert_eq!(serde_json::to_value(model.prequential()).unwrap(), members["prequential"]);
}

/// All of the corpus was written by some version of the tool, and can still be read and learned on.
#[test]
fn models_of_earlier_versions_are_read_and_resumed() {
    for (path, bytes) in corpus("model") {
        let model =
            Model::read(bytes.as_slice()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        model.write(&mut Vec::new()).unwrap();
        if model.recipe().online().is_some() {
            let rows = model.rows();
            let mut fit = model.resume().unwrap();
            fit.observe(ndarray::Array2::from_elem((1, fit.dim()), 2.5).view()).unwrap();
            assert_eq!(fit.to_model().unwrap().rows(), rows + 1, "{}", path.display());
        }
    }
}

#[test]
fn any_text_can_be_read_as_records() {
    holds_for_corpus_and_changes("records", properties::records, 500);
}

#[test]
fn any_text_can_be_read_as_a_catalogue() {
    holds_for_corpus_and_changes("catalogue", properties::catalogue, 1000);
}

#[test]
fn any_words_can_be_options() {
    holds_for_corpus_and_changes("options", properties::options, 500);
}

#[test]
fn text_made_of_telling_pieces_can_be_read_as_csv() {
    for seed in 0..rounds(4000) as u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut text: Vec<u8> = vec![rng.random(), WORDS[rng.random_range(0..5)][0]];
        for _ in 0..rng.random_range(0..200) {
            // Mostly numbers and delimiters, or hardly any text would be a table.
            match rng.random_range(0..10) {
                0..4 => text.extend(rng.random_range(-50..50).to_string().bytes()),
                4..7 => text.push(b','),
                7..9 => text.push(b'\n'),
                _ => text.extend(WORDS[rng.random_range(0..WORDS.len())]),
            }
        }
        let held = std::panic::catch_unwind(|| properties::csv(&text));
        assert!(held.is_ok(), "seed {seed}: {:?}", String::from_utf8_lossy(&text));
    }
}

/// A small model of each kind.
fn models() -> Vec<Model> {
    let algorithms = [
        Algorithm::Obmm(ObmmSettings::default()),
        Algorithm::Oem(OemSettings::default()),
        Algorithm::Odmm(OdmmSettings { shards: 2, ..OdmmSettings::default() }),
    ];
    let model = |algorithm: Algorithm, rows: usize| {
        let settings = FitSettings::new(algorithm, [1, 2]).seed(1).start_rows(30);
        let mut fit = OnlineFit::new(["a b", "checksum"], settings).unwrap();
        fit.observe(clusters(rows, 2, 3).view()).unwrap();
        fit.to_model().unwrap()
    };
    let mut models: Vec<Model> = algorithms.into_iter().map(|algorithm| model(algorithm, 60)).collect();
    models.push(model(Algorithm::Obmm(ObmmSettings::default()), 10));
    models
}

fn text_of(model: &Model) -> Vec<u8> {
    let mut text = Vec::new();
    model.write(&mut text).unwrap();
    text
}

#[test]
fn no_change_of_a_bit_in_a_model_file_goes_unnoticed() {
    let model = models().remove(0);
    let text = text_of(&model);
    for at in 0..text.len() {
        // Neighbouring bytes are alike, so one bit of each is enough to meet every bit of every part.
        for bit in if at_full_size() { 0..8 } else { at % 8..at % 8 + 1 } {
            let mut damaged = text.clone();
            damaged[at] ^= 1 << bit;
            // A blank may become a line end: that changes nothing.
            if let Ok(read) = Model::read(damaged.as_slice()) {
                assert_eq!(read, model, "bit {bit} of byte {at}");
                assert!(text[at].is_ascii_whitespace() && damaged[at].is_ascii_whitespace(), "byte {at}");
            }
        }
    }
}

#[test]
fn no_model_file_that_was_cut_passes_for_whole() {
    for model in models() {
        let text = text_of(&model);
        let end = text.iter().rposition(|&byte| byte == b'}').unwrap();
        let step = if at_full_size() { 1 } else { 5 };
        for length in (0..end - 100).step_by(step).chain(end - 100..text.len()) {
            let read = Model::read(&text[..length]);
            assert_eq!(read.is_ok(), length > end, "{length} of {} bytes: {read:?}", text.len());
        }
    }
}

#[test]
fn a_model_file_edited_by_hand_says_how_to_go_on() {
    let text = String::from_utf8(text_of(&models().remove(0))).unwrap();
    let edited = text.replacen("\"seed\": 1", "\"seed\": 2", 1);
    assert_ne!(text, edited);
    let error = Model::read(edited.as_bytes()).unwrap_err();
    assert!(
        matches!(error, ModelError::Checksum) && error.to_string().contains("remove the last member"),
        "{error}"
    );
    let (model, seal) =
        Model::read_sealed(properties::without_checksum(edited.as_bytes()).as_slice()).unwrap();
    assert_eq!((model.seed(), seal), (2, Seal::Missing));

    // Other line ends or another indentation are no edit.
    let (whole, seal) = Model::read_sealed(text.replace('\n', "\r\n  ").as_bytes()).unwrap();
    assert_eq!((whole.seed(), seal), (1, Seal::Intact));
}

/// What reading a text takes at most, in bytes beyond the text itself.
fn memory_for(text: Vec<u8>) -> (usize, Option<String>) {
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let before = LIVE.load(Ordering::Relaxed);
    let ending = match ReadOptions::default().open_inputs(vec![Input::from_bytes("hostile.csv", text)]) {
        Err(error) => Some(error.to_string()),
        Ok(mut stream) => {
            let mut block = gmm_bmm::data::Block::new(stream.columns().len());
            loop {
                match stream.read_block(&mut block, 4) {
                    Ok(true) => {}
                    Ok(false) => break None,
                    Err(error) => break Some(error.to_string()),
                }
            }
        }
    };
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), ending)
}

/// Memory is counted for the whole process, so tests that ask for it do not run side by side.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static MEASURING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn hostile_texts_end_in_words_and_in_bounded_memory() {
    let _alone = alone();
    let million = 1_000_000;
    let wide_rows = format!("{}1\n", "0,".repeat(million - 1)).repeat(3);
    let quote = format!("a,b\n1,2\n\"{}", "x,y\n".repeat(10 << 20));
    let cases: [(&str, Vec<u8>, Option<&str>); 9] = [
        ("a million columns", wide_rows.into(), None),
        ("more columns than that", format!("{}\n1\n", ",".repeat(million + 5)).into(), Some("fields")),
        ("a quote that is never closed", quote.into(), Some("32 MiB")),
        ("one endless line", vec![b'7'; 40 << 20], Some("32 MiB")),
        ("a long number", [b"1\n2\n0.".as_slice(), &vec![b'3'; 900_000], b"\n"].concat(), None),
        ("a number with a large exponent", b"1\n2\n1e99999999999999999999\n".to_vec(), Some("row 3")),
        ("a NUL byte in the data", b"a,b\n1,2\n3,\x004\n".to_vec(), Some("NUL")),
        (
            "a NUL byte far down",
            [b"1,2\n".repeat(50_000).as_slice(), b"3,\x00\n"].concat(),
            Some("row 50001"),
        ),
        ("blank lines only", vec![b'\n'; 20 << 20], Some("hostile.csv")),
    ];
    for (what, text, error) in cases {
        let size = text.len();
        let (memory, ending) = memory_for(text);
        let told = ending.clone().unwrap_or_default();
        assert!(memory < 700 << 20, "{what}: {} MiB for {} MiB of text", memory >> 20, size >> 20);
        assert_eq!(ending.is_some(), error.is_some(), "{what}: {told}");
        assert!(told.contains(error.unwrap_or_default()) && told.len() < 1000, "{what}: {told}");
        eprintln!("{what}: {} MiB for {} MiB of text", memory >> 20, size >> 20);
    }
}

/// Bombs: a small file that unpacks to a large one, and a model that never ends.
#[test]
fn bombs_are_refused() {
    let _alone = alone();
    let packed = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        (0..64).for_each(|_| std::io::Write::write_all(&mut encoder, &vec![b'7'; 1 << 20]).unwrap());
        encoder.finish().unwrap()
    };
    let (memory, ending) = memory_for(packed);
    assert!(memory < 200 << 20 && ending.is_some_and(|told| told.contains("32 MiB")));
    let endless = std::io::repeat(b'[');
    assert!(matches!(Model::read(endless), Err(ModelError::NotAModel { .. })));
    let deep = [b"{\"format\":".as_slice(), &vec![b'['; 1 << 20]].concat();
    assert!(matches!(Model::read(deep.as_slice()), Err(ModelError::Damaged(_))));
}
