//! The page of a model: one HTML file that stands on its own, for a person to look at.
//!
//! The page is a fixed text with a script, and the figures as JSON. The script writes names as text, never as markup, and the
//! page's policy allows this script alone and no network.

mod content;

use ndarray::ArrayView2;

use crate::dist::Uniting;
use crate::model::Model;
use content::Content;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of the script in base64, by which the page's policy allows it. tests/python/test_page.py says what it has to be.
const SCRIPT_HASH: &str = "o3VIgaazQccLPii/i9MusQ6YIYW4w5QUUjmU4yK/0yg=";

/// What a page shows besides the model.
#[derive(Debug, Clone, Default)]
pub struct PageOptions<'a> {
    /// One K of a model that has several; the best by default.
    pub k: Option<usize>,
    /// Which components are one cluster.
    pub clusters: Uniting,
    /// The rows to draw; by default a sample of those that the model keeps.
    pub rows: Option<ArrayView2<'a, f64>>,
    /// What a user should know about the data, in words.
    pub findings: Vec<String>,
}

impl Model {
    /// A page of HTML that needs nothing else: clusters and their profiles, a pair plot, the course of the score, the score
    /// against K, and findings. `None` if the model does not have the K that is asked for.
    ///
    /// It has a few hundred of the rows that the model keeps, unless others are given.
    pub fn to_html(&self, options: &PageOptions) -> Option<String> {
        let content =
            serde_json::to_string(&Content::new(self, options)?).expect("the content has text keys");
        // Within a script element, only these could end it or begin a comment.
        let content = content.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        Some(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Gaussian mixture</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n\
             <noscript><p>This page draws itself with a script, which it contains: allow scripts for it.</p></noscript>\n\
             <main id=\"page\"></main>\n\
             <script type=\"application/json\" id=\"content\">{content}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
        ))
    }
}
