//! A run that can be watched: `/metrics`, `/healthz` and `/readyz` over HTTP.
//!
//! ```text
//!  run ──▶ RunEvent ──▶ Monitor ─┬─ /metrics   figures, read when they are asked for
//!  tape, disk ───────────────────┼─ /readyz    whether the run is well, with each reason why not
//!                                └─ /healthz   the process answers, whatever a disk or a peer does
//! ```

mod metrics;
mod ready;

pub use metrics::{FEED_METRICS, Metric, MetricKind, TAPE_METRICS};
pub use ready::{NotReady, NotReadyCode};

use crate::Error;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use unitape_feed::{FeedStatsSnapshot, RunMonitor};
use unitape_run::RunEvent;
use unitape_run::config::MonitorConfig;

/// A monitor that listens. It stops when it is dropped.
pub struct Monitor {
    state: Arc<MonitorState>,
    address: SocketAddr,
    runtime: Option<tokio::runtime::Runtime>,
}

/// What a monitor knows of a run.
pub(crate) struct MonitorState {
    tape: PathBuf,
    config: MonitorConfig,
    started_at: Instant,
    /// The figures of feeds in this process.
    live_monitor: OnceLock<Arc<RunMonitor>>,
    reported_figures: Mutex<ReportedFigures>,
}

/// What the run has reported, where it cannot be read when it is asked for.
#[derive(Default)]
struct ReportedFigures {
    /// The figures of feeds in processes of their own.
    feeds: BTreeMap<String, FeedStatsSnapshot>,
    /// When a feed was seen to have more events, and how many.
    progress_by_feed: BTreeMap<String, (Instant, u64)>,
    /// Why the last flush has failed.
    not_durable: Option<String>,
}

impl Monitor {
    /// Listens at the address of the configuration, and returns none if it has none.
    ///
    /// # Errors
    /// Fails if the address cannot be used.
    pub fn start(config: &MonitorConfig, tape: PathBuf) -> Result<Option<Self>, Error> {
        let Some(listen) = config.listen else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(SCRAPES_MAX)
            .enable_all()
            .thread_name("monitor")
            .build()
            .map_err(Error::Runtime)?;
        let bind = |source| Error::Listen { address: listen, source };
        let listener = runtime.block_on(tokio::net::TcpListener::bind(listen)).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let state = Arc::new(MonitorState {
            tape,
            config: config.clone(),
            started_at: Instant::now(),
            live_monitor: OnceLock::new(),
            reported_figures: Mutex::default(),
        });
        let router = Router::new()
            .route("/metrics", get(metrics_page))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready_page))
            .with_state(state.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Some(Self { state, address, runtime: Some(runtime) }))
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Learns from an event of the run.
    pub fn on_event(&self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Begun { stats } => _ = self.state.live_monitor.set(Arc::clone(stats)),
            RunEvent::Figures(figures) => {
                self.state.lock_reported().feeds.insert(figures.feed.clone(), (*figures).clone());
            }
            RunEvent::NotDurable { failure } => {
                self.state.lock_reported().not_durable = Some((*failure).to_owned())
            }
            RunEvent::DurableAgain { .. } => self.state.lock_reported().not_durable = None,
            _ => {}
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

impl MonitorState {
    /// Returns the figures of each feed: those of this process as they are now, others as the run reported them last.
    fn feed_figures(&self) -> Vec<FeedStatsSnapshot> {
        match self.live_monitor.get() {
            Some(live) => live.feeds.iter().map(|feed| feed.figures()).collect(),
            None => self.lock_reported().feeds.values().cloned().collect(),
        }
    }

    fn lock_reported(&self) -> MutexGuard<'_, ReportedFigures> {
        self.reported_figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn metrics_page(State(state): State<Arc<MonitorState>>) -> Response {
    // It reads the tape's directory: on a thread that may wait for a disk.
    match tokio::task::spawn_blocking(move || metrics::render(&state)).await {
        Ok(text) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn ready_page(State(state): State<Arc<MonitorState>>) -> Response {
    let Ok(reasons) = tokio::task::spawn_blocking(move || ready::reasons(&state)).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let reasons: Vec<_> = reasons
        .iter()
        .map(|reason| serde_json::json!({ "code": reason.code.name(), "what": reason.reason }))
        .collect();
    (status, axum::Json(serde_json::json!({ "ready": reasons.is_empty(), "reasons": reasons })))
        .into_response()
}

/// Scrapes at a time; more wait.
const SCRAPES_MAX: usize = 4;
