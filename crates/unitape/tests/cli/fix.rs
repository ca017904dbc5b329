//! FIX on the command line: dictionaries of several files.

use crate::common::{root, run_with_stdin};
use serde_json::json;

// FIXT 1.1 names the group of Logon and leaves it empty; the application's dictionary has it. It stayed flat.
#[test]
fn two_dictionaries_are_one() {
    let body = "35=A|49=A|56=B|34=1|52=20260302-09:30:00|98=0|108=30|1137=9|384=2|372=D|385=S|372=8|385=R|";
    let body = body.replace('|', "\x01");
    let head = format!("8=FIXT.1.1\x019={}\x01{body}", body.len());
    let message = format!("{head}10={:03}\x01", head.bytes().map(u32::from).sum::<u32>() % 256);
    let file = |name: &str| root().join("vectors/fix/dict").join(name).display().to_string();
    let (session, application) = (file("quickfix_FIXT11.xml"), file("quickfix_FIX50SP2.xml"));
    for [first, second] in [[&session, &application], [&application, &session]] {
        let args = ["decode", "fix", "-", "--dictionary", first, "--dictionary", second, "--json"];
        let line = run_with_stdin(args, message.as_bytes()).code(0).json();
        assert_eq!(line["fields"]["384"], json!([{"372": "D", "385": "S"}, {"372": "8", "385": "R"}]));
    }
}
