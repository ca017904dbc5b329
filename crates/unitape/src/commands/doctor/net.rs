//! The network: room for datagrams that nobody has read yet.

use super::{DoctorFinding, FindingRemedy, ok, warn};
use crate::output::bytes;

/// The buffer that a feed asks for if its configuration does not say (`buffer_bytes`).
const ASKED: u64 = 8 << 20;

pub fn buffers() -> DoctorFinding {
    let rmem_max_text = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
    let Some(most) = rmem_max_text.and_then(|text| text.trim().parse::<u64>().ok()) else {
        return ok("sockets", "this system does not report the buffers of sockets");
    };
    let detail = format!("buffers of sockets up to {}", bytes(most));
    if most >= ASKED {
        return ok("sockets", detail);
    }
    let cure = FindingRemedy(
        "net.core.rmem_max of 8 MiB or more",
        "what comes in a burst waits there; what does not fit is lost (and counted)",
        "sysctl net.core.rmem_max=8388608",
    );
    warn("sockets", detail, cure)
}
