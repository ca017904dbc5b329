//! The page, embedded in the binary.

use crate::api::Refusal;
use axum::body::Body;
use axum::http::{Method, Uri, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};

/// Gives a file of the page.
pub(crate) async fn page(method: Method, uri: Uri) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return Refusal::new(405, "only GET is possible here").into_response();
    }
    let path = uri.path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let Some(file) = PAGE.get_file(path) else {
        return Refusal::new(404, "there is no such page").into_response();
    };
    // Names under `assets/` have a hash of their content.
    let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-store" };
    let headers = [(header::CONTENT_TYPE, content_type(path)), (header::CACHE_CONTROL, cache)];
    (headers, Body::from(file.contents())).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

static PAGE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");
