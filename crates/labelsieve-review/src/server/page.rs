//! The files of the page, embedded: nothing is read from disk and nothing comes from elsewhere.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;

use crate::server::answer;

/// Name, media type and contents of a file.
type File = (&'static str, &'static str, &'static [u8]);

/// A file of `page/`.
macro_rules! file {
    ($name:literal, $media_type:literal) => {
        ($name, $media_type, include_bytes!(concat!("../../page/", $name)).as_slice())
    };
}

/// All of them; the first is the page itself. A file that is not here does not exist for a browser.
const FILES: [File; 30] = [
    file!("index.html", "text/html; charset=utf-8"),
    file!("api.js", "text/javascript; charset=utf-8"),
    file!("app.css", "text/css; charset=utf-8"),
    file!("app.js", "text/javascript; charset=utf-8"),
    file!("around.js", "text/javascript; charset=utf-8"),
    file!("card.js", "text/javascript; charset=utf-8"),
    file!("classlist.js", "text/javascript; charset=utf-8"),
    file!("controls.js", "text/javascript; charset=utf-8"),
    file!("curve.js", "text/javascript; charset=utf-8"),
    file!("decide.js", "text/javascript; charset=utf-8"),
    file!("detail.js", "text/javascript; charset=utf-8"),
    file!("dom.js", "text/javascript; charset=utf-8"),
    file!("events.js", "text/javascript; charset=utf-8"),
    file!("grid.js", "text/javascript; charset=utf-8"),
    file!("help.js", "text/javascript; charset=utf-8"),
    file!("icon.svg", "image/svg+xml"),
    file!("keys.js", "text/javascript; charset=utf-8"),
    file!("lists.js", "text/javascript; charset=utf-8"),
    file!("order.js", "text/javascript; charset=utf-8"),
    file!("panel.js", "text/javascript; charset=utf-8"),
    file!("pictures.js", "text/javascript; charset=utf-8"),
    file!("place.js", "text/javascript; charset=utf-8"),
    file!("pointer.js", "text/javascript; charset=utf-8"),
    file!("shell.js", "text/javascript; charset=utf-8"),
    file!("store.js", "text/javascript; charset=utf-8"),
    file!("stream.js", "text/javascript; charset=utf-8"),
    file!("strips.js", "text/javascript; charset=utf-8"),
    file!("theme.js", "text/javascript; charset=utf-8"),
    file!("thumbnails.js", "text/javascript; charset=utf-8"),
    file!("windowed.js", "text/javascript; charset=utf-8"),
];

/// The file of this name; the page for none.
pub(crate) fn file(name: &str) -> Response {
    let name = if name.is_empty() { FILES[0].0 } else { name };
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, media_type, contents)) => {
            let mut response = Response::new(Body::from(*contents));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
            response
        }
        None => answer::error(StatusCode::NOT_FOUND, "not found", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut known: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        found.sort();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
