//! Any text as a mapping, up to the first zero, and any bytes behind it as its messages: it compiles or the error
//! names a line; what it makes of the bytes is whole frames and an account that closes. No panic.

pub fn run(bytes: &[u8]) {
    let at = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (text, messages) = bytes.split_at(at);
    let Ok(text) = std::str::from_utf8(text) else { return };
    // A mapping may name a file that holds its layout, or its templates; which ones there are is not the text's
    // business here.
    if text.contains("layout") && !text.contains("\"nyse-taq-bbo-98\"") {
        return;
    }
    if text.contains("templates") && !text.contains("[\"moex-trades.xml\"]") {
        return;
    }
    unitape_feed::try_mapping(text, messages);
}
