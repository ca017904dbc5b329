//! A request for data in XML from any bytes, and behind the first zero its universe file: a request within its bounds, or an
//! error with a place in the text.

use unitape_client::read_request;

pub fn run(bytes: &[u8]) {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (xml, symbols) = bytes.split_at(length);
    let universe = symbols.get(1..).unwrap_or_default();
    match read_request(xml, |_| Ok(universe.to_vec())) {
        Ok(request) => {
            assert!((1..=255).contains(&request.dataset.len()));
            assert!(!request.schemas.is_empty() && request.priority <= 9);
            assert!(request.symbols.iter().all(|symbol| (1..=255).contains(&symbol.len())));
            let mut symbols = request.symbols.clone();
            symbols.sort();
            symbols.dedup();
            assert_eq!(symbols.len(), request.symbols.len());
            if let (Some(since), Some(until)) = (request.since, request.until) {
                assert!(since <= until);
            }
        }
        Err(error) => {
            let lines = xml.split(|byte| *byte == b'\n').count();
            assert!((1..=lines).contains(&error.line) && (1..=xml.len() + 1).contains(&error.column));
            assert!(error.to_string().len() < 10_000);
        }
    }
}
