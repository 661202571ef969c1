//! Answers as JSON.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use labelsieve_files::work::Error;
use serde::Serialize;
use serde_json::json;

use crate::Refusal;

/// A result.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => of_bytes(StatusCode::OK, bytes),
        Err(error) => self::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None),
    }
}

/// What went wrong and what to do about it.
pub(crate) fn error(status: StatusCode, message: &str, hint: Option<&str>) -> Response {
    let body = match hint {
        Some(hint) => json!({ "error": message, "hint": hint }),
        None => json!({ "error": message }),
    };
    of_bytes(status, body.to_string().into_bytes())
}

/// A refusal of the session.
pub(crate) fn refused(refused: &Refusal) -> Response {
    let status = match refused {
        Refusal::NotFound(_) => StatusCode::NOT_FOUND,
        Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
        Refusal::Conflict(_) => StatusCode::CONFLICT,
        Refusal::NotYet(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::NotSaved(_) => StatusCode::INSUFFICIENT_STORAGE,
        Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    match refused {
        Refusal::NotSaved(cause) => {
            let message = format!("the decision was not saved: {cause}");
            error(status, &message, Some("free some disk space and decide again; everything before is saved"))
        }
        Refusal::NotYet(_) => error(status, &refused.to_string(), Some("ask again in a moment")),
        Refusal::Failed(cause) => match cause.root() {
            Error::Input { hint, .. } => error(status, &refused.to_string(), Some(&hint.to_string())),
            _ => error(status, &refused.to_string(), None),
        },
        _ => error(status, &refused.to_string(), None),
    }
}

fn of_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
