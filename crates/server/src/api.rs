//! The routes of `/api/v1`.

use crate::Desk;
use crate::auth::{LoginFailure, Session};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use unitape_case::action::CaseCommand;
use unitape_case::{Actor, CaseFilter, CaseState, Disposition};
use unitape_run::users::Account;

/// Returns the routes.
pub(crate) fn router(desk: Arc<Desk>) -> Router {
    let api = Router::new()
        .route("/session", get(session).post(log_in).delete(log_out))
        .route("/status", get(status))
        .route("/cases", get(cases))
        .route("/cases/{id}", get(case))
        .route("/cases/{id}/picture", get(picture))
        .route("/cases/{id}/actions", post(act))
        .fallback(|| async { Refusal::new(404, "there is no such route") })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(desk);
    Router::new().nest("/api/v1", api)
}

/// An answer that is no success: a status, and what to say.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    message: String,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(json!({ "error": self.message }))).into_response()
    }
}

/// Who asks: a session whose account may be used. A request that changes something carries the token of its session.
struct Caller {
    account: Account,
    session: Session,
    token: String,
}

impl FromRequestParts<Arc<Desk>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self, Refusal> {
        let unknown = || Refusal::new(401, "log in first");
        let token = session_cookie(&parts.headers).ok_or_else(unknown)?;
        let session = desk.sessions.find_session(&token).ok_or_else(unknown)?;
        let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
        let csrf = parts.headers.get("x-csrf-token").and_then(|value| value.to_str().ok());
        if !is_read && csrf != Some(&*session.csrf) {
            return Err(Refusal::new(403, "the request does not carry the token of its session"));
        }
        let (user, stamp) = (session.user.clone(), session.stamp);
        let account = blocking(desk, move |desk| desk.library.session_account(&user, stamp)).await?;
        match account.map_err(|error| internal_error(desk, &error))? {
            Some(account) => Ok(Self { account, session, token }),
            None => {
                desk.sessions.end_session(&token);
                Err(unknown())
            }
        }
    }
}

#[derive(Deserialize)]
struct LogIn {
    user: String,
    password: String,
}

async fn log_in(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let LogIn { user, password } = read_json(&headers, &body)?;
    let attempt = move |desk: &Desk| {
        desk.sessions.attempts.log_in(&user, || desk.library.authenticate(&user, &password))
    };
    let (account, stamp) = match blocking(&desk, attempt).await? {
        Ok(account_stamp) => account_stamp,
        Err(LoginFailure::Locked(left)) => {
            let seconds = left.as_secs() + 1;
            return Err(Refusal::new(429, format!("too many wrong passwords; try again in {seconds} s")));
        }
        Err(LoginFailure::Refused) => {
            return Err(Refusal::new(401, "user or password is wrong, or the account is disabled"));
        }
        Err(LoginFailure::Users(error)) => return Err(internal_error(&desk, &error)),
    };
    let new_session =
        desk.sessions.begin_session(&account.name, stamp).map_err(|error| internal_error(&desk, &error))?;
    let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; Secure; SameSite=Strict", new_session.token);
    let body = session_json(&account, &new_session.session);
    Ok(([(header::SET_COOKIE, cookie)], Json(body)).into_response())
}

async fn session(caller: Caller) -> Json<Value> {
    Json(session_json(&caller.account, &caller.session))
}

async fn log_out(State(desk): State<Arc<Desk>>, caller: Caller) -> Response {
    desk.sessions.end_session(&caller.token);
    let cookie = format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}

async fn status(State(desk): State<Arc<Desk>>, _caller: Caller) -> Result<Json<Value>, Refusal> {
    answer(&desk, |desk| desk.library.status()).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseQuery {
    state: Option<String>,
    scenario: Option<String>,
    assignee: Option<String>,
    party: Option<String>,
    after: Option<u64>,
    limit: Option<u64>,
}

async fn cases(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    query: Result<Query<CaseQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::new(400, error.body_text()))?;
    let state = query.state.as_deref().map(|name| {
        CaseState::from_name(name).ok_or_else(|| {
            Refusal::new(
                400,
                format!("no state `{name}`; states: {}", CaseState::ALL.map(CaseState::name).join(", ")),
            )
        })
    });
    let filter = CaseFilter {
        state: state.transpose()?,
        scenario: query.scenario,
        assignee: query.assignee,
        party: query.party,
        after: query.after,
        limit: query.limit,
    };
    answer(&desk, move |desk| desk.library.cases(&filter)).await
}

async fn case(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let id = case_number(&id)?;
    let actor = Actor::from(caller.account);
    answer(&desk, move |desk| desk.library.case(id, &actor)).await
}

async fn picture(
    State(desk): State<Arc<Desk>>,
    _caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let id = case_number(&id)?;
    answer(&desk, move |desk| desk.library.picture(id).map(|picture| picture.json())).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseAction {
    action: String,
    #[serde(default)]
    text: String,
    assignee: Option<String>,
    disposition: Option<String>,
}

async fn act(
    State(desk): State<Arc<Desk>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let id = case_number(&id)?;
    let action: CaseAction = read_json(&headers, &body)?;
    let actor = Actor::from(caller.account);
    let text = (!action.text.trim().is_empty()).then_some(action.text);
    let command = match action.action.as_str() {
        "assign" => {
            let assignee =
                action.assignee.filter(|name| !name.is_empty()).unwrap_or_else(|| actor.user.clone());
            let name = assignee.clone();
            let account = blocking(&desk, move |desk| desk.library.enabled_account(&name)).await?;
            let account = account.map_err(|error| internal_error(&desk, &error))?;
            let account =
                account.ok_or_else(|| Refusal::new(422, format!("there is no user `{assignee}`")))?;
            CaseCommand::Assign { to: Actor::from(account) }
        }
        "note" => CaseCommand::Note { text: text.unwrap_or_default() },
        "escalate" => CaseCommand::Escalate { text },
        "close" => {
            let disposition = action.disposition.filter(|name| !name.is_empty());
            let disposition = disposition.map(|name| {
                Disposition::from_name(&name)
                    .ok_or_else(|| Refusal::new(422, format!("no disposition `{name}`")))
            });
            CaseCommand::Close { disposition: disposition.transpose()?, text }
        }
        "reopen" => CaseCommand::Reopen { text: text.unwrap_or_default() },
        other => return Err(Refusal::new(422, format!("no action `{other}`"))),
    };
    answer(&desk, move |desk| {
        desk.library.act_on_case(id, &actor, &command)?;
        desk.library.case(id, &actor)
    })
    .await
}

fn session_json(account: &Account, session: &Session) -> Value {
    json!({ "user": account.name, "person": account.person, "roles": [account.role.name()], "csrf": session.csrf })
}

/// Returns the token of the cookie.
fn session_cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, token)| token.to_owned())
}

fn case_number(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_| Refusal::new(404, format!("there is no case {text}")))
}

/// Reads a body of JSON; the type keeps forms of other pages out.
fn read_json<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Refusal> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return Err(Refusal::new(415, "the body must be JSON"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, format!("the body cannot be read: {error}")))
}

/// Runs what blocks on a thread for it.
async fn blocking<T: Send + 'static>(
    desk: &Arc<Desk>,
    work: impl FnOnce(&Desk) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let (state, error_desk) = (desk.clone(), desk.clone());
    let joined = tokio::task::spawn_blocking(move || work(&state)).await;
    joined.map_err(|error| internal_error(&error_desk, &error))
}

/// Runs a question to the library of cases, and turns its errors into answers.
async fn answer(
    desk: &Arc<Desk>,
    work: impl FnOnce(&Desk) -> Result<Value, unitape_case::Error> + Send + 'static,
) -> Result<Json<Value>, Refusal> {
    use unitape_case::Error as CaseError;
    blocking(desk, work).await?.map(Json).map_err(|error| match &error {
        CaseError::UnknownCase(_) => Refusal::new(404, error.to_string()),
        CaseError::Forbidden { .. } => Refusal::new(403, error.to_string()),
        CaseError::NotAllowed { .. } => Refusal::new(409, error.to_string()),
        CaseError::Value(_) => Refusal::new(422, error.to_string()),
        CaseError::Busy { .. } => Refusal::new(503, "somebody else is writing the cases; try again"),
        _ => internal_error(desk, &error),
    })
}

/// Tells the operator the error, and the user that there is one.
fn internal_error(desk: &Desk, error: &dyn std::fmt::Display) -> Refusal {
    desk.library.tell(&error.to_string());
    Refusal::new(500, "the server has a problem; its operator has the reason")
}

/// A browser sends a cookie with this prefix only back to the host that has set it.
const COOKIE: &str = "__Host-desk";
/// A text of an action has 64 KiB at most; JSON may need six bytes for one.
const BODY_MAX: usize = 512 << 10;
