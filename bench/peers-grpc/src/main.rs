//! gRPC between two processes over the loopback: one call that streams both ways, a message of one bytes field.
//!
//! The call is what a compiler would make of this, written by hand so that none is needed:
//!
//! ```text
//! service Talk { rpc Talk (stream Note) returns (stream Note); }
//! message Note { bytes payload = 1; }
//! ```
//!
//! Each process has one thread; it waits in the kernel as gRPC programs do, it does not spin.

use prost::bytes::Bytes;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;
use unitape_bench_side::{Link, Messages, Seen, Task};

/// Messages that may wait for the connection; then the sender does.
const QUEUE: usize = 1024;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    unitape_bench_side::main(&arguments, Talk::open)
}

#[derive(Clone, PartialEq, prost::Message)]
struct Note {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
}

/// Where notes go: requests as they are, answers as results.
enum Out {
    Requests(mpsc::Sender<Note>),
    Answers(mpsc::Sender<Result<Note, Status>>),
}

/// A call as the server sees it.
type Call = (Streaming<Note>, mpsc::Sender<Result<Note, Status>>);

struct Talk {
    task: Task,
    out: Option<Out>,
    notes: Option<Streaming<Note>>,
    messages: Messages,
    calls: mpsc::UnboundedReceiver<Call>,
    runtime: Runtime,
}

impl Talk {
    fn open(task: &Task) -> Result<Self, String> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let (give, calls) = mpsc::unbounded_channel();
        if !task.first {
            // The incoming stream registers with the runtime.
            let _inside = runtime.enter();
            let incoming =
                TcpIncoming::bind(([127, 0, 0, 1], 0).into()).map_err(|e| format!("listen: {e}"))?;
            let port = incoming.local_addr().map_err(|e| format!("listen: {e}"))?.port();
            let server = Server::builder()
                .add_service(Desk { calls: give })
                .serve_with_incoming(incoming.with_nodelay(Some(true)));
            runtime.spawn(server);
            std::fs::write(task.dir.join("port"), port.to_string()).map_err(|e| format!("port: {e}"))?;
        }
        Ok(Self { task: task.clone(), out: None, notes: None, messages: Messages::new(), calls, runtime })
    }
}

impl Link for Talk {
    fn connect(&mut self) -> Result<(), String> {
        if !self.task.first {
            let calls = &mut self.calls;
            // A timeout can only be made inside the runtime.
            let call = async { tokio::time::timeout(Duration::from_secs(20), calls.recv()).await };
            let call = self.runtime.block_on(call);
            let (notes, answers) =
                call.map_err(|e| format!("no call: {e}"))?.ok_or("the server has ended")?;
            (self.notes, self.out) = (Some(notes), Some(Out::Answers(answers)));
            return Ok(());
        }
        let port = std::fs::read_to_string(self.task.dir.join("port")).map_err(|e| format!("port: {e}"))?;
        let (requests, stream) = mpsc::channel(QUEUE);
        let notes = self.runtime.block_on(async {
            let endpoint =
                Endpoint::from_shared(format!("http://127.0.0.1:{port}")).map_err(|e| e.to_string())?;
            let channel = endpoint.tcp_nodelay(true).connect().await.map_err(|e| format!("connect: {e}"))?;
            let mut client = tonic::client::Grpc::new(channel);
            client.ready().await.map_err(|e| format!("connect: {e}"))?;
            let path = http::uri::PathAndQuery::from_static("/unitape.bench.Talk/Talk");
            let request = Request::new(ReceiverStream::new(stream));
            let codec: ProstCodec<Note, Note> = ProstCodec::default();
            let answer = client.streaming(request, path, codec).await.map_err(|e| format!("call: {e}"))?;
            Ok::<_, String>(answer.into_inner())
        })?;
        (self.notes, self.out) = (Some(notes), Some(Out::Requests(requests)));
        Ok(())
    }

    fn send(&mut self, number: u64) -> Result<(), String> {
        let note = Note { payload: Bytes::copy_from_slice(self.messages.next(number)) };
        let sent = match &self.out {
            Some(Out::Requests(out)) => self.runtime.block_on(out.send(note)).is_ok(),
            Some(Out::Answers(out)) => self.runtime.block_on(out.send(Ok(note))).is_ok(),
            None => false,
        };
        if sent { Ok(()) } else { Err("the call has ended".to_owned()) }
    }

    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(notes) = &mut self.notes else { return Err("there is no call".to_owned()) };
        let note = self.runtime.block_on(notes.message()).map_err(|e| format!("read: {e}"))?;
        let Some(note) = note else { return Err("the other side has hung up".to_owned()) };
        seen.take(&note.payload);
        Ok(true)
    }

    fn idle(&mut self) -> Result<(), String> {
        // What was sent goes out only while the runtime runs.
        self.runtime.block_on(tokio::task::yield_now());
        Ok(())
    }

    fn close(self) -> Result<(), String> {
        // The last answer of the second process still has to go out.
        if !self.task.first {
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
        }
        Ok(())
    }
}

/// The service, as it would be generated.
#[derive(Clone)]
struct Desk {
    calls: mpsc::UnboundedSender<Call>,
}

impl NamedService for Desk {
    const NAME: &'static str = "unitape.bench.Talk";
}

impl Service<http::Request<Body>> for Desk {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = Method { calls: self.calls.clone() };
        Box::pin(async move {
            let codec: ProstCodec<Note, Note> = ProstCodec::default();
            Ok(tonic::server::Grpc::new(codec).streaming(method, request).await)
        })
    }
}

/// Its one method: hands the call over to the loop of the measurement.
struct Method {
    calls: mpsc::UnboundedSender<Call>,
}

impl Service<Request<Streaming<Note>>> for Method {
    type Response = Response<ReceiverStream<Result<Note, Status>>>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Note>>) -> Self::Future {
        let (answers, stream) = mpsc::channel(QUEUE);
        ready(match self.calls.send((request.into_inner(), answers)) {
            Ok(()) => Ok(Response::new(ReceiverStream::new(stream))),
            Err(_) => Err(Status::unavailable("the measurement is over")),
        })
    }
}
