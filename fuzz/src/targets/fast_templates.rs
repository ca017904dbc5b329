//! Files of FAST templates of any bytes; those that load are run.

pub fn run(data: &[u8]) {
    unitape_fast::twin::check::any_templates(data);
}
