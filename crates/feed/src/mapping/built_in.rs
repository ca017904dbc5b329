//! The shipped mappings.

/// Their texts.
pub(super) const ALL: &[&str] = &[
    include_str!("../../../../mappings/jse-fix50-indices.toml"),
    include_str!("../../../../mappings/fix44-orders.toml"),
    include_str!("../../../../mappings/swift-mt.toml"),
    include_str!("../../../../mappings/nyse-taq-bbo-98.toml"),
    include_str!("../../../../mappings/sim-day.toml"),
    include_str!("../../../../mappings/nasdaq-itch50.toml"),
    include_str!("../../../../mappings/nasdaq-itch50-stateless.toml"),
    include_str!("../../../../mappings/iso20022.toml"),
    include_str!("../../../../mappings/nyse-taq-trades.toml"),
    include_str!("../../../../mappings/nyse-taq-quotes.toml"),
    include_str!("../../../../mappings/nyse-taq-nbbo.toml"),
    include_str!("../../../../mappings/nyse-taq-master.toml"),
    include_str!("../../../../mappings/ninjs.toml"),
    include_str!("../../../../mappings/slack-messages.toml"),
    include_str!("../../../../mappings/symphony-messages.toml"),
    include_str!("../../../../mappings/mail.toml"),
    include_str!("../../../../mappings/rss-news.toml"),
    include_str!("../../../../mappings/atom-news.toml"),
    include_str!("../../../../mappings/newsml-g2.toml"),
    include_str!("../../../../mappings/t7-emdi.toml"),
    include_str!("../../../../mappings/cme-mdp2.toml"),
    include_str!("../../../../mappings/moex-trades.toml"),
];
