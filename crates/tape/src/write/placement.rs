//! Where threads run, and how urgently: pinning, and what a writer asks for its helper threads.

use crate::error::{Error, Result};

/// Where the helper threads of a writer (preallocator and recorder) run, and with what priority.
///
/// By default they run wherever the system puts them, as the thread that opened the writer would. On a machine with a
/// spare processor, keep them off the processors of the writer and of urgent readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelperThreadAffinity {
    /// Processors on which they may run; empty: those of the thread that opens the writer.
    pub cpus: Vec<usize>,
    /// Their nice value, −20 (before all others) to 19; below that of the process only with the right to it.
    pub nice_value: Option<i32>,
}

impl HelperThreadAffinity {
    /// Checks that the system grants this placement.
    ///
    /// # Errors
    /// Fails if a processor is missing or not allowed, or if the process has no right to the priority.
    pub fn check(&self) -> Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        // Runs in its own thread: the tried settings end with the thread.
        std::thread::scope(|scope| scope.spawn(|| self.try_apply()).join().unwrap_or(Ok(())))
    }

    /// Applies the placement to the calling thread, after [`HelperThreadAffinity::check`]. Ignores settings that have
    /// become impossible since.
    pub(crate) fn apply_placement(&self) {
        // Checked when the writer was opened. A processor taken away since costs speed, not correctness.
        let _ = self.try_apply();
    }

    fn try_apply(&self) -> Result<()> {
        if !self.cpus.is_empty() && !pin_to(&self.cpus) {
            return Err(Error::Option("the helper threads cannot be pinned to these processors"));
        }
        match self.nice_value {
            Some(nice) if !(-20..20).contains(&nice) => Err(Error::Option("nice is a number from -20 to 19")),
            Some(nice) if !set_nice(nice) => {
                Err(Error::Option("no right to this nice value for the helper threads (CAP_SYS_NICE)"))
            }
            _ => Ok(()),
        }
    }
}

/// Pins the calling thread to these processors; false where that cannot be done.
pub fn pin_to(cpus: &[usize]) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut set = rustix::thread::CpuSet::new();
        for &cpu in cpus {
            if cpu >= rustix::thread::CpuSet::MAX_CPU {
                return false;
            }
            set.set(cpu);
        }
        rustix::thread::sched_setaffinity(None, &set).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpus;
        false
    }
}

/// Sets the nice value of the calling thread.
fn set_nice(nice: i32) -> bool {
    #[cfg(target_os = "linux")]
    {
        // On Linux the value is the thread's, and none names the caller's.
        rustix::process::setpriority_process(None, nice).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = nice;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a helper silently ran on another CPU than configured, only somebody's percentiles would show it, if ever.
    #[test]
    fn what_cannot_be_granted_is_an_error_when_the_writer_is_opened() {
        for helpers in [
            HelperThreadAffinity { cpus: vec![1 << 20], nice_value: None },
            HelperThreadAffinity { cpus: vec![1023], nice_value: None },
            HelperThreadAffinity { cpus: vec![], nice_value: Some(20) },
        ] {
            assert!(matches!(helpers.check(), Err(Error::Option(_))), "{helpers:?}");
            let dir = tempfile::tempdir().unwrap();
            let options = crate::WriterOptions { helpers, ..crate::WriterOptions::default() };
            assert!(matches!(
                crate::Writer::open(dir.path(), crate::TapeId(1), options),
                Err(Error::Option(_))
            ));
            assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing was made");
        }
    }

    /// Pinning in the wrong thread would pin the caller's, and with it everything it starts later.
    #[test]
    #[cfg(target_os = "linux")]
    fn helpers_go_where_they_are_told_and_the_caller_stays() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|&c| before.is_set(c)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let helpers = HelperThreadAffinity { cpus: vec![cpu], nice_value: Some(19) };
        let options =
            crate::WriterOptions { segment_bytes: 1 << 16, helpers, ..crate::WriterOptions::default() };
        let (writer, _) = crate::Writer::open(dir.path(), crate::TapeId(1), options).unwrap();
        let ours = |name: &str| {
            std::fs::read_dir("/proc/self/task").unwrap().flatten().find_map(|task| {
                let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
                let status = std::fs::read_to_string(task.path().join("status")).ok()?;
                let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
                (comm.trim() == name && list.trim() == cpu.to_string()).then_some(())
            })
        };
        // The threads apply it themselves as they begin.
        while ["tape-prealloc", "tape-recorder"].iter().any(|name| ours(name).is_none()) {
            std::thread::yield_now();
        }
        writer.close().unwrap();
        assert!(rustix::thread::sched_getaffinity(None).unwrap() == before);
    }
}
