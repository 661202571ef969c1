//! Access control. A page on this machine's loopback address is within reach of every other program and, through the
//! browser, of every web page that a person has open. So:
//!
//! - **Token.** All paths begin with 128 random bits of the operating system, which the command prints. Requests without
//!   them get 404, whatever they ask for; they are compared in constant time.
//! - **Host.** Must be the address that the server listens on, `localhost` for a loopback address. A foreign name that was
//!   made to point to this machine (DNS rebinding) is refused, as are a second `Host` and an address that names another.
//! - **Origin.** What changes something must come from the page itself: `Origin` must be there and must be ours. A browser
//!   always sends it with `POST`; scripts have to say it too. `Sec-Fetch-Site`, where a browser sends it, must not
//!   speak of another site, for any request but opening the page itself in a tab.
//! - **Headers.** The content security policy lets the page load nothing but itself; there is no CORS, no sniffing of types, no
//!   referrer (it would carry the token away), no frame around it.
//! - **Sizes.** Bodies and headers have limits; numbers are checked by the session; no part of a path is a file name.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;

use crate::server::answer;

/// The page may load only itself and pictures of this server, and send requests only to it.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Longest body of a request: decisions about a hundred thousand rows.
pub const MAX_BODY: usize = 2 << 20;

/// 128 random bits as 32 hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// From the operating system.
    pub fn random() -> Result<Token, getrandom::Error> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// As it stands in the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares all of it, however early it differs.
    fn matches(&self, given: &str) -> bool {
        let differ = |(a, b): (u8, u8)| a ^ b;
        let own = self.0.as_bytes();
        let given = given.as_bytes();
        let difference =
            own.iter().copied().zip(given.iter().copied()).map(differ).fold(0, |all, one| all | one);
        own.len() == given.len() && std::hint::black_box(difference) == 0
    }
}

/// The address and token that requests must match.
#[derive(Clone)]
pub struct Guard {
    token: Token,
    address: SocketAddr,
}

impl Guard {
    /// For a server that listens on `address`. One that listens on all addresses answers to any of them, as long as they
    /// are numbers: names could belong to any site.
    pub fn new(token: Token, address: SocketAddr) -> Guard {
        Guard { token, address }
    }

    /// The path below the token, or the answer to a request that is not let in.
    #[expect(clippy::result_large_err, reason = "the error is the answer")]
    pub fn admit<'a>(&self, method: &Method, uri: &'a Uri, headers: &HeaderMap) -> Result<&'a str, Response> {
        let refuse = |message: &str| Err(answer::error(StatusCode::FORBIDDEN, message, None));
        let path = uri.path().strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, ""));
        if !self.token.matches(token) || !path.contains('/') {
            return Err(answer::error(
                StatusCode::NOT_FOUND,
                "not found",
                Some("open the address that the review printed"),
            ));
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_only_one = headers.get_all(header::HOST).iter().count() == 1;
        if !is_only_one || !host.is_some_and(|host| self.is_ours(host)) {
            return refuse("unexpected Host header");
        }
        // `GET http://host/path`, as proxies are asked: that host counts too.
        if uri.authority().is_some_and(|authority| !self.is_ours(authority.as_str())) {
            return refuse("unexpected host in the address");
        }
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
        let is_opened =
            rest.is_empty() && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
        if !matches!(site, None | Some(b"same-origin" | b"none")) && !is_opened {
            return refuse("requests of other sites are refused");
        }
        if method != Method::GET && method != Method::HEAD {
            let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
            let is_ours = origin.and_then(|origin| origin.strip_prefix("http://")) == host;
            if !is_ours {
                return refuse("only the page itself may change something");
            }
        }
        Ok(rest)
    }

    /// Whether a `Host` is an address of this server.
    fn is_ours(&self, host: &str) -> bool {
        // Browsers leave the usual port out; the colons of `[::1]` are no sign of one.
        let with_port = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (name, port) = with_port.unwrap_or((host, "80"));
        if port != self.address.port().to_string() {
            return false;
        }
        let own = self.address.ip();
        if name.eq_ignore_ascii_case("localhost") {
            return own.is_loopback() || own.is_unspecified();
        }
        let number = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        number.parse::<IpAddr>().is_ok_and(|given| given == own || own.is_unspecified())
    }
}

/// Adds what every answer carries.
pub fn harden(response: &mut Response) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> (Guard, String) {
        let token = Token::random().unwrap();
        let text = token.as_str().to_owned();
        (Guard::new(token, address.parse().unwrap()), text)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn status(guard: &Guard, method: Method, path: &str, pairs: &[(&'static str, &str)]) -> u16 {
        let uri: Uri = path.parse().unwrap();
        guard.admit(&method, &uri, &headers(pairs)).map_or_else(|answer| answer.status().as_u16(), |_| 200)
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let a = Token::random().unwrap();
        let b = Token::random().unwrap();
        assert_eq!(a.as_str().len(), 32);
        assert_ne!(a.as_str(), b.as_str());
        assert!(
            a.matches(a.as_str())
                && !a.matches(b.as_str())
                && !a.matches(&a.as_str()[..31])
                && !a.matches("")
        );
    }

    #[test]
    fn only_the_token_leads_anywhere() {
        let (guard, token) = guard("127.0.0.1:7000");
        let host = [("host", "127.0.0.1:7000")];
        let get = |path: &str| status(&guard, Method::GET, path, &host);
        assert_eq!(get(&format!("/{token}/")), 200);
        assert_eq!(get(&format!("/{token}/api/session")), 200);
        let other = "0".repeat(32);
        for path in [
            "/".to_owned(),
            format!("/{other}/"),
            format!("/{token}"),
            format!("/{token}0/"),
            format!("//{token}/"),
        ] {
            assert_eq!(get(&path), 404, "{path}");
        }
    }

    #[test]
    fn foreign_names_and_foreign_pages_are_refused() {
        let (guard, token) = guard("127.0.0.1:7000");
        let path = format!("/{token}/api/decisions");
        let get = |pairs: &[(&'static str, &str)]| status(&guard, Method::GET, &path, pairs);
        let post = |pairs: &[(&'static str, &str)]| status(&guard, Method::POST, &path, pairs);
        assert_eq!(get(&[("host", "localhost:7000")]), 200);
        for host in ["evil.example:7000", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:7000", ""] {
            assert_eq!(get(&[("host", host)]), 403, "{host}");
        }
        assert_eq!(get(&[]), 403);
        let twice = headers(&[("host", "127.0.0.1:7000")]);
        let twice = twice.iter().chain(&twice).map(|(name, value)| (name.clone(), value.clone())).collect();
        assert!(guard.admit(&Method::GET, &path.parse().unwrap(), &twice).is_err(), "two hosts");
        for (host, expected) in [("127.0.0.1:7000", 200), ("evil.example", 403), ("evil.example:7000", 403)] {
            let address = format!("http://{host}{path}");
            assert_eq!(
                status(&guard, Method::GET, &address, &[("host", "127.0.0.1:7000")]),
                expected,
                "{host}"
            );
        }
        let ours = ("host", "127.0.0.1:7000");
        assert_eq!(get(&[ours, ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(get(&[ours, ("sec-fetch-site", "none")]), 200);
        assert_eq!(post(&[ours, ("origin", "http://127.0.0.1:7000")]), 200);
        assert_eq!(post(&[ours]), 403, "a POST without an origin");
        for origin in [
            "null",
            "http://127.0.0.1:7001",
            "https://127.0.0.1:7000",
            "http://localhost:7000",
            "http://evil.example",
        ] {
            assert_eq!(post(&[ours, ("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(post(&[ours, ("origin", "http://127.0.0.1:7000"), ("sec-fetch-site", "same-site")]), 403);
    }

    #[test]
    fn a_server_on_all_addresses_goes_by_numbers_only() {
        let (guard, token) = guard("0.0.0.0:7000");
        let get = |host: &str| status(&guard, Method::GET, &format!("/{token}/"), &[("host", host)]);
        assert_eq!(
            (get("192.0.2.7:7000"), get("[2001:db8::1]:7000"), get("localhost:7000")),
            (200, 200, 200)
        );
        assert_eq!((get("evil.example:7000"), get("192.0.2.7:7001"), get("192.0.2.7")), (403, 403, 403));
    }

    #[test]
    fn the_usual_port_may_be_left_out() {
        for (address, ours) in [
            ("127.0.0.1:80", ["127.0.0.1", "localhost", "127.0.0.1:80"]),
            ("[::1]:80", ["[::1]", "localhost", "[::1]:80"]),
            ("0.0.0.0:80", ["192.0.2.7", "[2001:db8::1]", "localhost"]),
        ] {
            let (guard, token) = guard(address);
            let get = |host: &str| status(&guard, Method::GET, &format!("/{token}/"), &[("host", host)]);
            for host in ours {
                assert_eq!(get(host), 200, "{address}: {host}");
            }
            for host in ["evil.example", "127.0.0.1:7000", ""] {
                assert_eq!(get(host), 403, "{address}: {host}");
            }
        }
    }
}
