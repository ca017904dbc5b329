use super::*;
use crate::text::decode_json;
use crate::twin::text::check;
use crate::twin::text::mail::check::any_bytes;
use crate::twin::text::mail::sample::sample_mbox;
use proptest::prelude::*;

/// The content of each message of this input: its values as `path=text`, or the code of its fault and where it is.
fn decoded(input: &[u8]) -> Vec<Vec<String>> {
    let (mut decoder, mut leaves, mut at) = (MailDecoder::default(), PathValues::default(), 0);
    let mut all = Vec::new();
    loop {
        at = match decoder.next(input, at, true, &mut leaves) {
            NextTextMessage::Message(message) => {
                all.push(leaves.iter().map(|(path, text)| format!("{path}={text}")).collect());
                message.span.end
            }
            NextTextMessage::Bad { span, fault } => {
                all.push(vec![fault.code.as_str().to_owned(), format!("{}..{}", span.start, span.end)]);
                span.end
            }
            _ => return all,
        }
    }
}

fn one(input: &str) -> Vec<String> {
    let mut all = decoded(input.as_bytes());
    assert_eq!(all.len(), 1, "{all:?}");
    all.pop().unwrap()
}

// A folded subject lost its second line, and a name in two encoded words had a blank too many.
#[test]
fn a_message_with_all_that_headers_can_do() {
    let mail = "Date: Mon, 2 Mar 2026 09:30:00 +0000\r\nMessage-ID: <1@x>\r\nFrom: =?utf-8?q?Ann?=\r\n =?utf-8?q?_=C3=84mes?= <ann@x>\r\nTo: bob@y, \"Cole, Cy\" <cy@y>\r\nCC: desk: dee@z;\r\nBcc:\r\nSubject: the\r\n\tfix =?iso-8859-1?q?caf=E9?=\r\nReferences: <a@x>\r\n <b@x>\r\nX-Odd.Name: one\r\nReceived: a\r\nReceived: b\r\n\r\nFirst.\r\n\r\nFrom here on, second.\r\n";
    assert_eq!(
        one(mail),
        [
            "date=Mon, 2 Mar 2026 09:30:00 +0000",
            "message_id=1@x",
            "from[].name=Ann Ämes",
            "from[].email=ann@x",
            "to[].email=bob@y",
            "to[].name=Cole, Cy",
            "to[].email=cy@y",
            "cc[].email=dee@z",
            "subject=the\tfix café",
            "references[]=a@x",
            "references[]=b@x",
            "headers.\"x-odd.name\"=one",
            "headers.received=a",
            "headers.received=b",
            "recipients[]=bob@y",
            "recipients[]=cy@y",
            "recipients[]=dee@z",
            "text=First.\n\nFrom here on, second.",
        ]
    );
}

// The HTML of a mail was read as its text, and an attached file too.
#[test]
fn text_is_the_plain_part() {
    let parts = "Subject: s\nContent-Type: multipart/mixed; boundary=\"=_o (1)\"\n\nno part\n--=_o (1)\nContent-Type: multipart/alternative; boundary=in\n\n--in\nContent-Type: text/html\n\n<b>x</b>\n--in\nContent-Type: text/plain; charset=iso-8859-15; format=flowed\nContent-Transfer-Encoding: Quoted-Printable\n\nprice =A4 5, soft=\n line\n--in--\n\n--=_o (1)\nContent-Disposition: attachment;\n filename=\"=?utf-8?q?=C3=BC?=.txt\"\n\nattached\n--=_o (1)\nContent-Type: image/png; name=logo.png\n\n..\n--=_o (1)\n\nfooter\n--=_o (1)--\nepilogue\n";
    assert_eq!(
        one(parts),
        [
            "subject=s",
            "headers.content-type=multipart/mixed; boundary=\"=_o (1)\"",
            "text=price € 5, soft line\nfooter",
            "alternatives[]=text/html",
            "attachments[].name=ü.txt",
            "attachments[].type=text/plain",
            "attachments[].name=logo.png",
            "attachments[].type=image/png",
            "attachment_count=2",
            "attachment_list=ü.txt (text/plain); logo.png (image/png)",
        ]
    );
    let html = one("Subject: s\nContent-Type: text/html; charset=utf-8\n\n<p>ü</p>\n");
    assert_eq!(html.last().map(String::as_str), Some("html=<p>ü</p>"));
}

// A line "From the desk" in a mail was the start of another one; a quoted one kept its mark.
#[test]
fn an_mbox_is_told_apart() {
    let mbox = "\nFrom ann@x Mon Mar  2 09:30:00 2026\nSubject: a\n\nFrom the desk of Ann\n>From here\n>>From there\n> From not\n\nFrom bob@y Tue Mar  3 10:00:00 2026 +0100\nSubject: b\n\nbody\n";
    let all = decoded(mbox.as_bytes());
    assert_eq!(all.len(), 2);
    assert_eq!(all[0], ["subject=a", "text=From the desk of Ann\nFrom here\n>From there\n> From not"]);
    assert_eq!(all[1], ["subject=b", "text=body"]);
    // A message without a postmark has no marks.
    assert_eq!(one("Subject: a\n\n>From here\n")[1], "text=>From here");
    assert_eq!(MailDecoder::cut(mbox.as_bytes()), mbox.find("From bob").unwrap());
    assert_eq!(MailDecoder::cut(b"Subject: a\n\n>From here\n"), 0);
}

// A fault in a message must cost that message only.
#[test]
fn each_fault_has_its_code_and_its_neighbours_are_kept() {
    for (mail, code) in [
        (&b"nothing of the sort\n"[..], "garbage"),
        (b"Subject: x\n no body", "truncated"),
        (b"Subject: x\nno field at all\n\nbody\n", "bad_header"),
        (b"To: caf\xe9@x\n\nbody\n", "bad_utf8"),
        (b"Message-ID: <\xe9@x>\n\nbody\n", "bad_utf8"),
        (b"Content-Type: text/plain; charset=euc-kr\n\n\xbe\xc8\xb3\n", "bad_utf8"),
        (b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\ncaf=E9\n", "bad_utf8"),
        (b"Content-Transfer-Encoding: uuencode\n\nx\n", "bad_encoding"),
        (b"Content-Transfer-Encoding: base64\n\nQUJDR\n", "truncated"),
        (b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\npart\n", "truncated"),
        (b"Content-Type: multipart/mixed\n\nx\n", "bad_header"),
        (b"Date: a\nDate: b\n\nx\n", "duplicate"),
        (b"Content-Transfer-Encoding: base64\n\nQQ==QUJD\n", "truncated"),
    ] {
        let mark = b"From a@x Mon Mar  2 09:30:00 2026\n";
        let good = b"Subject: good\n\nbody\n\n";
        let input = [&mark[..], good, mark, mail, b"\n", mark, good].concat();
        let all = decoded(&input);
        let shown = String::from_utf8_lossy(mail);
        // A line after a postmark is a header, or is not.
        let code = if code == "garbage" { "bad_header" } else { code };
        assert_eq!(all.len(), 3, "{shown}: {all:?}");
        assert_eq!(all[1][0], code, "{shown}: {all:?}");
        assert!(all[0] == ["subject=good", "text=body"] && all[2] == all[0], "{shown}: {all:?}");
    }
    assert_eq!(one("nothing of the sort\n")[0], "garbage");
}

/// Text and note on sets of characters of a mail with this header and body, read by `decoder`; or the fault in words.
fn read_by(decoder: MailDecoder, mail: &[u8]) -> Result<(Vec<String>, Option<String>), String> {
    let (mut decoder, mut leaves) = (decoder, PathValues::default());
    match decoder.next(mail, 0, true, &mut leaves) {
        NextTextMessage::Message(_) => Ok((
            leaves.iter().map(|(path, text)| format!("{path}={text}")).collect(),
            leaves.charset_note().map(str::to_owned),
        )),
        NextTextMessage::Bad { fault, .. } => Err(fault.to_string()),
        other => panic!("{other:?}"),
    }
}

// A mail was lost for one letter of its subject, or for the name of its set of characters.
#[test]
fn text_of_any_set_is_read_and_guesses_are_noted() {
    for (mail, want, note) in [
        (
            &b"Subject: caf\xe9\n\nbody\n"[..],
            &["subject=caf\u{e9}", "text=body"][..],
            Some("guessed windows-1252"),
        ),
        (b"Subject: x\n\n5 \x80\n", &["subject=x", "text=5 \u{20ac}"], Some("guessed windows-1252")),
        (
            b"Content-Type: text/plain; charset=us-ascii\n\ncaf\xe9\n",
            &["text=caf\u{e9}"],
            Some("guessed windows-1252"),
        ),
        (
            b"Content-Type: text/plain; charset=x-unknown\n\nsell na\xefve\n",
            &["text=sell na\u{fffd}ve"],
            Some("unknown x-unknown"),
        ),
        (b"Content-Type: text/plain; charset=klingon\n\nsell\n", &["text=sell"], Some("unknown klingon")),
        (b"Content-Type: text/plain; charset=IBM437\n\nna\x8bve\n", &["text=na\u{ef}ve"], None),
        (b"Content-Type: text/plain; charset=utf-7\n\nGr+APwA3w-e\n", &["text=Gr\u{fc}\u{df}e"], None),
        // Raw bytes of the header are of the set that the text declares.
        (
            b"Subject: \xc2\xc1\xce\xcb\nContent-Type: text/plain; charset=koi8-r\n\n\xc2\xc1\xce\xcb\n",
            &["subject=\u{431}\u{430}\u{43d}\u{43a}", "text=\u{431}\u{430}\u{43d}\u{43a}"],
            Some("guessed KOI8-R"),
        ),
        (
            b"From: J\xfcrgen <j@x>\n\nbody\n",
            &["from[].name=J\u{fc}rgen", "from[].email=j@x", "text=body"],
            Some("guessed windows-1252"),
        ),
        (
            b"Subject: =?x-unknown?q?sell_=E9?=\n\nbody\n",
            &["subject=sell \u{fffd}", "text=body"],
            Some("unknown x-unknown"),
        ),
        (b"Subject: caf\xc3\xa9\n\nbody\n", &["subject=caf\u{e9}", "text=body"], None),
    ] {
        let (values, said) = read_by(MailDecoder::default(), mail).unwrap();
        let values: Vec<_> = values.iter().filter(|v| !v.starts_with("headers.")).collect();
        assert_eq!(values, want, "{}", mail.escape_ascii());
        assert_eq!(said.as_deref(), note, "{}", mail.escape_ascii());
    }
    let by = |name| MailDecoder::default().with_fallback(FallbackCharset::by_name(name).unwrap());
    let (values, note) = read_by(by("cp850"), b"Subject: x\n\nGr\x81\xe1e\n").unwrap();
    assert_eq!((values[1].as_str(), note), ("text=Gr\u{fc}\u{df}e", None));
}

// The reason did not say which set it was about.
#[test]
fn a_label_that_lies_is_named_with_the_place() {
    for (mail, words) in [
        (
            &b"Content-Type: text/plain; charset=\"ks_c_5601-1987\"\n\nab\xbe\n"[..],
            "`ks_c_5601-1987` at byte 54",
        ),
        (b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9\n", "`utf-8` at byte 44"),
        (
            b"Content-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n\nANg=\n",
            "`utf-16`",
        ),
        (b"To: caf\xe9@x\n\nbody\n", "an address with bytes that are neither ASCII nor UTF-8"),
    ] {
        let error = read_by(MailDecoder::default(), mail).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

// A file's name in the form of RFC 2231 was no name.
#[test]
fn long_names_of_files_are_read() {
    for (field, want) in [
        ("attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.csv", "Gr\u{fc}\u{df}e.csv"),
        ("attachment; filename*=iso-8859-1'de'f%FCr.csv; filename=\"fur.csv\"", "f\u{fc}r.csv"),
        ("attachment; filename*0=\"a long \"; filename*1=\"name.pdf\"", "a long name.pdf"),
        ("attachment; filename*0*=cp850''%81; filename*1=\"%20.pdf\"", "\u{fc}%20.pdf"),
        ("attachment; filename*=utf-8''%FF; filename=plain.pdf", "plain.pdf"),
        ("attachment; filename=\"plain.pdf\"", "plain.pdf"),
        ("attachment; filename*=x", "x"),
    ] {
        let mail = format!("Content-Type: application/pdf\nContent-Disposition: {field}\n\nx\n");
        assert!(one(&mail).contains(&format!("attachments[].name={want}")), "{field}: {:?}", one(&mail));
    }
}

// A file without end was read into memory to its end; a mail of ten thousand parts in each other took the stack.
#[test]
fn what_has_no_end_is_refused() {
    let long = format!("Subject: x\n\n{}", "line\n".repeat(100));
    let mut decoder = MailDecoder::default().with_max_message(100);
    let mut leaves = PathValues::default();
    let next = decoder.next(long.as_bytes(), 0, true, &mut leaves);
    let NextTextMessage::Bad { span, fault } = next else { panic!("{next:?}") };
    assert_eq!((span.end, fault.code), (100, TextFaultCode::TooLarge));
    let mut deep = "Subject: x\n".to_owned();
    for n in 0..10_000 {
        deep.push_str(&format!("Content-Type: multipart/mixed; boundary=b{n}x\n\n--b{n}x\n"));
    }
    assert_eq!(one(&deep)[0], "truncated");
    for n in (0..10_000).rev() {
        deep.push_str(&format!("\n--b{n}x--\n"));
    }
    assert_eq!(one(&deep)[0], "too_deep");
}

// Half a gigabyte was taken for a header of eight megabytes: each `;=` of it was a parameter, each comma a recipient; and a
// field full of starts of encoded words was looked through from each of them to its end.
#[test]
fn headers_of_a_great_many_things_cost_no_more_than_their_bytes() {
    for (start, again, code) in [
        ("Content-Type: text/plain", ";=", Some("too_deep")),
        ("To: ", "a,", Some("too_deep")),
        ("References: ", "a ", Some("too_deep")),
        ("Subject: ", "=?x?q?y", None),
        ("Subject: ", "=?x?b?A", None),
        ("To: ", "(", None),
        ("To: ", "<", None),
        ("Content-Type: text/plain; x=y ", "(", None),
    ] {
        let mail = format!("{start}{}\n\nx\n", again.repeat(400_000));
        let values = one(&mail);
        match code {
            Some(code) => assert_eq!(values[0], code, "{start}{again}"),
            None => assert_eq!(values.last().map(String::as_str), Some("text=x"), "{start}{again}"),
        }
    }
    let remarks = "Content-Type: text/plain (a (remark)); charset=\"us-ascii\" (another)\nContent-Transfer-Encoding: 7bit (x)\n\ny\n";
    assert_eq!(one(remarks).last().map(String::as_str), Some("text=y"));
}

#[test]
fn samples_are_read_to_the_message() {
    let mbox = sample_mbox(60, 3);
    let all = decoded(&mbox);
    assert_eq!(all.len(), 60);
    for message in &all {
        let has = |start: &str| message.iter().any(|value| value.starts_with(start));
        assert!(
            has("message_id=") && has("text=") && has("from[].name=") && has("recipients[]="),
            "{message:?}"
        );
        assert!(!has("html="), "{message:?}");
    }
    let between = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    check::accounted(&mut MailDecoder::default(), between, &mbox).unwrap();
    let mut out = Vec::new();
    let summary = decode_json(&mut &mbox[..], "f", &mut MailDecoder::default(), &mut out).unwrap();
    assert_eq!((summary.messages, summary.errors), (60, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_text_near_mail_holds_what_must(
        pick in any::<u8>(),
        parts in prop::collection::vec(prop::sample::select(&[
            "From a@x Mon Mar  2 09:30:00 2026\n", "From ", "\n", "\r\n", "Subject: x\n", "To: a@x, \"b\" <c@y>\n", " folded\n",
            ">From x\n", "Content-Type: multipart/mixed; boundary=b\n", "--b\n", "--b--\n", "text\n", "Content-Type: message/rfc822\n", "Content-Type: multipart/alternative; boundary=b\n", "=?utf-8?q?=C3?=", "é",
            "Content-Transfer-Encoding: base64\n", "QUJD\n", "Date: Mon, 2 Mar 2026 09:30:00 +0000\n", ": ", "=\n",
        ][..]), 0..16),
    ) {
        let mut data = vec![pick];
        data.extend(parts.concat().bytes());
        any_bytes(&data);
    }
}
