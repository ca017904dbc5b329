//! What every request passes: the host it names, the origin it comes from, and the headers of every answer.

use crate::Desk;
use crate::api::Refusal;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Refuses requests for another host or from another origin, and sets the headers of the answer.
///
/// A page of somebody else may have its name point at this machine (DNS rebinding): then `Host` is that name.
pub(crate) async fn gate(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    let mut response = match check_host(request.headers(), desk.address.port()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

fn check_host(headers: &HeaderMap, port: u16) -> Result<(), Refusal> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let host = text(header::HOST).unwrap_or_default();
    if !hosts.iter().any(|allowed_host| allowed_host == host) {
        return Err(Refusal::new(421, "this server is not the host that the request names"));
    }
    match text(header::ORIGIN) {
        Some(origin) if origin != format!("http://{host}") => {
            Err(Refusal::new(403, "the request comes from another page"))
        }
        _ => Ok(()),
    }
}

const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("cache-control", "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(pairs: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        check_host(&headers, 8080).is_ok()
    }

    /// A page elsewhere whose name points at this machine could read cases in the browser of an analyst.
    #[test]
    fn other_hosts_and_origins_are_refused() {
        assert!(is_let_in(&[("host", "127.0.0.1:8080")]));
        assert!(is_let_in(&[("host", "localhost:8080"), ("origin", "http://localhost:8080")]));
        assert!(is_let_in(&[("host", "[::1]:8080"), ("origin", "http://[::1]:8080")]));
        for pairs in [
            &[][..],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:8081")],
            &[("host", "evil.example:8080")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://evil.example")],
            &[("host", "127.0.0.1:8080"), ("origin", "https://127.0.0.1:8080")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://localhost:8080")],
            &[("host", "127.0.0.1:8080"), ("origin", "null")],
        ] {
            assert!(!is_let_in(pairs), "{pairs:?}");
        }
    }
}
