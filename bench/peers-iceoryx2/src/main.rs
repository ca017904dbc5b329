//! iceoryx2 between two processes: publish-subscribe into loaned memory, nothing overwritten, both ends spinning.

use iceoryx2::port::backpressure_strategy::BackpressureStrategy;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use std::time::{Duration, Instant};
use unitape_bench_side::{Case, Link, MESSAGE_BYTES, Messages, Seen, Task};

type Message = [u8; MESSAGE_BYTES];

/// Messages that may lie in a subscriber's queue; a publisher waits for room.
const QUEUE: usize = 4096;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    unitape_bench_side::main(&arguments, PubSub::open)
}

/// Fields are dropped in this order: ports before the node.
struct PubSub {
    task: Task,
    publisher: Option<Publisher<ipc::Service, Message, ()>>,
    subscriber: Option<Subscriber<ipc::Service, Message, ()>>,
    /// Also keeps the services alive.
    _node: Node<ipc::Service>,
    messages: Messages,
}

impl PubSub {
    fn open(task: &Task) -> Result<Self, String> {
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new().create::<ipc::Service>().map_err(|e| format!("node: {e:?}"))?;
        let (out, back) = if task.first { ("there", "back") } else { ("back", "there") };
        let both = task.case == Case::RoundTrip;
        let (mut publisher, mut subscriber) = (None, None);
        // The fresh directory's name distinguishes this measurement's services from those of another.
        let run = task.shared.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        for name in [out, back] {
            let name = format!("unitape/{run}/{name}");
            let name = name.as_str().try_into().map_err(|e| format!("{name}: {e:?}"))?;
            let service = node
                .service_builder(&name)
                .publish_subscribe::<Message>()
                .enable_safe_overflow(false)
                .subscriber_max_buffer_size(QUEUE)
                .max_publishers(1)
                .max_subscribers(1)
                .open_or_create()
                .map_err(|e| format!("service: {e:?}"))?;
            if publisher.is_none() {
                // Made where there is nothing to send as well, so that both loops are alike.
                let made = service
                    .publisher_builder()
                    .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                    .create()
                    .map_err(|e| format!("publisher: {e:?}"))?;
                publisher = Some(made);
            } else {
                let made = service.subscriber_builder().create().map_err(|e| format!("subscriber: {e:?}"))?;
                subscriber = Some(made);
            }
        }
        let publisher = publisher.filter(|_| both || task.first);
        let subscriber = subscriber.filter(|_| both || !task.first);
        Ok(Self { task: task.clone(), publisher, subscriber, _node: node, messages: Messages::new() })
    }
}

impl Link for PubSub {
    fn connect(&mut self) -> Result<(), String> {
        let since = Instant::now();
        let publisher = self.publisher.as_ref();
        while publisher.is_some_and(|p| p.update_connections().is_err()) {
            if since.elapsed() > Duration::from_secs(20) {
                return Err(format!("{:?}: no connection after 20 s", self.task.case));
            }
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, number: u64) -> Result<(), String> {
        let Some(publisher) = &self.publisher else { return Err("no publisher".to_owned()) };
        let sample = publisher.loan_uninit().map_err(|e| format!("loan: {e:?}"))?;
        match sample.write_payload(*self.messages.next(number)).send().map_err(|e| format!("send: {e:?}"))? {
            1 => Ok(()),
            n => Err(format!("message {number} reached {n} subscribers instead of one")),
        }
    }

    #[inline]
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(subscriber) = &self.subscriber else { return Err("no subscriber".to_owned()) };
        let Some(sample) = subscriber.receive().map_err(|e| format!("receive: {e:?}"))? else {
            return Ok(false);
        };
        seen.take(&sample[..]);
        Ok(true)
    }
}
