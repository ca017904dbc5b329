//! The frames of a batch, side by side where none has an extension and otherwise wherever they begin.

/// The frames of a batch, by lane.
pub(super) trait BatchFrames {
    /// Returns the fixed part of a lane's frame.
    fn frame(&mut self, lane: usize) -> &mut [u8];

    /// Calls `batch_field` with the fixed part of each of them and its value.
    fn write_each<T>(&mut self, values: impl IntoIterator<Item = T>, write_field: impl FnMut(&mut [u8], T));
}

/// Frames of one size, one after the other.
pub(super) struct UniformFrames<'a> {
    pub frames: &'a mut [u8],
    pub fixed: usize,
}

impl BatchFrames for UniformFrames<'_> {
    #[inline(always)]
    fn frame(&mut self, lane: usize) -> &mut [u8] {
        &mut self.frames[lane * self.fixed..][..self.fixed]
    }

    #[inline(always)]
    fn write_each<T>(
        &mut self,
        values: impl IntoIterator<Item = T>,
        mut write_field: impl FnMut(&mut [u8], T),
    ) {
        for (frame, value) in self.frames.chunks_exact_mut(self.fixed).zip(values) {
            write_field(frame, value);
        }
    }
}

/// Frames with extensions between them.
pub(super) struct SpacedFrames<'a> {
    pub arena: &'a mut [u8],
    /// Start of each frame.
    pub starts: &'a [u32],
    pub fixed: usize,
}

impl BatchFrames for SpacedFrames<'_> {
    #[inline(always)]
    fn frame(&mut self, lane: usize) -> &mut [u8] {
        &mut self.arena[self.starts[lane] as usize..][..self.fixed]
    }

    #[inline(always)]
    fn write_each<T>(
        &mut self,
        values: impl IntoIterator<Item = T>,
        mut write_field: impl FnMut(&mut [u8], T),
    ) {
        for (start, value) in self.starts.iter().zip(values) {
            write_field(&mut self.arena[*start as usize..][..self.fixed], value);
        }
    }
}

/// Puts bytes into a frame.
#[inline(always)]
pub(super) fn write_bytes<const N: usize>(frame: &mut [u8], offset: usize, value: [u8; N]) {
    frame[offset..offset + N].copy_from_slice(&value);
}
