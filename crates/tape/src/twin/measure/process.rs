//! The second process of a measurement: how it is started, instructed, waited for, and ended.

use std::hint::spin_loop;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::AtomicU64;

use memmap2::MmapRaw;

use super::PeerCommand;
use crate::error::{Error, FileContext, Result};
use crate::write::placement::HelperThreadAffinity;
use crate::{Backing, WriterOptions};

/// The second process; ends with us.
pub(super) struct PeerProcess(Child);

impl PeerProcess {
    pub fn start(spawn: PeerCommand<'_>, arguments: &[String]) -> Result<Self> {
        spawn(arguments).spawn().with_context("start", Path::new("the second process")).map(Self)
    }

    /// Spins until `done`, or fails if the second process has ended badly.
    #[inline]
    pub fn spin_until(&mut self, mut is_done: impl FnMut() -> bool) -> Result<()> {
        self.try_spin_until(|| Ok(is_done()))
    }

    #[inline]
    pub fn try_spin_until(&mut self, mut is_done: impl FnMut() -> Result<bool>) -> Result<()> {
        let mut spins = 0u32;
        while !is_done()? {
            spin_loop();
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 22) {
                self.check()?;
            }
        }
        Ok(())
    }

    /// Fails if the process has ended badly.
    #[cold]
    pub fn check(&mut self) -> Result<()> {
        match self.0.try_wait() {
            Ok(Some(status)) if !status.success() => Err(FAILED),
            _ => Ok(()),
        }
    }

    /// Waits for its good end.
    pub fn finish(&mut self) -> Result<()> {
        let status = self.0.wait().with_context("wait for", Path::new("the second process"))?;
        if status.success() { Ok(()) } else { Err(FAILED) }
    }
}

const FAILED: Error = Error::Option("the second process of the measurement failed");

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // After `finish` both do nothing; before it the process would spin for ever.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The arguments of the second process.
pub(super) struct PeerArguments<'a>(pub &'a [String]);

impl PeerArguments<'_> {
    pub fn text(&self, i: usize) -> Result<&str> {
        self.0.get(i).map(String::as_str).ok_or(Error::Option("an argument of the peer is missing"))
    }

    pub fn number(&self, i: usize) -> Result<u64> {
        self.text(i)?.parse().map_err(|_| Error::Option("an argument of the peer is no number"))
    }

    /// Parses the options that [`encode_options`] wrote, from argument `i` on.
    pub fn options(&self, i: usize) -> Result<WriterOptions> {
        let mut options = WriterOptions {
            segment_bytes: self.number(i)?,
            prefault_bytes: self.number(i + 1)?,
            ..WriterOptions::default()
        };
        let window = self.number(i + 2)?;
        if window > 0 {
            let dir = Some(self.text(i + 3)?).filter(|&dir| dir != NONE).map(Into::into);
            options.backing = Backing::Hot { dir, window_segments: window as u32 };
        }
        let mut cpus = Vec::new();
        for cpu in self.text(i + 4)?.split(',').filter(|&cpu| cpu != NONE) {
            cpus.push(cpu.parse().map_err(|_| Error::Option("a processor is a number"))?);
        }
        let nice = self.text(i + 5)?.parse().ok();
        options.helpers = HelperThreadAffinity { cpus, nice_value: nice };
        Ok(options)
    }
}

/// An argument that says nothing; an empty one could get lost on the way.
pub(super) const NONE: &str = "-";

/// Options as arguments.
pub(super) fn encode_options(options: &WriterOptions) -> Result<Vec<String>> {
    let (window, dir) = match &options.backing {
        Backing::File => (0, NONE.to_owned()),
        Backing::Hot { dir, window_segments } => {
            (*window_segments, dir.as_deref().map_or(Ok(NONE.to_owned()), text)?)
        }
    };
    let cpus: Vec<String> = options.helpers.cpus.iter().map(usize::to_string).collect();
    Ok(vec![
        options.segment_bytes.to_string(),
        options.prefault_bytes.to_string(),
        window.to_string(),
        dir,
        if cpus.is_empty() { NONE.to_owned() } else { cpus.join(",") },
        options.helpers.nice_value.map_or_else(|| NONE.to_owned(), |n| n.to_string()),
    ])
}

/// Copies the options for one of several tapes, and appends `suffix` to a given hot directory.
pub(super) fn with_hot_suffix(options: &WriterOptions, suffix: &str) -> WriterOptions {
    let mut options = options.clone();
    if let Backing::Hot { dir: Some(dir), .. } = &mut options.backing {
        let mut name = dir.clone().into_os_string();
        name.push(suffix);
        *dir = name.into();
    }
    options
}

pub(super) fn text(path: &Path) -> Result<String> {
    path.to_str().map(Into::into).ok_or(Error::Option("the directory's name must be UTF-8"))
}

/// A shared page of words, 128 bytes apart.
pub(super) struct SharedWords(MmapRaw);

impl SharedWords {
    /// Makes the file, all zero.
    pub fn create(path: &Path) -> Result<Self> {
        std::fs::write(path, [0; 4096]).with_context("write", path)?;
        Self::open(path)
    }

    pub fn open(path: &Path) -> Result<Self> {
        let file =
            std::fs::OpenOptions::new().read(true).write(true).open(path).with_context("open", path)?;
        if file.metadata().with_context("look at", path)?.len() < 4096 {
            return Err(Error::damage(path, 0, "the shared page is too short"));
        }
        Ok(Self(MmapRaw::map_raw(&file).with_context("map", path)?))
    }

    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 32);
        // SAFETY: 32 * 128 bytes are the page that `open` found, aligned; both processes use atomics only.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index * 16)) }
    }
}
