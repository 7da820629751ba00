//! Files of versions 4 and 5: the same parts in other places.

use serde_json::{Map, Value, json};

/// Converts a file of version 4 or 5 to the present form. Members that are not known stay, and are refused with it.
pub(super) fn upgraded(mut old: Map<String, Value>) -> Value {
    let best = candidate(&mut old);
    let k = k_of(&best);
    let mut candidates = match old.remove("rivals") {
        Some(Value::Array(rivals)) => rivals,
        _ => Vec::new(),
    };
    candidates.push(best);
    candidates.sort_by_key(k_of);
    let best = candidates.iter().position(|candidate| k_of(candidate) == k);
    let columns = match old.remove("columns") {
        Some(Value::Array(columns)) => columns,
        _ => Vec::new(),
    };
    let of_columns = |name: &str| -> Vec<&Value> { columns.iter().map(|column| &column[name]).collect() };
    let mut state = json!({
        "rows": old.get("rows"),
        "summaries": of_columns("summary"),
        "floor": of_columns("floor"),
    });
    let names = json!({"names": of_columns("name"), "named": old.remove("named")});
    old.remove("rows");
    for name in ["pending", "lineage", "sample", "seen", "scores", "kept"] {
        if let Some(member) = old.remove(name) {
            state[name] = member;
        }
    }
    let settings = settings(&mut old, candidates.iter().map(k_of).collect());
    state["candidates"] = candidates.into();
    let new = [("settings", settings), ("columns", names), ("best", json!(best)), ("state", state)];
    old.extend(new.map(|(name, member)| (name.to_string(), member)));
    old.into()
}

/// The best K, which was among the members of the file.
fn candidate(old: &mut Map<String, Value>) -> Value {
    let names = ["learned", "prequential", "health", "structure", "ranks"];
    names.iter().filter_map(|name| Some((name.to_string(), old.remove(*name)?))).collect()
}

fn settings(old: &mut Map<String, Value>, ks: Vec<usize>) -> Value {
    let (algorithm, seed) = (old.remove("algorithm").unwrap_or_default(), old.remove("seed"));
    let names = ["start", "effort", "keep_rows", "half_life"];
    let mut settings: Value =
        names.iter().filter_map(|name| Some((name.to_string(), old.remove(*name)?))).collect();
    let (start_rows, bounds) = (old.remove("init_rows"), old.remove("learns_k"));
    if algorithm == "truth" {
        return json!({"truth": {"seed": seed}});
    }
    if let Some(settings) = algorithm.get("em") {
        return json!({"em": {"settings": settings, "seed": seed}});
    }
    settings["components"] = match bounds {
        Some(bounds) => json!({"learned": {"least": bounds[0], "most": bounds[1]}}),
        None => json!({"given": ks}),
    };
    settings["algorithm"] = algorithm;
    settings["seed"] = json!(seed);
    if let Some(rows) = start_rows {
        settings["start_rows"] = rows;
    }
    json!({"online": settings})
}

/// How many components a candidate has; 0 if it is damaged.
fn k_of(candidate: &Value) -> usize {
    let learned = &candidate["learned"];
    let weights = ["/bayes/posterior/a", "/point/mixture/weights", "/sharded/posterior/a"];
    weights.iter().find_map(|path| learned.pointer(path)?.as_array()).map_or(0, Vec::len)
}
