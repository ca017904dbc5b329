//! Batches as an Arrow IPC stream, for files and pipes.

use crate::Error;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;

/// An encoder of one IPC stream. A dictionary that has grown is written again before the batch that needs it.
pub struct IpcEncoder {
    writer: StreamWriter<Vec<u8>>,
}

impl std::fmt::Debug for IpcEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcEncoder").finish_non_exhaustive()
    }
}

impl IpcEncoder {
    /// Begins a stream of batches with this schema.
    ///
    /// # Errors
    /// Fails if Arrow cannot encode the schema.
    pub fn new(schema: &Schema) -> Result<Self, Error> {
        Ok(Self { writer: StreamWriter::try_new(Vec::new(), schema)? })
    }

    /// Encodes a batch.
    ///
    /// # Errors
    /// Fails if the batch has another schema.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        Ok(self.writer.write(batch)?)
    }

    /// Encodes the mark of the stream's end.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn finish(&mut self) -> Result<(), Error> {
        Ok(self.writer.finish()?)
    }

    /// Returns the bytes since the last call.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.get_mut())
    }
}
