//! Makes a program run under valgrind on kernels that it does not know all of.
//!
//! Valgrind hides the vDSO from a program: it is not mapped, and is neither in the auxiliary vector on the stack nor in
//! `/proc/self/auxv`. Since Linux 6.4 a program can ask for that vector by `prctl(PR_GET_AUXV)` as well, which valgrind
//! passes on. A program that follows the kernel's answer to the vDSO ends with a segmentation fault. So this call is
//! made to fail, as it does on older kernels.

use std::process::Command;

/// Has `prctl(PR_GET_AUXV)` fail in what the command starts. Where filters are not permitted nothing is changed.
#[cfg(all(target_os = "linux", target_endian = "little"))]
pub(crate) fn hide_vdso(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: between fork and exec only calls that are safe in a signal handler are allowed: `install` makes two
    // system calls, on memory of its own stack, and does not allocate.
    unsafe {
        command.pre_exec(|| {
            install();
            Ok(())
        });
    }
}

/// Has `prctl(PR_GET_AUXV)` fail in what the command starts.
#[cfg(not(all(target_os = "linux", target_endian = "little")))]
pub(crate) fn hide_vdso(_command: &mut Command) {}

/// Installs the filter for this process and what it becomes.
#[cfg(all(target_os = "linux", target_endian = "little"))]
fn install() {
    const PR_GET_AUXV: u32 = 0x4155_5856;
    /// Where `struct seccomp_data` has the number of the call, and its first argument.
    const NUMBER: u32 = 0;
    const FIRST: u32 = 16;
    let step =
        |code: u32, yes: u8, no: u8, k: u32| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equal = |k, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, k);
    let end = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let mut steps = [
        load(NUMBER),
        equal(libc::SYS_prctl as u32, 0, 3),
        load(FIRST),
        equal(PR_GET_AUXV, 0, 1),
        end(libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: both calls get the arguments that prctl(2) states for them; `program` and the steps that it points at
    // live until the second has returned, and the kernel keeps a copy.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1u64, 0u64, 0u64, 0u64) == 0 {
            libc::prctl(libc::PR_SET_SECCOMP, u64::from(libc::SECCOMP_MODE_FILTER), &raw const program);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_endian = "little"))]
mod tests {
    use super::*;

    const CHILD: &str = "XTASK_LAUNCH_CHILD";

    /// A filter that hits another call, or all of prctl, would change what is counted; one that hits none lets programs
    /// end with a segmentation fault.
    #[test]
    fn the_auxiliary_vector_is_hidden_and_nothing_else() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "instructions::launch::tests::child"]).env(CHILD, "1");
        hide_vdso(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    /// Not a test of its own: what the test above starts.
    #[test]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let mut buffer = [0u8; 512];
        // SAFETY: the kernel writes at most as many bytes as it is given.
        let got = unsafe { libc::prctl(0x4155_5856, buffer.as_mut_ptr(), buffer.len(), 0u64, 0u64) };
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((got, errno), (-1, Some(libc::EINVAL)));
        // SAFETY: a name is at most 16 bytes.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_NAME, buffer.as_mut_ptr(), 0u64, 0u64, 0u64) }, 0);
        assert_ne!(buffer[0], 0);
    }
}
