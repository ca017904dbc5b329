//! The loops of `unitape link`, in builds with Aeron.

use super::{ReceiveArgs, SendArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, say};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_link::transport::Transport;
use unitape_link::transport::aeron::{AeronTransport, LinkEnd};
use unitape_link::{
    Error, ReceiverEvent, ReceiverOptions, SenderEvent, SenderOptions, TapeReceiver, TapeSender,
};

/// How long a sender that fails tries to tell its receivers why.
const TELL_WAIT: Duration = Duration::from_secs(10);

/// How long a message takes from here to the network, at most: then the driver may end.
const DRIVER_WAIT: Duration = Duration::from_millis(300);

/// Runs `unitape link send`.
pub fn send(args: &SendArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let transport = open_transport(LinkEnd::Sender, args.listen)?;
    let address = transport.address();
    let options = SenderOptions { once: args.once, ..SenderOptions::default() };
    let mut sender = TapeSender::open(&args.tape, transport, options)?;
    note!("listening at {address}");
    let started_at = Instant::now();
    let mut idle = Idle::default();
    while !is_set(&stop) && !sender.is_done(started_at.elapsed()) {
        match sender.poll(started_at.elapsed()) {
            Ok(has_worked) => idle.after(has_worked),
            Err(error) => {
                tell_failure(&mut sender, started_at);
                return Err(error.into());
            }
        }
        sender.take_events().into_iter().for_each(|event| note_sender_event(&event));
    }
    let figures = sender.figures();
    if args.json {
        output::print_json(&json!({
            "tape": args.tape.display().to_string(),
            "address": address.to_string(),
            "sessions": figures.sessions,
            "completed": figures.completed,
            "refused": figures.refused,
            "silent": figures.silent,
            "read_bytes": figures.read_bytes,
            "dropped_messages": figures.dropped_messages,
        }))?;
    } else {
        say!(
            "{} sessions, {} receivers complete, {} refused; {} read from {}",
            grouped(figures.sessions),
            grouped(figures.completed),
            grouped(figures.refused),
            output::bytes(figures.read_bytes),
            args.tape.display()
        );
    }
    Ok(CommandOutcome::Clean)
}

/// Runs `unitape link receive`.
pub fn receive(args: &ReceiveArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let transport = open_transport(LinkEnd::Receiver, args.bind_address())?;
    let address = transport.address();
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|e| CommandFailure::Error(format!("random bytes: {e}")))?;
    let options = ReceiverOptions { once: args.once, ..ReceiverOptions::new(u64::from_le_bytes(number)) };
    let mut receiver = TapeReceiver::open(&args.dir, args.from, transport, options)?;
    note!("receiving at {address} from {}", args.from);
    let started_at = Instant::now();
    let followed = follow_sender(&mut receiver, started_at, &stop);
    let (end, figures) = (receiver.end(), receiver.figures());
    // The tape is closed in order in any case. Why the receiver ends says more than why it could not be closed.
    let close_result = receiver.close();
    followed?;
    close_result?;
    if args.json {
        output::print_json(&json!({
            "tape": args.dir.display().to_string(),
            "address": address.to_string(),
            "end": end.map(|end| end.0),
            "sessions": figures.sessions,
            "dropped_messages": figures.dropped_messages,
        }))?;
    } else {
        match end {
            Some(end) => say!("{} holds the tape up to position {}", args.dir.display(), grouped(end.0)),
            None => say!("no sender has answered"),
        }
    }
    Ok(CommandOutcome::Clean)
}

/// Receives until all is done or `stop` is set.
fn follow_sender(
    receiver: &mut TapeReceiver<AeronTransport>,
    started: Instant,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut idle = Idle::default();
    let mut is_leaving = false;
    while !receiver.is_done() {
        if is_set(stop) && !is_leaving {
            receiver.leave(started.elapsed());
            is_leaving = true;
        }
        idle.after(receiver.poll(started.elapsed())?);
        receiver.take_events().into_iter().for_each(|event| note_receiver_event(&event));
    }
    Ok(())
}

/// Opens the transport. The address is the user's, so a failure to listen there names it.
fn open_transport(end: LinkEnd, address: std::net::SocketAddr) -> Result<AeronTransport, CommandFailure> {
    Ok(AeronTransport::open(end, address)?)
}

fn tell_failure(sender: &mut TapeSender<AeronTransport>, started: Instant) {
    let since = Instant::now();
    // The error that ends the sender says more than one of the transport.
    while since.elapsed() < TELL_WAIT && matches!(sender.poll_failed(started.elapsed()), Ok(false)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(DRIVER_WAIT);
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the signal handler hands nothing over but the wish.
    stop.load(Ordering::Relaxed)
}

fn note_sender_event(event: &SenderEvent) {
    match event {
        SenderEvent::Accepted { receiver, position } => note!("{receiver}: sending from position {position}"),
        SenderEvent::Refused { receiver, refusal } => note!("{receiver}: refused: {}", refusal.text),
        SenderEvent::Completed { receiver, position } => {
            note!("{receiver}: has the whole tape, durable up to position {position}");
        }
        SenderEvent::Lost { receiver } => note!("{receiver}: gone"),
    }
}

fn note_receiver_event(event: &ReceiverEvent) {
    match event {
        ReceiverEvent::Following { position, end } => {
            note!("following from position {position}; the sender's tape ends at {end}");
        }
        ReceiverEvent::Asking => note!("the sender is silent, or a part is missing; asking again"),
        ReceiverEvent::SenderFinished => note!("the sender has ended; waiting for the next one"),
    }
}

/// Sleeps longer the longer nothing happens.
#[derive(Debug, Default)]
struct Idle {
    idle_rounds: u32,
}

impl Idle {
    fn after(&mut self, has_worked: bool) {
        if has_worked {
            self.idle_rounds = 0;
            return;
        }
        let pause = Duration::from_micros(20) * (1 << self.idle_rounds.min(6));
        self.idle_rounds += 1;
        std::thread::sleep(pause);
    }
}
