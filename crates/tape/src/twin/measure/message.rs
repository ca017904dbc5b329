//! The message of the measurements: a numbered frame.

use unitape_model::{FrameHeader, LINE, flags};

/// Numbered frames, made a little ahead of being sent, as a message that is ready in its sender's buffer.
#[derive(Debug)]
pub struct BenchFrameGenerator {
    frames: Vec<Vec<u8>>,
    next: u64,
}

/// Frames made ahead: far enough that the store of a number is done when the frame is copied to the tape.
const AHEAD: u64 = 32;

/// Returns the payload bytes in a frame of `lines` lines; the rest after the header word is zero.
pub fn payload_of(lines: u16) -> usize {
    match lines {
        // The message of the peers: 100 bytes, which take two lines.
        2 => 100,
        lines => usize::from(lines.max(1)) * LINE - 8,
    }
}

impl BenchFrameGenerator {
    /// Frames of `lines` lines, numbered from 0.
    pub fn new(lines: u16) -> Self {
        let lines = lines.max(1);
        let mut frame = vec![0; usize::from(lines) * LINE];
        frame[8..8 + payload_of(lines)].fill(0x5a);
        FrameHeader::new_unstamped(20, flags::LAST, lines).write(&mut frame);
        let frames = (0..AHEAD).map(|n| numbered(frame.clone(), n)).collect();
        Self { frames, next: 0 }
    }

    /// Returns the next frame.
    #[inline]
    #[allow(clippy::should_implement_trait)] // lends the frame, which an Iterator cannot
    pub fn next(&mut self) -> &[u8] {
        let last = self.next.wrapping_sub(1);
        if self.next > 0 {
            // The one sent before is done with, and will be sent again in `AHEAD - 1` steps.
            let number = last + AHEAD;
            self.frames[(last % AHEAD) as usize][8..16].copy_from_slice(&number.to_le_bytes());
        }
        self.next += 1;
        &self.frames[((self.next - 1) % AHEAD) as usize]
    }

    /// Returns the number in a frame. Touches every word of the frame, as a user would.
    #[inline]
    pub fn number(frame: &[u8]) -> u64 {
        std::hint::black_box(sum(frame));
        u64::from_le_bytes(frame[8..16].try_into().expect("eight bytes"))
    }
}

fn numbered(mut frame: Vec<u8>, number: u64) -> Vec<u8> {
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    frame
}

#[inline]
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(8)
        .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
        .fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer used again too early would send a number twice, and the check on the other side would pass for
    /// the wrong reason if the numbers were those of the slots.
    #[test]
    fn frames_are_numbered_one_after_the_other_and_differ_in_nothing_else() {
        let mut messages = BenchFrameGenerator::new(2);
        let first = messages.next().to_vec();
        assert_eq!((BenchFrameGenerator::number(&first), first.len()), (0, 128));
        assert!(first[16..108].iter().all(|&b| b == 0x5a) && first[108..].iter().all(|&b| b == 0));
        for n in 1..1000 {
            let frame = messages.next();
            assert_eq!(BenchFrameGenerator::number(frame), n);
            assert_eq!((&frame[..8], &frame[16..]), (&first[..8], &first[16..]));
        }
    }
}
