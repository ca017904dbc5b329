//! Values as they mostly are, read in one loop, against all of them read one by one.

use super::history::Chance;
use super::*;
use crate::engine::field_visitor::{self, FieldVisitor, VisitorContext};
use crate::engine::ids::LongIdTable;
use crate::engine::message_fields::{BatchRange, PacketMessages};
use crate::engine::values::qty_of;
use unitape_fast::{DecodedValue, Decoder, MessageVisitor};

/// A visitor that gets each part by itself.
struct Slowly<'r>(FieldVisitor<'r>);

impl MessageVisitor for Slowly<'_> {
    fn value(&mut self, tag: u16, value: DecodedValue<'_>) {
        self.0.value(tag, value);
    }
    fn group(&mut self, tag: u16) {
        self.0.group(tag);
    }
    fn sequence(&mut self, tag: u16, elements: u32) {
        self.0.sequence(tag, elements);
    }
    fn element(&mut self) {
        self.0.element();
    }
    fn end(&mut self) {
        self.0.end();
    }
}

/// A field of a message that is made up: whatever type it has, something is there.
#[derive(Clone, Copy)]
struct Made {
    name: &'static str,
    kind: u64,
    optional: bool,
}

const KINDS: [&str; 8] = ["uInt32", "uInt64", "int32", "int64", "decimal", "string", "byteVector", "uInt64"];

impl Made {
    fn of(name: &'static str, chance: &mut Chance) -> Self {
        // Mostly the type that venues use.
        let kind = match (chance.below(2), name) {
            (0, "Px") => 4,
            (0, "At") => 3,
            (0, _) => 0,
            _ => chance.below(KINDS.len() as u64),
        };
        Self { name, kind, optional: chance.below(2) == 0 }
    }

    fn xml(self) -> String {
        let presence = if self.optional { " presence=\"optional\"" } else { "" };
        format!("<{} name=\"{}\"{presence}/>", KINDS[self.kind as usize], self.name)
    }

    fn put(self, chance: &mut Chance, out: &mut Vec<u8>) {
        if self.optional && chance.below(4) == 0 {
            return out.push(0x80);
        }
        let bits = [3, 3, 3, 8, 16, 31, 62][chance.below(7) as usize];
        let n = chance.below(1 << bits)
            >> (u64::from(self.kind == 0 || self.kind == 2) * 32 * u64::from(bits > 32));
        let signed = if chance.below(4) == 0 { -(n as i64) } else { n as i64 };
        let one_more = |n: i64| n + i64::from(self.optional && n >= 0);
        match self.kind {
            0 | 1 | 7 => put(out, n + u64::from(self.optional)),
            2 | 3 => put_signed(out, one_more(signed)),
            4 => {
                let exponent = if chance.below(2) == 0 { -2 } else { chance.below(100) as i64 - 50 };
                put_signed(out, one_more(exponent));
                put_signed(out, if chance.below(3) == 0 { signed % (1 << 50) * 100 } else { signed });
            }
            5 => {
                let text = n.to_string();
                let text = if bits == 3 { &text[..1] } else { &text };
                out.extend_from_slice(text.as_bytes());
                *out.last_mut().unwrap() |= 0x80;
            }
            _ => {
                let bytes = n.to_be_bytes();
                let bytes = &bytes[chance.below(9) as usize..];
                put(out, bytes.len() as u64 + u64::from(self.optional));
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// One loop reads values of the usual types, and its result must equal reading part by part. This holds for all
/// types, for absent fields, outside of entries, and in groups and sequences inside entries, in any order.
#[test]
fn what_is_taken_quickly_is_what_is_taken_part_by_part() {
    let chance = &mut Chance(7);
    let (mut entries, mut bad) = (0, 0);
    for _ in 0..300 {
        let mut of = |names: &[&'static str]| {
            let mut made: Vec<Made> = names.iter().map(|name| Made::of(name, chance)).collect();
            (0..made.len()).rev().for_each(|n| made.swap(n, chance.below(n as u64 + 1) as usize));
            made
        };
        let (before, behind) = (of(&["Seq", "Product", "Id", "Other", "When"]), of(&["Last", "State"]));
        let (entry, group) = (of(&["Id", "Action", "Type", "Px", "Qty", "Level"]), of(&["Orders", "Trade"]));
        let (inside, rest) = (of(&["Way", "Qty"]), of(&["At", "State", "More"]));
        let next = of(&["Due", "Id"]);
        let text = |made: &[Made]| made.iter().map(|made| made.xml()).collect::<String>();
        let xml = format!(
            "<templates><template name=\"Depth\" id=\"2\">{}<sequence name=\"Next\">{}</sequence><sequence name=\"Entries\">{}<group name=\"G\">{}</group>\
             <sequence name=\"In\">{}</sequence>{}</sequence>{}</template></templates>",
            text(&before),
            text(&next),
            text(&entry),
            text(&group),
            text(&inside),
            text(&rest),
            text(&behind),
        );
        let kind = ["depth", "snapshot", "mass_state"][chance.below(3) as usize];
        let unit = ["ns", "us", "YYYYMMDDhhmmssfff"][chance.below(3) as usize];
        let mut table = format!(
            "templates = [\"t.xml\"]\npx_exponent = -2\nqty_exponent = {}\ntime = \"{unit}\"\n\
             channel = [{{ name = \"inc\", role = \"incremental\", a = [\"224.0.0.1:1\"] }}]\n\
             action = {{ 0 = \"new\", 1 = \"change\", 2 = \"delete\", 3 = \"overlay\" }}\n\
             type = {{ 0 = \"bid\", 1 = \"offer\", 2 = \"trade\", 3 = \"empty\", b = \"bid\" }}\n\
             aggressor = {{ 1 = \"buy\", 2 = \"sell\" }}\n\
             [[message]]\ntemplates = [\"Depth\"]\nkind = \"{kind}\"\nentries = \"Entries\"\n[message.fields]\n",
            -(chance.below(3) as i64),
        );
        for (name, path) in [
            ("sequence", "Seq"),
            ("product", "Product"),
            ("last", "Last"),
            ("time", if chance.below(2) == 0 { "When" } else { "Next.Due" }),
            ("instrument", if chance.below(4) == 0 { "Id" } else { "Entries.Id" }),
            ("action", "Entries.Action"),
            ("type", "Entries.Type"),
            ("px", "Entries.Px"),
            ("qty", "Entries.Qty"),
            ("depth", "Entries.Level"),
            ("orders", "Entries.G.Orders"),
            ("trade_id", "Entries.G.Trade"),
            ("aggressor", if chance.below(2) == 0 { "Entries.In.Way" } else { "Entries.More" }),
            ("entry_time", "Entries.At"),
            ("instrument_state", if chance.below(2) == 0 { "State" } else { "Entries.State" }),
        ] {
            table += &format!("{name} = \"{path}\"\n");
        }
        let files = BTreeMap::from([("t.xml".to_owned(), xml.into_bytes())]);
        let config = HandlerConfig::new(
            &toml::from_str(&table).unwrap(),
            OverrideSummary { messages: 1, has_own_framing: true },
            &files,
        );
        let config = config.unwrap();
        let set = &config.sets[0];
        let mut decoder = Decoder::with_projection(set.projection.clone());
        let (mut quick, mut slow) = (
            (PacketMessages::default(), LongIdTable::default()),
            (PacketMessages::default(), LongIdTable::default()),
        );
        for _ in 0..20 {
            let mut bytes = vec![0xc0, 0x82];
            let all = |made: &[Made], chance: &mut Chance, bytes: &mut Vec<u8>| {
                made.iter().for_each(|made| made.put(chance, bytes));
            };
            all(&before, chance, &mut bytes);
            let elements = chance.below(3);
            put(&mut bytes, elements);
            (0..elements).for_each(|_| all(&next, chance, &mut bytes));
            let elements = chance.below(4);
            put(&mut bytes, elements);
            for _ in 0..elements {
                all(&entry, chance, &mut bytes);
                all(&group, chance, &mut bytes);
                let elements = chance.below(3);
                put(&mut bytes, elements);
                (0..elements).for_each(|_| all(&inside, chance, &mut bytes));
                all(&rest, chance, &mut bytes);
            }
            all(&behind, chance, &mut bytes);
            let message = decoder.decode(&bytes).unwrap();
            assert_eq!(message.bytes, bytes.len());
            let kind = set.kind_by_template[message.template];
            let context = VisitorContext { config: &config, long_ids: &mut quick.1 };
            field_visitor::extract_fields(&message, kind, 0, context, &mut quick.0);
            let from = slow.0.entries.len() as u32;
            let context = VisitorContext { config: &config, long_ids: &mut slow.1 };
            let mut slowly = Slowly(FieldVisitor::new(&message, kind, 0, context, &mut slow.0).unwrap());
            message.visit(&mut slowly);
            slow.0.messages.last_mut().unwrap().entries =
                BatchRange { from, to: slow.0.entries.len() as u32 };
            bad += u32::from(slow.0.messages.last().unwrap().message_fault.is_some());
        }
        assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{table}");
        entries += slow.0.entries.len();
    }
    assert!(entries > 1000 && bad > 100 && bad < 5900, "{entries} entries, {bad} bad");
}

/// A quantity without zeros at its end is kept unchanged: this must equal its canonical form.
#[test]
fn quantities_are_in_one_form() {
    let chance = &mut Chance(9);
    for n in 0..20_000 {
        let mantissa = (chance.next() as i64 >> chance.below(64)).wrapping_mul([1, 10, 1000][n % 3]);
        let exponent = chance.below(256) as u8 as i8;
        let slow = unitape_model::Decimal::new(mantissa, exponent).ok();
        assert_eq!(qty_of(mantissa, exponent), slow, "{mantissa} {exponent}");
    }
}
