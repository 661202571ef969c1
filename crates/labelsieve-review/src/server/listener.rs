//! Listens, and answers until it is stopped.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use futures_core::Stream;
use tokio::sync::watch;

use crate::Session;
use crate::server::guard::{Guard, MAX_BODY, Token, harden};
use crate::server::{answer, routes};

/// How long answers under way may take once the server is stopped.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How much of a body that is too long is read before the connection is closed.
const MAX_DISCARDED: usize = 64 << 20;
/// How long a body may take to come.
const MAX_UPLOAD_TIME: Duration = Duration::from_secs(60);

/// Why a server does not start or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not of this machine.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        cause: std::io::Error,
    },
    /// The operating system gives no random numbers.
    #[error("no random numbers for the address: {0}")]
    Random(getrandom::Error),
    /// The server could not run.
    #[error("the server failed: {0}")]
    Run(#[from] std::io::Error),
}

/// Where the page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Where the server listens.
    pub socket: SocketAddr,
    /// For a browser on this machine.
    pub url: String,
    /// For browsers elsewhere, when the server listens on all addresses and this machine is in a network.
    pub url_elsewhere: Option<String>,
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    guard: Guard,
    address: Address,
    stop: (watch::Sender<bool>, watch::Receiver<bool>),
}

/// Ends a server, from any thread.
#[derive(Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Ends it after the requests under way.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens on `host`; port 0 is any that is free.
    pub fn bind(host: IpAddr, port: u16) -> Result<Server, Error> {
        let wanted = SocketAddr::new(host, port);
        let failed = |cause| Error::Listen { address: wanted, cause };
        let listener = TcpListener::bind(wanted).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let socket = listener.local_addr().map_err(failed)?;
        let token = Token::random().map_err(Error::Random)?;
        let url = |host: &str| format!("http://{host}/{}/", token.as_str());
        let port = socket.port();
        let (url, url_elsewhere) = if socket.ip().is_unspecified() {
            let own = outward_ip(socket.ip()).map(|ip| SocketAddr::new(ip, port));
            (url(&format!("localhost:{port}")), own.map(|own| url(&own.to_string())))
        } else {
            (url(&socket.to_string()), None)
        };
        let guard = Guard::new(token, socket);
        let address = Address { socket, url, url_elsewhere };
        Ok(Server { listener, guard, address, stop: watch::channel(false) })
    }

    /// Where the page is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Ends this server.
    pub fn stop(&self) -> Stop {
        Stop(self.stop.0.clone())
    }

    /// Answers until it is stopped. Streams of events end then; no client is left waiting.
    pub fn run(self, session: Arc<Session>) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(64)
            .enable_io()
            .enable_time()
            .thread_name("http")
            .build()?;
        let guard = self.guard;
        let mut stopped = self.stop.1;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let all = Router::new().fallback(move |request: Request| {
                let guard = guard.clone();
                let session = session.clone();
                async move {
                    let mut response = admitted(&guard, session, request).await;
                    harden(&mut response);
                    response
                }
            });
            tokio::select! {
                served = axum::serve(listener, all) => served,
                _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
            }
        })?;
        // Streams of events are cut; what reads a picture may finish. Then the session is no longer shared.
        runtime.shutdown_timeout(LAST_ANSWERS);
        Ok(())
    }
}

/// The address of this machine in its network. Nothing is sent: a datagram socket is only told where it would send to, an
/// reserved address.
fn outward_ip(any: IpAddr) -> Option<IpAddr> {
    let reserved = if any.is_ipv4() { "192.0.2.1:9" } else { "[2001:db8::1]:9" };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(reserved).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified() && !own.is_loopback()).then_some(own)
}

async fn admitted(guard: &Guard, session: Arc<Session>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = match guard.admit(&parts.method, &parts.uri, &parts.headers) {
        Ok(path) => path.to_owned(),
        Err(refused) => return refused,
    };
    let Some(body) = read_body(body).await else {
        let message = format!("expected at most {MAX_BODY} bytes");
        return answer::error(
            StatusCode::PAYLOAD_TOO_LARGE,
            &message,
            Some("decide about fewer rows at a time"),
        );
    };
    let query = parts.uri.query().unwrap_or_default().to_owned();
    routes::answer(session, routes::Request { method: parts.method, path, query, body }).await
}

/// The body; none when it is too long or breaks off. What is too long is read all the same, within limits: clients look for an
/// answer only once they have sent everything, and a connection closed before that is a broken pipe to them.
async fn read_body(body: Body) -> Option<Bytes> {
    let mut stream = pin!(body.into_data_stream());
    let mut bytes = Vec::new();
    let mut n_read = 0;
    let read = async {
        while let Some(chunk) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let chunk = chunk.ok()?;
            n_read += chunk.len();
            match n_read {
                0..=MAX_BODY => bytes.extend_from_slice(&chunk),
                _ if n_read > MAX_DISCARDED => return None,
                _ => bytes.clear(),
            }
        }
        (n_read <= MAX_BODY).then(|| Bytes::from(bytes))
    };
    tokio::time::timeout(MAX_UPLOAD_TIME, read).await.ok().flatten()
}
