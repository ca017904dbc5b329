//! From the mapping's text to its plan, with the paths read by the format's [`Dialect`].

use super::entries::INHERIT_MAX;
use super::format_adapter::{Dialect, GroupSlots, PathSlots};
use super::partial_quote::PartialQuotePlan;
use super::plan::{
    BestEntryRule, BestPicks, CodeTable, CompiledRule, EventPlan, FieldOp, FieldPlan, GroupPick,
    IgnoredEntries, KeyPicks, MappingPlan, RuleCondition, RulesByCode, SLOTS_MAX, SetOp, TypeRules,
    ValueSource, ValueTable, ValueTest, WantedValue,
};
use super::prices::price_choices;
use super::{
    ConditionConfig, EventConfig, FieldConfig, FieldOptions, IgnoredEntriesConfig, Mapping, RuleConfig,
    SignOrPresence, TimeAlternatives, UnlistedFields, UnmatchedPolicy,
};
use crate::error::Error;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use unitape_base::toml::suggest_word;
use unitape_codec::charset::FallbackCharset;
use unitape_model::schema::{EventFieldSpec, FieldLayout};
use unitape_model::{EventField, EventKind, EventSchema, PreparedValue, flags};

/// Compiles a mapping: the plan, and which path has which slot in it.
///
/// # Errors
/// Fails if the mapping is invalid: unknown kinds, fields, paths, tables or groups, or a missing required field. The
/// error has the line.
pub fn compile<D: Dialect>(
    mapping: &Mapping,
    dialect: &D,
) -> Result<(MappingPlan, PathSlots<D::Path>), Error> {
    let compiled = MappingCompiler::new(mapping, dialect).compile_mapping();
    compiled.map_err(|MappingRefusal { message, key_path, table }| {
        let full_path = match table {
            Some((name, key)) => vec!["table".to_owned(), name, key],
            None => key_path,
        };
        let keys: Vec<&str> = full_path.iter().map(String::as_str).collect();
        mapping.refuse_at(&keys, message)
    })
}

/// The error and its place: keys from the top of the file, indexes of arrays among them.
#[derive(Debug)]
struct MappingRefusal {
    message: String,
    key_path: Vec<String>,
    /// It is in this table, at this key.
    table: Option<(String, String)>,
}

type CompileResult<T> = Result<T, MappingRefusal>;

impl std::convert::From<String> for MappingRefusal {
    fn from(message: String) -> Self {
        MappingRefusal { message, key_path: Vec::new(), table: None }
    }
}

impl MappingRefusal {
    /// Prefixes the error's path with `key`, which holds the error.
    fn prefix_key(mut self, key: impl ToString) -> Self {
        self.key_path.insert(0, key.to_string());
        self
    }

    /// Prefixes the error's message with `words`.
    fn prefix_message(mut self, words: impl AsRef<str>) -> Self {
        self.message.insert_str(0, words.as_ref());
        self
    }
}

/// Formats whose mappings may name a set of characters.
const WITH_ENCODING: [&str; 5] = ["jsonl", "mail", "newsxml", "swift", "iso20022"];

/// Returns the character set that the mapping names.
fn fallback_charset(mapping: &Mapping) -> Result<FallbackCharset, String> {
    match &mapping.message.encoding {
        None => Ok(FallbackCharset::default()),
        Some(name) if WITH_ENCODING.contains(&mapping.format.as_str()) => {
            FallbackCharset::by_name(name).map_err(|reason| format!("message.encoding: {reason}"))
        }
        Some(_) => Err(format!(
            "message.encoding: for {}; layouts of rows and records have an `encoding` of their own",
            WITH_ENCODING.join(", ")
        )),
    }
}

struct MappingCompiler<'m, D: Dialect> {
    mapping: &'m Mapping,
    dialect: &'m D,
    slots: BTreeMap<D::Path, u8>,
    next_slot: usize,
    group_slots: Vec<GroupSlots<D::Path>>,
    inherited_slots: Vec<Vec<u8>>,
    group_names: Vec<&'m str>,
    group_picks: Vec<GroupPick>,
    tables: Vec<ValueTable>,
    table_names: Vec<&'m str>,
}

impl<'m, D: Dialect> MappingCompiler<'m, D> {
    fn new(mapping: &'m Mapping, dialect: &'m D) -> Self {
        Self {
            mapping,
            dialect,
            slots: BTreeMap::new(),
            next_slot: 1,
            group_slots: Vec::new(),
            inherited_slots: Vec::new(),
            group_names: Vec::new(),
            group_picks: Vec::new(),
            tables: Vec::new(),
            table_names: Vec::new(),
        }
    }

    fn compile_mapping(mut self) -> CompileResult<(MappingPlan, PathSlots<D::Path>)> {
        let m = self.mapping;
        for path in self.dialect.framing() {
            self.slots.insert(path, 0);
        }
        let mut dropped = self.dialect.framing();
        for (i, path) in m.message.drop.iter().enumerate() {
            let path = self
                .parse_path(path)
                .map_err(|e| e.prefix_message("message.drop: ").prefix_key(i).prefix_key("drop"));
            let path = path.map_err(|e| e.prefix_key("message"))?;
            self.slots.insert(path.clone(), 0);
            dropped.push(path);
        }
        for (name, table) in &m.table {
            self.table_names.push(name);
            let pairs = table.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone().into_bytes()));
            self.tables.push(ValueTable::new(pairs.collect()));
        }
        for name in m.group.keys() {
            self.compile_group(name).map_err(|e| {
                e.prefix_message(format!("group.{name}: ")).prefix_key(name).prefix_key("group")
            })?;
        }
        // A count may be a member of another group, so all counts come after all groups.
        for i in 0..self.group_slots.len() {
            if let Some((path, _)) = self.group_slots[i].count.clone() {
                let slot = self.message_slot(&path)?;
                self.group_slots[i].count = Some((path, slot));
            }
        }
        let message_type = self.slot_of(D::TYPE_PATH)?;
        let of_message = |key: &'static str| move |e: MappingRefusal| e.prefix_key(key).prefix_key("message");
        let mut ts = vec![
            self.slot_of(&m.message.ts).map_err(|e| of_message("ts")(e.prefix_message("message.ts: ")))?,
        ];
        for path in m.message.ts_or.iter().flat_map(TimeAlternatives::all) {
            ts.push(self.slot_of(path).map_err(|e| of_message("ts_or")(e.prefix_message("message.ts: ")))?);
        }
        let optional = |this: &mut Self, path: &Option<String>, key| {
            path.as_ref().map(|p| this.slot_of(p).map_err(of_message(key))).transpose()
        };
        let sequence = optional(&mut self, &m.message.sequence, "sequence")?;
        let session: CompileResult<Vec<u8>> = m.message.session.iter().map(|p| self.slot_of(p)).collect();
        let session = session.map_err(of_message("session"))?;
        let possdup = optional(&mut self, &m.message.possdup, "possdup")?;
        for (name, path) in &m.message.keep {
            self.parse_path(path)
                .map_err(|e| of_message("keep")(e.prefix_message("message.keep: ").prefix_key(name)))?;
        }
        let mut rules = Vec::new();
        let mut types: Vec<TypeRules> = Vec::new();
        let mut by_type: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        let mut untyped = Vec::new();
        for (i, rule) in m.rule.iter().enumerate() {
            rules.push(
                self.compile_rule(rule).map_err(|e| {
                    e.prefix_message(format!("rule {}", i + 1)).prefix_key(i).prefix_key("rule")
                })?,
            );
            match rule.when.get(D::TYPE_PATH) {
                Some(condition) => {
                    for name in condition.all().iter().map(String::as_bytes) {
                        let type_index = *by_type.entry(name.to_vec()).or_insert_with(|| {
                            types.push(TypeRules {
                                name: WantedValue::new(name),
                                rules: untyped.clone(),
                                codes: None,
                            });
                            types.len() - 1
                        });
                        if types[type_index].rules.last() != Some(&i) {
                            types[type_index].rules.push(i);
                        }
                    }
                }
                None => {
                    untyped.push(i);
                    types.iter_mut().for_each(|t| t.rules.push(i));
                }
            }
        }
        if rules.is_empty() {
            return Err(MappingRefusal::from("no rule".to_owned()).prefix_key("rule"));
        }
        types.iter_mut().for_each(|of_type| of_type.codes = RulesByCode::new(&of_type.rules, &rules));
        let keeps = m.message.unlisted == UnlistedFields::Keep;
        let entry_slot_counts: Vec<_> = self.group_slots.iter().map(entry_slot_count).collect();
        let mut group_picks = vec![Vec::new(); self.group_slots.len()];
        for (i, pick) in self.group_picks.iter().enumerate() {
            let keys: &mut Vec<KeyPicks> = &mut group_picks[pick.group];
            let key_index = keys.iter().position(|k| k.key == pick.key).unwrap_or_else(|| {
                keys.push(KeyPicks { key: pick.key, firsts: Vec::new(), bests: Vec::new() });
                keys.len() - 1
            });
            let KeyPicks { firsts, bests, .. } = &mut keys[key_index];
            let Some(best) = pick.best else {
                firsts.push((pick.is.clone(), pick.value, i as u8));
                continue;
            };
            let best_index =
                bests.iter().position(|b| b.best == best && b.is == pick.is).unwrap_or_else(|| {
                    bests.push(BestPicks { is: pick.is.clone(), best, number: 0, values: Vec::new() });
                    bests.len() - 1
                });
            bests[best_index].values.push((pick.value, i as u8));
            if pick.value == best.slot {
                bests[best_index].number = i as u8;
            }
        }
        let plan = MappingPlan {
            slot_count: self.next_slot,
            message_type,
            ts,
            sequence,
            session,
            possdup,
            keeps,
            fallback: fallback_charset(m)
                .map_err(|e| MappingRefusal::from(e).prefix_key("encoding").prefix_key("message"))?,
            instrument_master: m.reference.clone(),
            entry_slot_counts,
            inherited_slots: self.inherited_slots,
            group_picks,
            picks: self.group_picks,
            tables: self.tables,
            rules,
            types,
            by_type,
            untyped,
        };
        Ok((plan, PathSlots { message: self.slots, dropped, keeps, groups: self.group_slots }))
    }

    fn compile_group(&mut self, name: &'m str) -> CompileResult<()> {
        let group = &self.mapping.group[name];
        let mut members = BTreeMap::new();
        for (i, text) in group.members.iter().enumerate() {
            if i + 1 >= SLOTS_MAX {
                return Err("too many members".to_owned().into());
            }
            let path = self.parse_path(text).map_err(|e| e.prefix_key(i).prefix_key("members"))?;
            members.insert(path.clone(), i as u8 + 1);
            // The entries are read as entries; at the level of the message they are nothing.
            self.slots.insert(path, 0);
        }
        let count = match &group.count {
            Some(_) if !D::COUNTED_GROUPS => {
                let message = "groups of this format have no count".to_owned();
                return Err(MappingRefusal::from(message).prefix_key("count"));
            }
            Some(text) => Some(self.parse_path(text).map_err(|e| e.prefix_key("count"))?),
            None if D::COUNTED_GROUPS => Some(self.parse_path(name)?),
            None => None,
        };
        let delimiter = match (&group.delimiter, group.members.first()) {
            (Some(delimiter), _) => self.parse_path(delimiter).map_err(|e| e.prefix_key("delimiter"))?,
            (None, Some(first)) if !D::DELIMITED_GROUPS => self.parse_path(first)?,
            (None, None) if !D::DELIMITED_GROUPS => {
                return Err(MappingRefusal::from("no members".to_owned()).prefix_key("members"));
            }
            (None, _) => return Err("missing field `delimiter`".to_owned().into()),
        };
        if !members.contains_key(&delimiter) {
            let message = "the delimiter must be one of the members".to_owned();
            return Err(MappingRefusal::from(message).prefix_key("delimiter"));
        }
        if let Some(count) = &count {
            self.slots.insert(count.clone(), 0);
        }
        let mut member_slots = Vec::new();
        for (i, text) in group.inherit.iter().enumerate() {
            let path = self.parse_path(text).map_err(|e| e.prefix_key(i).prefix_key("inherit"))?;
            let slot = members.get(&path);
            let no_member = || format!("`{text}` is none of the members");
            member_slots.push(
                *slot.ok_or_else(|| MappingRefusal::from(no_member()).prefix_key(i).prefix_key("inherit"))?,
            );
        }
        if member_slots.len() > INHERIT_MAX {
            return Err(
                MappingRefusal::from(format!("more than {INHERIT_MAX} members")).prefix_key("inherit")
            );
        }
        self.inherited_slots.push(member_slots);
        self.group_slots.push(GroupSlots { count: count.map(|c| (c, 0)), delimiter, members });
        self.group_names.push(name);
        Ok(())
    }

    fn compile_rule(&mut self, rule: &RuleConfig) -> CompileResult<CompiledRule> {
        if rule.ignore != rule.event.is_empty() {
            let message =
                if rule.ignore { ": `ignore` and events at once" } else { ": neither `ignore` nor an event" };
            return Err(message.to_owned().into());
        }
        let mut open_conditions = rule.when.clone();
        // The type has been looked at when the rule is; but no type is not the type of no letters.
        match rule.when.get(D::TYPE_PATH) {
            Some(ConditionConfig::Else(_)) => {
                let message = format!(": `when`: `{}` is one value or several", D::TYPE_PATH);
                return Err(MappingRefusal::from(message).prefix_key(D::TYPE_PATH).prefix_key("when"));
            }
            Some(condition)
                if !condition.all().is_empty() && condition.all().iter().all(|t| !t.is_empty()) =>
            {
                self.slot_of(D::TYPE_PATH)?;
                open_conditions.remove(D::TYPE_PATH);
            }
            _ => {}
        }
        let conditions = self
            .compile_conditions(&open_conditions, None)
            .map_err(|e| e.prefix_message(": ").prefix_key("when"))?;
        let mut events = Vec::new();
        for (j, event) in rule.event.iter().enumerate() {
            let event_error = |e: MappingRefusal| {
                e.prefix_message(format!(", event {}", j + 1)).prefix_key(j).prefix_key("event")
            };
            events.push(self.event(event).map_err(event_error)?);
        }
        let mut ignored = Vec::new();
        for (j, entries) in rule.ignored.iter().enumerate() {
            let entry_error = |e: MappingRefusal| {
                e.prefix_message(format!(", ignored {}", j + 1)).prefix_key(j).prefix_key("ignored")
            };
            ignored.push(self.ignored_entries(entries, &events).map_err(entry_error)?);
        }
        let mut pick_groups: Vec<usize> = events.iter().flat_map(|e| self.groups_picked(e)).collect();
        pick_groups.sort_unstable();
        pick_groups.dedup();
        let mut event_groups: Vec<usize> = events.iter().filter_map(|e| e.each).collect();
        event_groups.sort_unstable();
        event_groups.dedup();
        let (conditions, condition_paths) = conditions.into_iter().unzip();
        let ignore = rule.ignore;
        Ok(CompiledRule { conditions, condition_paths, ignore, pick_groups, event_groups, events, ignored })
    }

    fn ignored_entries(
        &mut self,
        text: &IgnoredEntriesConfig,
        events: &[EventPlan],
    ) -> CompileResult<IgnoredEntries> {
        let group = self.group_named(&text.each).map_err(|e| e.prefix_message(": ").prefix_key("each"))?;
        if !events.iter().any(|event| event.each == Some(group)) {
            let message = format!(": no event of the rule is for each entry of `{}`", text.each);
            return Err(MappingRefusal::from(message).prefix_key("each"));
        }
        let conditions = self
            .compile_conditions(&text.when, Some(group))
            .map_err(|e| e.prefix_message(": ").prefix_key("when"))?;
        Ok(IgnoredEntries {
            each: group,
            conditions: conditions.into_iter().map(|(condition, _)| condition).collect(),
        })
    }

    fn event(&mut self, text: &EventConfig) -> CompileResult<EventPlan> {
        let kind = EventKind::from_name(&text.kind).filter(|k| k.is_input());
        let kind = kind.ok_or_else(|| no_kind(&text.kind).prefix_key("kind"))?;
        let schema = EventSchema::for_kind(kind);
        if let Some(name) = text.fields.keys().find(|n| schema.find(n).is_none()) {
            let suggestion = suggest_word(name, schema.fields.iter().map(|spec| spec.field.name()));
            let message = format!(": `{}` has no field `{name}`{suggestion}", text.kind);
            return Err(MappingRefusal::from(message).prefix_key(name).prefix_key("fields"));
        }
        let each = match &text.each {
            Some(g) => Some(self.group_named(g).map_err(|e| e.prefix_message(": ").prefix_key("each"))?),
            None => None,
        };
        let event_conditions = self
            .compile_conditions(&text.when, each)
            .map_err(|e| e.prefix_message(": ").prefix_key("when"))?;
        let (mut fields, mut ops, mut codes) = (Vec::<FieldPlan>::new(), Vec::new(), Vec::new());
        // In the order of the schema, so that the same mapping always writes the same bytes.
        for spec in schema.fields {
            let name = spec.field.name();
            if let Some(f) = text.fields.get(name) {
                let field = self.compile_field(spec, f, each);
                let field = field.map_err(|e| {
                    e.prefix_message(format!(", {name}: ")).prefix_key(name).prefix_key("fields")
                })?;
                ops.push(self.make_op(kind, &field, &mut codes));
                fields.push(field);
            } else if spec.required {
                return Err(format!(": `{}` needs the field `{name}`", text.kind).into());
            }
        }
        let one_of = kind.one_of();
        if !one_of.is_empty() && !fields.iter().any(|f| one_of.contains(&f.spec.field)) {
            let names: Vec<&str> = one_of.iter().map(|field| field.name()).collect();
            return Err(format!(": `{}` needs one of the fields {}", text.kind, names.join(", ")).into());
        }
        let mut some_of = Vec::new();
        for (i, name) in text.some_of.iter().enumerate() {
            let some_of_field = fields.iter().find(|f| f.spec.field.name() == name);
            let missing_field = || format!(": some_of: the event has no field `{name}`");
            some_of.push(
                some_of_field
                    .ok_or_else(|| MappingRefusal::from(missing_field()).prefix_key(i).prefix_key("some_of"))?
                    .from
                    .clone(),
            );
        }
        let mut repeats = Vec::new();
        for (i, repeat_config) in self.mapping.message.repeat.iter().chain(&text.repeat).enumerate() {
            let conditions = self.compile_conditions(repeat_config, each);
            let conditions =
                conditions.map_err(|e| e.prefix_message(": repeat: ").prefix_key(i).prefix_key("repeat"))?;
            if conditions.is_empty() {
                return Err(
                    MappingRefusal::from(": `repeat` without a condition".to_owned()).prefix_key("repeat")
                );
            }
            repeats.push(conditions.into_iter().map(|(condition, _)| condition).collect());
        }
        let mut keep = Vec::new();
        for (name, path) in &text.keep {
            let from = self
                .from(path, each)
                .map_err(|e| e.prefix_message(", keep: ").prefix_key(name).prefix_key("keep"))?;
            keep.push((name.clone(), from));
        }
        let mapping = self.mapping;
        for (name, path) in mapping.message.keep.iter().filter(|(name, _)| !text.keep.contains_key(*name)) {
            // A mistake in it was found before the rules were looked at.
            keep.push((name.clone(), self.from(path, each)?));
        }
        let keep_entry = match &text.each {
            Some(g) if self.mapping.message.unlisted == UnlistedFields::Keep => {
                self.unnamed_members(text, g)?
            }
            _ => Vec::new(),
        };
        let prices = price_choices(kind, text).into_iter();
        let prices = prices.map(|names| price_sources(&fields, &names)).collect();
        let partial = PartialQuotePlan::new(mapping, kind, text)
            .map_err(|message| MappingRefusal::from(message).prefix_key("empty_side"))?;
        let (conditions, condition_paths) = event_conditions.into_iter().unzip();
        let frame_flags = if text.snapshot { flags::SNAPSHOT } else { 0 };
        Ok(EventPlan {
            kind,
            each,
            frame_flags,
            conditions,
            condition_paths,
            some_of,
            repeats,
            partial,
            ops,
            fields,
            codes,
            prices,
            keep,
            keep_entry,
        })
    }

    /// Returns the members of group `g` that the event does not name, with their slots.
    fn unnamed_members(&self, text: &EventConfig, g: &str) -> CompileResult<Vec<(String, u8)>> {
        let of_fields = text.fields.values().flat_map(|f| match f {
            FieldConfig::Path(p) => [Some(p), None],
            FieldConfig::Table(t) => [t.from.as_ref(), t.or.as_ref()],
        });
        let texts = of_fields.flatten().chain(text.when.keys()).chain(text.keep.values());
        let mut named_fields = BTreeSet::new();
        for path in texts.chain(&self.mapping.message.drop) {
            let path = self.parse_path(path)?;
            named_fields.extend(self.dialect.container(&path));
            named_fields.insert(path);
        }
        let mut unnamed = Vec::new();
        for (i, member) in self.mapping.group[g].members.iter().enumerate() {
            if !named_fields.contains(&self.parse_path(member)?) {
                unnamed.push((member.clone(), i as u8 + 1));
            }
        }
        Ok(unnamed)
    }

    fn groups_picked<'e>(&'e self, event: &'e EventPlan) -> impl Iterator<Item = usize> + 'e {
        event.fields.iter().filter_map(|f| match f.from {
            ValueSource::Pick(p) => Some(self.group_picks[usize::from(p)].group),
            _ => None,
        })
    }

    fn compile_field(
        &mut self,
        spec: &'static EventFieldSpec,
        text: &FieldConfig,
        each: Option<usize>,
    ) -> CompileResult<FieldPlan> {
        let long = match text {
            FieldConfig::Path(t) => FieldOptions { from: Some(t.clone()), ..FieldOptions::default() },
            FieldConfig::Table(t) => (**t).clone(),
        };
        let table = match &long.table {
            Some(t) => {
                let i = self.table_names.iter().position(|n| n == t);
                let suggestion = || suggest_word(t, self.table_names.iter().copied());
                Some((i.ok_or_else(|| format!("no table `{t}`{}", suggestion()))?, long.r#else))
            }
            None => None,
        };
        let picks = [&long.key, &long.is, &long.value, &long.highest, &long.lowest];
        if long.group.is_none() && picks.iter().any(|part| part.is_some()) {
            return Err("`key`, `is`, `value`, `highest` and `lowest` go with `group` alone"
                .to_owned()
                .into());
        }
        let (from, path) = match &long {
            FieldOptions { r#const: Some(c), from: None, group: None, .. } => {
                (ValueSource::Const(c.clone().into_bytes()), "const".to_owned())
            }
            FieldOptions {
                group: Some(g),
                key: Some(key),
                is: Some(is),
                value: Some(value),
                from: None,
                r#const: None,
                ..
            } => {
                let group = self.group_named(g)?;
                let mut member = |text: &str| {
                    let path = self.parse_path(text)?;
                    self.entry_slot(group, &path)?
                        .ok_or_else(|| MappingRefusal::from(format!("`{text}` is no member of group `{g}`")))
                };
                let best = match (&long.highest, &long.lowest) {
                    (None, None) => None,
                    (Some(member_path), None) => {
                        Some(BestEntryRule { slot: member(member_path)?, wanted_order: Ordering::Greater })
                    }
                    (None, Some(member_path)) => {
                        Some(BestEntryRule { slot: member(member_path)?, wanted_order: Ordering::Less })
                    }
                    (Some(_), Some(_)) => {
                        return Err("`highest` and `lowest` exclude each other".to_owned().into());
                    }
                };
                let wanted_value = WantedValue::new(is.as_bytes());
                let pick =
                    GroupPick { group, value: member(value)?, key: member(key)?, is: wanted_value, best };
                if let Some(best) = best {
                    // The number itself is picked as well: the next entry is compared with it.
                    self.pick_index(GroupPick { value: best.slot, ..pick.clone() })?;
                }
                (ValueSource::Pick(self.pick_index(pick)?), value.clone())
            }
            FieldOptions { from: Some(t), group: None, r#const: None, .. } => {
                (self.from(t, each)?, t.clone())
            }
            _ => {
                let message = "one of `from`, `const`, or `group` with `key`, `is` and `value`";
                return Err(message.to_owned().into());
            }
        };
        let or = long.or.as_ref().map(|t| self.from(t, each)).transpose()?;
        let suffix = long.suffix.clone().map(String::into_bytes);
        self.check_targets(spec, &long)?;
        let required = spec.required || long.required;
        Ok(FieldPlan { spec, required, from, or, table, suffix, absolute: long.absolute, path })
    }

    /// Returns the index of a pick; adds the pick if there is no equal one.
    fn pick_index(&mut self, pick: GroupPick) -> CompileResult<u8> {
        let i = self.group_picks.iter().position(|p| *p == pick).unwrap_or_else(|| {
            self.group_picks.push(pick);
            self.group_picks.len() - 1
        });
        u8::try_from(i).map_err(|_| "more than 256 values picked out of groups".to_owned().into())
    }

    /// Checks that a constant for a field of few values, from a table or from the mapping itself, is such a value.
    /// Otherwise the mapping's mistake would refuse the first message with another value.
    fn check_targets(&self, spec: &EventFieldSpec, field: &FieldOptions) -> CompileResult<()> {
        let FieldLayout::Code { values, .. } = spec.slot else { return Ok(()) };
        if field.suffix.is_some() {
            return Ok(());
        }
        let mismatch_text = |value: &str| {
            let suggestion = suggest_word(value, values.iter().copied());
            format!("`{value}` is none of {}{suggestion}", values.join(", "))
        };
        let table = field.table.as_ref().and_then(|t| Some((t, self.mapping.table.get(t)?)));
        match (table, &field.r#const) {
            (Some((name, table)), _) => match table.iter().find(|(_, to)| !values.contains(&to.as_str())) {
                Some((from, to)) => Err(MappingRefusal {
                    message: format!("table {name}, `{from}`: {}", mismatch_text(to)),
                    key_path: Vec::new(),
                    table: Some((name.clone(), from.clone())),
                }),
                None => Ok(()),
            },
            (None, Some(value)) if !values.contains(&value.as_str()) => Err(mismatch_text(value).into()),
            _ => Ok(()),
        }
    }

    /// Makes the operation for a field.
    fn make_op(&self, kind: EventKind, field: &FieldPlan, codes: &mut Vec<CodeTable>) -> FieldOp {
        let FieldPlan { spec, required, from, or, table, suffix, absolute, .. } = field;
        let through = |value: &[u8]| {
            let Some((table, otherwise)) = table else { return PreparedValue::new(kind, spec, value) };
            match (self.tables[*table].get(value), otherwise) {
                (Some(v), _) => PreparedValue::new(kind, spec, v),
                (None, Some(UnmatchedPolicy::Keep)) => PreparedValue::new(kind, spec, value),
                (None, _) => None,
            }
        };
        let op_kind = match (from, table, suffix, spec.slot) {
            _ if *absolute => SetOp::Text,
            (ValueSource::Const(value), _, None, _) => through(value).map_or(SetOp::Text, SetOp::Ready),
            (_, Some(_), None, _) => match CodeTable::new(|byte| through(&[byte])) {
                Some(code_table) if codes.len() < 256 => {
                    codes.push(code_table);
                    SetOp::Coded(codes.len() as u8 - 1)
                }
                _ => SetOp::Text,
            },
            (ValueSource::Const(_), ..) | (_, Some(_), ..) | (_, _, Some(_), _) => SetOp::Text,
            (.., FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. }) => SetOp::Time,
            _ => SetOp::AsItIs,
        };
        FieldOp {
            spec,
            from: from.to_slot_source(),
            or: or.as_ref().map(ValueSource::to_slot_source),
            kind: op_kind,
            required: *required,
        }
    }

    fn compile_conditions(
        &mut self,
        configs: &BTreeMap<String, ConditionConfig>,
        each: Option<usize>,
    ) -> CompileResult<Vec<(RuleCondition, String)>> {
        let cond = |(path, config): (&String, &ConditionConfig)| {
            let from = self.from(path, each).map_err(|e| e.prefix_key(path))?;
            let wanted_value = |value: &String| WantedValue::new(value.as_bytes());
            let value = match config {
                ConditionConfig::One(value) => ValueTest::Is(wanted_value(value)),
                ConditionConfig::Any(values) if values.is_empty() => {
                    return Err(
                        MappingRefusal::from("`when`: a list of no values".to_owned()).prefix_key(path)
                    );
                }
                ConditionConfig::Any(values) => ValueTest::OneOf(values.iter().map(wanted_value).collect()),
                ConditionConfig::Else(SignOrPresence { sign: Some(sign), present: None }) => {
                    ValueTest::Sign(*sign)
                }
                ConditionConfig::Else(SignOrPresence { sign: None, present: Some(is) }) => {
                    ValueTest::Present(*is)
                }
                ConditionConfig::Else(_) => {
                    let message = "`when`: one of `sign` and `present`".to_owned();
                    return Err(MappingRefusal::from(message).prefix_key(path));
                }
            };
            Ok((RuleCondition { from, value }, path.clone()))
        };
        configs.iter().map(cond).collect()
    }

    fn group_named(&self, name: &str) -> CompileResult<usize> {
        let group_index = self.group_names.iter().position(|n| *n == name);
        group_index.ok_or_else(|| {
            let suggestion = suggest_word(name, self.group_names.iter().copied());
            format!("no group `{name}`{suggestion}").into()
        })
    }

    fn from(&mut self, text: &str, each: Option<usize>) -> CompileResult<ValueSource> {
        let path = self.parse_path(text)?;
        if let Some(g) = each
            && let Some(slot) = self.entry_slot(g, &path)?
        {
            return Ok(ValueSource::Entry(slot));
        }
        self.message_slot(&path).map(ValueSource::Message)
    }

    fn parse_path(&self, text: &str) -> CompileResult<D::Path> {
        self.dialect.path(text).map_err(MappingRefusal::from)
    }

    fn slot_of(&mut self, text: &str) -> CompileResult<u8> {
        let path = self.parse_path(text)?;
        self.message_slot(&path)
    }

    /// Returns the slot of `path` in an entry of the group, if it is a member or a part of a member.
    fn entry_slot(&mut self, group: usize, path: &D::Path) -> CompileResult<Option<u8>> {
        let container = self.dialect.container(path);
        let group = &mut self.group_slots[group];
        if let Some(slot) = group.members.get(path) {
            return Ok(Some(*slot));
        }
        if !container.is_some_and(|c| group.members.contains_key(&c)) {
            return Ok(None);
        }
        let slot = entry_slot_count(group);
        if slot >= SLOTS_MAX {
            return Err(format!("more than {SLOTS_MAX} different fields in an entry").into());
        }
        group.members.insert(path.clone(), slot as u8);
        Ok(Some(slot as u8))
    }

    fn message_slot(&mut self, path: &D::Path) -> CompileResult<u8> {
        if let Some(slot) = self.slots.get(path).filter(|s| **s != 0) {
            return Ok(*slot);
        }
        if self.next_slot >= SLOTS_MAX {
            return Err(format!("more than {SLOTS_MAX} different fields").into());
        }
        if let Some(container) = self.dialect.container(path) {
            self.slots.entry(container).or_insert(0);
        }
        self.slots.insert(path.clone(), self.next_slot as u8);
        self.next_slot += 1;
        Ok((self.next_slot - 1) as u8)
    }
}

/// Returns the sources of these fields of an event.
fn price_sources(fields: &[FieldPlan], names: &[EventField]) -> Vec<ValueSource> {
    let of_names = fields.iter().filter(|field| names.contains(&field.spec.field));
    of_names.flat_map(|field| std::iter::once(&field.from).chain(&field.or)).cloned().collect()
}

fn no_kind(name: &str) -> MappingRefusal {
    MappingRefusal::from(match EventKind::reserved_from_name(name) {
        Some(_) => format!(
            ": `{name}` belongs to the account of the tape, which unitape writes itself; name another kind"
        ),
        None => {
            let kinds = EventKind::EVENTS.iter().filter(|kind| kind.is_input());
            format!(": no kind `{name}`{}", suggest_word(name, kinds.map(|kind| kind.name())))
        }
    })
}

/// Returns the number of slots of an entry, including slot 0.
fn entry_slot_count<P>(group: &GroupSlots<P>) -> usize {
    usize::from(group.members.values().copied().max().unwrap_or(0)) + 1
}
