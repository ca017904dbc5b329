//! BLAKE3 of a file, by several threads.
//!
//! The hash is a tree over the file, and a stretch whose length is a power of two is a tree of its own:
//!
//! ```text
//!  file     ┃ 1 MiB ┃ 1 MiB ┃ 1 MiB ┃ rest ┃     by thread 0, 1, 0, 1
//!              └───┬───┘       └──┬────┘
//!                  └──────┬───────┘               in the end, by one
//! ```
//!
//! so that the result is the hash of the whole, whichever thread has read which part.

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// The length of a stretch, in bytes.
const STRETCH: u64 = 1 << 20;

/// Bytes read at once, so that they are still near when they are hashed.
const READ_BYTES: usize = 1 << 17;

/// Returns the length of a file in bytes and its hash in hex.
///
/// # Errors
/// Fails if the file cannot be read, or is cut meanwhile.
pub fn hash_file(file: &File, threads: usize) -> Result<(u64, String)> {
    let size = file.metadata()?.len();
    Ok((size, hash_prefix(file, size, threads)?))
}

/// Hashes a file's first `size` bytes and returns the hash in hex.
///
/// # Errors
/// Fails if the file cannot be read, or is shorter.
pub fn hash_prefix(file: &File, size: u64, threads: usize) -> Result<String> {
    if size <= STRETCH {
        let mut hasher = blake3::Hasher::new();
        update_hasher(file, 0..size, &mut hasher)?;
        return Ok(hasher.finalize().to_hex().to_string());
    }
    let stretches = size.div_ceil(STRETCH);
    let threads = (threads.max(1) as u64).min(stretches);
    let each = |thread: u64| -> Result<Vec<ChainingValue>> {
        (thread..stretches).step_by(threads as usize).map(|i| hash_stretch(file, i, size)).collect()
    };
    let lanes = std::thread::scope(|scope| {
        let each = &each;
        let handles: Vec<_> =
            (1..threads).map(|t| std::thread::Builder::new().spawn_scoped(scope, move || each(t))).collect();
        let mut lanes = vec![each(0)];
        for (t, spawn_outcome) in (1..threads).zip(handles) {
            // A thread that could not be had costs time only.
            lanes.push(match spawn_outcome {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => each(t),
            });
        }
        lanes
    });
    let lanes = lanes.into_iter().collect::<Result<Vec<_>>>()?;
    let value = |i: u64| lanes[(i % threads) as usize][(i / threads) as usize];
    let left_length = left_subtree_len(size);
    let hash = merge_subtrees_root(
        &subtree_value(0, left_length, &value),
        &subtree_value(left_length, size - left_length, &value),
        Mode::Hash,
    );
    Ok(hash.to_hex().to_string())
}

/// Computes the tree's value over `length` bytes from `start`, which must be the start of a stretch.
fn subtree_value(start: u64, length: u64, value: &impl Fn(u64) -> ChainingValue) -> ChainingValue {
    if length <= STRETCH {
        return value(start / STRETCH);
    }
    let left_length = left_subtree_len(length);
    let (a, b) = (
        subtree_value(start, left_length, value),
        subtree_value(start + left_length, length - left_length, value),
    );
    merge_subtrees_non_root(&a, &b, Mode::Hash)
}

fn hash_stretch(file: &File, i: u64, size: u64) -> Result<ChainingValue> {
    let range_start = i * STRETCH;
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(range_start);
    update_hasher(file, range_start..size.min(range_start + STRETCH), &mut hasher)?;
    Ok(hasher.finalize_non_root())
}

fn update_hasher(file: &File, range: std::ops::Range<u64>, hasher: &mut blake3::Hasher) -> Result<()> {
    let mut buf = vec![0; READ_BYTES.min((range.end - range.start) as usize)];
    let mut offset = range.start;
    while offset < range.end {
        let want = buf.len().min((range.end - offset) as usize);
        match file.read_at(&mut buf[..want], offset) {
            Ok(0) => return Err(Error::new(ErrorKind::UnexpectedEof, "it was cut while it was read")),
            Ok(n) => {
                hasher.update(&buf[..n]);
                offset += n as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Guards against a hash that depends on the number of threads: a restart with another number would see a
    /// different source.
    #[test]
    fn the_hash_is_that_of_the_whole_at_any_number_of_threads() {
        let bytes: Vec<u8> =
            (0..(5 << 20) + 77u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for length in [0, 1, 1 << 20, (1 << 20) + 1, 2 << 20, 3 << 20, (4 << 20) + 1025, bytes.len()] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes[..length]).unwrap();
            let expected = blake3::hash(&bytes[..length]).to_hex().to_string();
            for threads in [1, 2, 3, 7] {
                assert_eq!(
                    hash_file(&file, threads).unwrap(),
                    (length as u64, expected.clone()),
                    "{length} {threads}"
                );
            }
        }
    }
}
