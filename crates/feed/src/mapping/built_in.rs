//! The shipped mappings.

use super::Mapping;
use std::sync::OnceLock;

/// One of them.
struct Shipped {
    /// Its name, which is that of its file.
    name: &'static str,
    text: &'static str,
    /// The text, read when it is first used: reading all mappings takes longer than consolidating a small file.
    mapping: OnceLock<Mapping>,
}

impl Shipped {
    /// The mapping, read at the first call. It is not compiled here: a test compiles each.
    ///
    /// # Panics
    /// When it cannot be read, which a test excludes.
    fn mapping(&self) -> &Mapping {
        self.mapping
            .get_or_init(|| Mapping::read(self.text, "built in").expect("a shipped mapping is tested"))
    }
}

/// The one of this name.
pub(super) fn named(name: &str) -> Option<&'static Mapping> {
    ALL.iter().find(|shipped| shipped.name == name).map(Shipped::mapping)
}

/// All of them, each read when its turn comes.
pub(super) fn all() -> impl Iterator<Item = &'static Mapping> {
    ALL.iter().map(Shipped::mapping)
}

macro_rules! shipped {
    ($($name:literal,)*) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../mappings/", $name, ".toml")),
            mapping: OnceLock::new(),
        }),*]
    };
}

/// Of two that suit a file equally well, detection takes the later one.
static ALL: [Shipped; 22] = shipped![
    "jse-fix50-indices",
    "fix44-orders",
    "swift-mt",
    "nyse-taq-bbo-98",
    "sim-day",
    "nasdaq-itch50",
    "nasdaq-itch50-stateless",
    "iso20022",
    "nyse-taq-trades",
    "nyse-taq-quotes",
    "nyse-taq-nbbo",
    "nyse-taq-master",
    "ninjs",
    "slack-messages",
    "symphony-messages",
    "mail",
    "rss-news",
    "atom-news",
    "newsml-g2",
    "t7-emdi",
    "cme-mdp2",
    "moex-trades",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_mappings_compile_and_have_names_of_their_own() {
        for shipped in &ALL {
            let mapping = Mapping::parse(shipped.text, "built in").unwrap();
            assert_eq!(mapping.name, shipped.name);
            assert_eq!(mapping.identity(), shipped.mapping().identity());
            // A handler without a feed has the same ones.
            let of_handler = unitape_marketdata::engine::Shipped::named(shipped.name).map(|other| other.text);
            assert_eq!(of_handler, mapping.fast.is_some().then_some(shipped.text));
        }
    }
}
