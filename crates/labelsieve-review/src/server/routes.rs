//! From requests to questions of a session. [docs/review.md](../../../docs/review.md) lists them.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use labelsieve::Decision;
use serde::Deserialize;
use serde_json::json;

use crate::server::events::Events;
use crate::server::{answer, page};
use crate::{Order, Picture, Refusal, Session};

/// A request behind the guard.
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Below the token.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Bytes,
}

/// `POST api/decisions`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    class: usize,
    rows: Vec<usize>,
    decision: DecisionWord,
}

/// A decision in words.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DecisionWord {
    Accept,
    Reject,
    Unsure,
    Undecided,
}

/// `POST api/lambda`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LambdaBody {
    lambda: Option<f32>,
}

impl From<DecisionWord> for Option<Decision> {
    fn from(word: DecisionWord) -> Option<Decision> {
        match word {
            DecisionWord::Accept => Some(Decision::Accept),
            DecisionWord::Reject => Some(Decision::Reject),
            DecisionWord::Unsure => Some(Decision::Unsure),
            DecisionWord::Undecided => None,
        }
    }
}

/// Answers a request. What reads, decodes or waits does so on a thread of its own, so that no request holds up another.
pub(crate) async fn answer(session: Arc<Session>, mut request: Request) -> Response {
    if request.method == Method::HEAD {
        request.method = Method::GET; // the body is left out when the answer is sent
    }
    if request.method == Method::GET && request.path == "api/events" {
        return Sse::new(Events::of(&session)).keep_alive(KeepAlive::default()).into_response();
    }
    if request.method == Method::GET && !request.path.contains('/') {
        return page::file(&request.path);
    }
    let answered = tokio::task::spawn_blocking(move || blocking(&session, &request)).await;
    answered.unwrap_or_else(|_| {
        answer::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: the request could not be answered",
            None,
        )
    })
}

fn blocking(session: &Session, request: &Request) -> Response {
    let parts: Vec<&str> = request.path.split('/').collect();
    let answered = match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["api", "session"]) => Ok(answer::json(&session.overview())),
        ("GET", ["api", "classes", class]) => {
            of_class(class, |class| Ok(answer::json(&session.class(class)?)))
        }
        ("GET", ["api", "classes", class, "scores"]) => {
            of_class(class, |class| Ok(answer::json(&session.scores(class)?)))
        }
        ("GET", ["api", "classes", class, "order"]) => {
            of_class(class, |class| Ok(answer::json(&session.order(class, order(&request.query)?)?)))
        }
        ("GET", ["api", "classes", class, "rows", row]) => {
            of_class(class, |class| Ok(answer::json(&session.row(class, number(row)?)?)))
        }
        ("GET", ["api", "curve"]) => Ok(answer::json(&json!({ "points": session.curve() }))),
        ("GET", ["api", "decisions.csv"]) => csv(session),
        ("GET", ["thumbnails", example]) => {
            number(example).and_then(|example| picture(session.thumbnail(example)?))
        }
        ("GET", ["pictures", example]) => {
            number(example).and_then(|example| picture(session.picture(example)?))
        }
        ("POST", ["api", "decisions"]) => {
            body(&request.body).and_then(|DecisionBody { class, rows, decision }| {
                Ok(answer::json(&session.decide(class, &rows, decision.into())?))
            })
        }
        ("POST", ["api", "undo"]) => session.undo().map(|changed| answer::json(&changed)),
        ("POST", ["api", "redo"]) => session.redo().map(|changed| answer::json(&changed)),
        ("POST", ["api", "lambda"]) => body(&request.body)
            .and_then(|LambdaBody { lambda }| Ok(answer::json(&session.set_lambda(lambda)?))),
        _ => Err(Refusal::NotFound("not found".to_owned())),
    };
    answered.unwrap_or_else(|refused| answer::refused(&refused))
}

fn of_class(
    class: &str,
    question: impl FnOnce(usize) -> Result<Response, Refusal>,
) -> Result<Response, Refusal> {
    question(number(class)?)
}

/// A number of a path, in digits alone.
fn number(text: &str) -> Result<usize, Refusal> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_plain.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| Refusal::Invalid("expected a number in the address".to_owned()))
}

/// `by=next`, or `by=similar&to=7`.
fn order(query: &str) -> Result<Order, Refusal> {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
    };
    match value("by") {
        None | Some("next") => Ok(Order::Next),
        Some("similar") => match value("to") {
            Some(row) => Ok(Order::SimilarTo(number(row)?)),
            None => Err(Refusal::Invalid("by=similar needs to=ROW".to_owned())),
        },
        Some(_) => Err(Refusal::Invalid("expected by=next or by=similar".to_owned())),
    }
}

fn body<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::Invalid(format!("the request: {error}")))
}

fn csv(session: &Session) -> Result<Response, Refusal> {
    let mut response = Response::new(Body::from(session.decisions_csv()?));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let attached = HeaderValue::from_static("attachment; filename=\"decisions.csv\"");
    headers.insert(header::CONTENT_DISPOSITION, attached);
    Ok(response)
}

fn picture(picture: Picture) -> Result<Response, Refusal> {
    Ok(match picture {
        Picture::None => answer::error(StatusCode::NOT_FOUND, "there is no picture of this example", None),
        Picture::Undecodable(reason) => answer::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, &reason, None),
        Picture::Image(image) => {
            let mut response = Response::new(Body::from(image.bytes.clone()));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(image.media_type));
            // The address has the session's token, so it never means another picture.
            let forever = HeaderValue::from_static("private, max-age=86400, immutable");
            headers.insert(header::CACHE_CONTROL, forever);
            response
        }
    })
}
