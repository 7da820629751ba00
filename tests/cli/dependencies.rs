//! The licences of all that is linked in, and where it comes from, by `cargo metadata` without a network.

use std::process::Command;

use serde_json::Value;

/// Licences whose terms a binary under MIT or Apache-2.0 can meet by a notice.
const ALLOWED: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "Unicode-3.0",
];

/// Whether an SPDX expression can be met by allowed licences alone: of an `OR` one side will do, of an `AND` both must.
fn is_allowed(expression: &str) -> bool {
    let text = expression.trim().replace('/', " OR ");
    let outermost = |word: &str| {
        let mut depth = 0;
        let bytes = text.as_bytes();
        (0..bytes.len()).find(|&i| {
            depth += i32::from(bytes[i] == b'(') - i32::from(bytes[i] == b')');
            depth == 0 && text[i..].starts_with(word)
        })
    };
    // AND binds tighter, so the text is split at OR first.
    if let Some(at) = outermost(" OR ") {
        return is_allowed(&text[..at]) || is_allowed(&text[at + 4..]);
    }
    if let Some(at) = outermost(" AND ") {
        return is_allowed(&text[..at]) && is_allowed(&text[at + 5..]);
    }
    match text.trim().strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => ALLOWED.contains(&text.trim()),
    }
}

#[test]
fn expressions_are_understood() {
    for allowed in [
        "MIT",
        "MIT OR Apache-2.0",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-2.0) AND Unicode-3.0",
        "MIT OR GPL-2.0 AND MPL-2.0",
    ] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND MPL-2.0", "", "SSPL-1.0"] {
        assert!(!is_allowed(refused), "{refused}");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence_and_comes_from_the_public_registry() {
    let host = Command::new("rustc").arg("-vV").output().expect("rustc is there to build with");
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc says its host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50, "only {} packages", packages.len());
    let mut faults = Vec::new();
    // All from one registry, whichever it is: nothing from a repository or from two places.
    let registry = packages.iter().find_map(|package| package["source"].as_str()).unwrap();
    assert!(registry.starts_with("registry+"), "{registry}");
    for package in packages.iter().filter(|package| package["source"].is_string()) {
        let name = format!("{} {}", package["name"], package["version"]);
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence) {
            faults.push(format!("{name}: licence '{licence}'"));
        }
        let source = package["source"].as_str().unwrap_or_default();
        if source != registry {
            faults.push(format!("{name}: from {source}"));
        }
    }
    assert!(faults.is_empty(), "look at these, then allow them or do without:\n{}", faults.join("\n"));
}
