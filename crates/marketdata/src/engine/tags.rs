//! What fields are to us. A mapping names fields by their paths; here they become what is asked of the decoder: to deliver
//! these and no others, each under the number of its [`Tag`]. From there on nothing is looked up by name or path.

use super::plan::Set;
use unitape_fast::Templates;
use unitape_fast::template::Instruction;

/// Tags and their numbers, both ways.
macro_rules! tags {
    ($($(#[$about:meta])* $tag:ident = $number:literal,)*) => {
        /// What a field is to us.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        #[allow(missing_docs)] // told by their names in `config`
        pub(super) enum Tag {
            $($(#[$about])* $tag = $number,)*
        }

        impl Tag {
            /// By its number; none of what was not asked for.
            #[inline(always)]
            pub fn of(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Tag::$tag),)*
                    _ => None,
                }
            }
        }
    };
}

tags! {
    // Those of entries come first: to tell them from all others is then one comparison.
    Instrument = 0,
    Action = 1,
    Type = 2,
    Px = 3,
    Qty = 4,
    Orders = 5,
    Depth = 6,
    EntryTime = 7,
    TradeId = 8,
    Aggressor = 9,
    InstrumentState = 10,
    Product = 11,
    Sequence = 12,
    Last = 13,
    Time = 14,
    ProductState = 15,
    Name = 16,
    Group = 17,
    Symbol = 18,
    MarketDepth = 19,
    Tick = 20,
    Multiplier = 21,
    Currency = 22,
    Deleted = 23,
    /// The sequence of entries.
    Entries = 24,
    HeadSequence = 25,
    HeadSender = 26,
    HeadPartition = 27,
    HeadTime = 28,
    HeadReset = 29,
}

/// Names of fields in messages, and what they are.
pub(super) const FIELDS: [(&str, Tag); 24] = [
    ("product", Tag::Product),
    ("sequence", Tag::Sequence),
    ("last", Tag::Last),
    ("time", Tag::Time),
    ("instrument", Tag::Instrument),
    ("action", Tag::Action),
    ("type", Tag::Type),
    ("px", Tag::Px),
    ("qty", Tag::Qty),
    ("orders", Tag::Orders),
    ("depth", Tag::Depth),
    ("entry_time", Tag::EntryTime),
    ("trade_id", Tag::TradeId),
    ("aggressor", Tag::Aggressor),
    ("product_state", Tag::ProductState),
    ("instrument_state", Tag::InstrumentState),
    ("name", Tag::Name),
    ("group", Tag::Group),
    ("symbol", Tag::Symbol),
    ("market_depth", Tag::MarketDepth),
    ("tick", Tag::Tick),
    ("multiplier", Tag::Multiplier),
    ("currency", Tag::Currency),
    ("deleted", Tag::Deleted),
];

impl std::fmt::Display for Tag {
    /// As mappings name it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = FIELDS.iter().find(|(_, tag)| tag == self).map(|(name, _)| *name);
        f.write_str(field.unwrap_or(match self {
            Self::Entries => "entries",
            Self::HeadSequence => "sequence of the header",
            Self::HeadSender => "sender of the header",
            Self::HeadPartition => "partition of the header",
            Self::HeadTime => "time of the header",
            Self::HeadReset => "reset of the header",
            _ => "a field",
        }))
    }
}

impl Set {
    /// Asks for the field or the sequence at a path of a template, as the file tells paths; how often it is there.
    pub fn ask(&mut self, template: usize, path: &str, tag: Tag) -> usize {
        let mut places = Vec::new();
        let templates = self.templates.clone();
        each_path(&templates, template, &mut |at, place, part| {
            if at == path && matches!(part, Instruction::Field(_) | Instruction::Sequence(_)) {
                places.push(place.to_owned());
            }
        });
        places.iter().filter(|place| self.wanted.select(template, place, tag as u16)).count()
    }
}

/// What is in a template, each with its path: the names of the groups and sequences around it and its own, with `.` between
/// them as files have it, and with `/` as the codec does.
fn each_path(templates: &Templates, template: usize, visit: &mut impl FnMut(&str, &str, &Instruction)) {
    fn walk(
        templates: &Templates,
        body: &[Instruction],
        (before, depth): ((&str, &str), usize),
        visit: &mut impl FnMut(&str, &str, &Instruction),
    ) {
        for part in body {
            let (name, inside) = match part {
                Instruction::Field(field) => (&field.name.local, &[][..]),
                Instruction::Group(group) => (&group.name.local, &group.body[..]),
                Instruction::Sequence(sequence) => (&sequence.name.local, &sequence.body[..]),
                Instruction::Static(_, Some(index)) if depth < DEPTH_MAX => {
                    walk(templates, &templates.list()[*index].body, (before, depth + 1), visit);
                    continue;
                }
                Instruction::Static(..) | Instruction::Dynamic => continue,
            };
            let (path, place) = (format!("{}{name}", before.0), format!("{}{name}", before.1));
            visit(&path, &place, part);
            if depth < DEPTH_MAX {
                let before = (&*format!("{path}."), &*format!("{place}/"));
                walk(templates, inside, (before, depth + 1), visit);
            }
        }
    }
    walk(templates, &templates.list()[template].body, (("", ""), 0), visit);
}

/// Groups, sequences and references in each other whose fields have paths.
const DEPTH_MAX: usize = 32;
