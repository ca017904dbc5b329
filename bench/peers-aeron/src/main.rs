//! Aeron IPC between two processes, by the C client and the C media driver, which lives in the first process.
//!
//! Flavours: `invoker:N`, where the first process does the driver's and its client's work itself, whenever it is
//! pushed back and every N messages; `thread`, the usual embedded driver, one thread of its own that sleeps
//! when there is nothing to do (there is no third core to give it).

use rusteron_media_driver::bindings::aeron_threading_mode_enum as Mode;
use rusteron_media_driver::{
    AERON_IPC_STREAM, Aeron, AeronContext, AeronDriver, AeronDriverContext, AeronExclusivePublication,
    AeronIdleStrategyKind, AeronSubscription, Handlers, IntoCString,
};
use std::time::{Duration, Instant};
use unitape_bench_side::{Case, Link, Messages, Seen, Task};

/// Messages between two times of doing the client's work where the driver has a thread.
const DUTY: u64 = 4096;

/// Messages taken in one look.
const FRAGMENTS: usize = 64;

/// How long one may hear nothing of another before it is taken for dead: longer than anybody stops a process here.
const PATIENCE: Duration = Duration::from_secs(180);

const THERE: i32 = 1001;
const BACK: i32 = 1002;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    unitape_bench_side::main(&arguments, Ipc::open)
}

/// Fields are dropped in this order: publications, client, driver.
struct Ipc {
    task: Task,
    publication: Option<AeronExclusivePublication>,
    subscription: Option<AeronSubscription>,
    aeron: Aeron,
    driver: Option<AeronDriver>,
    messages: Messages,
    /// Whether the driver's work is ours to do, and every how many messages.
    invoked: bool,
    duty: u64,
    idle: u32,
}

impl Ipc {
    fn open(task: &Task) -> Result<Self, String> {
        let (invoked, duty) = match task.flavour.split_once(':') {
            Some(("invoker", every)) => (true, every.parse().map_err(|e| format!("invoker: {every}: {e}"))?),
            None if task.flavour == "thread" => (false, DUTY),
            _ => return Err(format!("{} is neither invoker:N nor thread", task.flavour)),
        };
        let dir = task.shared.join("aeron").display().to_string().into_c_string();
        let failed = |what: &'static str| move |e| format!("{what}: {e}");
        let mut driver = None;
        if task.first {
            let context = AeronDriverContext::new().map_err(failed("driver context"))?;
            context.set_dir(&dir).map_err(failed("driver dir"))?;
            context.set_dir_delete_on_start(true).map_err(failed("driver dir"))?;
            context.set_dir_delete_on_shutdown(true).map_err(failed("driver dir"))?;
            context.set_term_buffer_sparse_file(false).map_err(failed("term buffers"))?;
            context.set_client_liveness_timeout_ns(PATIENCE.as_nanos() as u64).map_err(failed("liveness"))?;
            let unblock = 2 * PATIENCE.as_nanos() as u64;
            context.set_publication_unblock_timeout_ns(unblock).map_err(failed("unblock timeout"))?;
            let mode = match invoked {
                true => Mode::AERON_THREADING_MODE_INVOKER,
                false => Mode::AERON_THREADING_MODE_SHARED,
            };
            context.set_threading_mode(mode).map_err(failed("threading mode"))?;
            let idle = AeronIdleStrategyKind::Sleeping;
            context.set_shared_idle_strategy_kind(idle).map_err(failed("idle strategy"))?;
            let started = AeronDriver::new(&context).map_err(failed("driver"))?;
            started.start(invoked).map_err(failed("start the driver"))?;
            driver = Some(started);
        }
        let context = AeronContext::new().map_err(failed("client context"))?;
        context.set_dir(&dir).map_err(failed("client dir"))?;
        context.set_driver_timeout_ms(PATIENCE.as_millis() as u64).map_err(failed("driver timeout"))?;
        context.set_use_conductor_agent_invoker(true).map_err(failed("invoker"))?;
        context.set_pre_touch_mapped_memory(true).map_err(failed("touch memory"))?;
        let handler = Some(|code: i32, text: &str| eprintln!("aeron: {code}: {text}"));
        context.set_error_handler(handler).map_err(failed("error handler"))?;
        // The client waits for the driver's first sign of life, so that is given here and now.
        if let (Some(driver), true) = (&driver, invoked) {
            driver.main_do_work().map_err(failed("driver"))?;
        }
        let aeron = Aeron::new(&context).map_err(failed("client"))?;
        aeron.start().map_err(failed("start the client"))?;
        let mut ipc = Self {
            task: task.clone(),
            publication: None,
            subscription: None,
            aeron,
            driver,
            messages: Messages::new(),
            invoked,
            duty,
            idle: 0,
        };
        // The first process can only ask for its own part when it does the driver's work at the same time.
        if task.first {
            ipc.ask()?;
        }
        Ok(ipc)
    }

    /// Gets publication and subscription from the driver.
    fn ask(&mut self) -> Result<(), String> {
        let failed = |e| format!("publication or subscription: {e}");
        let (out, back) = if self.task.first { (THERE, BACK) } else { (BACK, THERE) };
        let both = self.task.case == Case::RoundTrip;
        if both || self.task.first {
            let asked = self.aeron.async_add_exclusive_publication(AERON_IPC_STREAM, out).map_err(failed)?;
            self.publication = Some(self.until("publication", || asked.poll())?);
        }
        if both || !self.task.first {
            let asked = self
                .aeron
                .async_add_subscription(AERON_IPC_STREAM, back, Handlers::NONE, Handlers::NONE)
                .map_err(failed)?;
            self.subscription = Some(self.until("subscription", || asked.poll())?);
        }
        Ok(())
    }

    fn until<T, E: std::fmt::Display>(
        &self,
        what: &str,
        mut ask: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<T, String> {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(20) {
            if let Some(found) = ask().map_err(|e| format!("{what}: {e}"))? {
                return Ok(found);
            }
            self.work()?;
            std::thread::yield_now();
        }
        Err(format!("{what}: none after 20 s"))
    }

    /// A turn of the client's work, and of the driver's where that is ours to do.
    #[cold]
    fn work(&self) -> Result<(), String> {
        if let (Some(driver), true) = (&self.driver, self.invoked) {
            driver.main_do_work().map_err(|e| format!("driver: {e}"))?;
        }
        self.aeron.main_do_work().map_err(|e| format!("client: {e}"))?;
        Ok(())
    }
}

impl Link for Ipc {
    fn connect(&mut self) -> Result<(), String> {
        if !self.task.first {
            self.ask()?;
        }
        self.until("the other side", || {
            let there = self.publication.as_ref().is_none_or(|p| p.is_connected());
            let back = self.subscription.as_ref().is_none_or(|s| s.is_connected());
            Ok::<_, String>((there && back).then_some(()))
        })
    }

    #[inline]
    fn send(&mut self, number: u64) -> Result<(), String> {
        let Some(publication) = &self.publication else { return Err("no publication".to_owned()) };
        loop {
            match publication.offer(self.messages.next(number)) {
                Ok(_) => break,
                Err(e) if e.is_retryable() => self.work()?,
                Err(e) => return Err(format!("offer: {e}")),
            }
        }
        if number.is_multiple_of(self.duty) {
            self.work()?;
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let Some(subscription) = &self.subscription else { return Err("no subscription".to_owned()) };
        let taken = subscription
            .poll_fn(|message, _| seen.take(message), FRAGMENTS)
            .map_err(|e| format!("poll: {e}"))?;
        Ok(taken > 0)
    }

    #[inline]
    fn idle(&mut self) -> Result<(), String> {
        self.idle = self.idle.wrapping_add(1);
        // A sender that waits for the end may be waited for by the driver's flow control; a reader only has to keep its
        // client alive.
        let often = if self.subscription.is_none() { 1 << 8 } else { 1 << 16 };
        if self.idle.is_multiple_of(often) {
            self.work()?;
        }
        std::hint::spin_loop();
        Ok(())
    }
}
