//! Ports that no other test has.

use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Mutex;

/// Locks of the ports of this process, which end with it.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The first of `count` ports in a row that nobody has, and that no other test gets while this process lives. The kernel
/// gives none of this range to connections of others: it would else be somebody's before a run binds it.
pub fn free_ports(count: u16) -> u16 {
    const FIRST: u16 = 10_000;
    const PORTS: u16 = 20_000;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ports");
    fs::create_dir_all(&folder).unwrap();
    let mut held = HELD.lock().unwrap();
    // Processes that test at the same time begin far from each other.
    let begin = (std::process::id().wrapping_mul(331) % u32::from(PORTS)) as u16;
    for n in 0..PORTS {
        let first = FIRST + (begin + n) % (PORTS - count);
        let locks: Option<Vec<File>> = (first..first + count).map(|port| lock(&folder, port)).collect();
        if let Some(locks) = locks {
            held.extend(locks);
            return first;
        }
    }
    panic!("no {count} ports in a row are free");
}

/// Locks a port that nobody has locked or bound.
fn lock(folder: &Path, port: u16) -> Option<File> {
    let file = File::create(folder.join(port.to_string())).unwrap();
    let is_free = file.try_lock().is_ok()
        && TcpListener::bind(("0.0.0.0", port)).is_ok()
        && UdpSocket::bind(("0.0.0.0", port)).is_ok();
    is_free.then_some(file)
}
