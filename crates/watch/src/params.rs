//! Parameters: defaults and the overlays on them, one after another.

use crate::def::{COUNT_MAX, ParamDef, ParamType, ScenarioDef, TZ_OFFSET, ZONE};
use crate::error::Error;
use crate::scenarios;
use crate::sessions::WatchCalendar;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use unitape_model::{Decimal, LocalClock, Price};

/// Parameters of some scenarios, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParamOverlay {
    by_scenario: BTreeMap<&'static str, BTreeMap<&'static str, Value>>,
}

impl ParamOverlay {
    /// Reads JSON (it begins with `{`) or TOML: `{"scenario":{"param":value}}` or, when `only` names the
    /// scenario, also `{"param":value}`.
    pub fn parse(text: &str, only: Option<&str>) -> Result<Self, Error> {
        let params_error = |message: String| Error::BadParams { message };
        let value: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| params_error(e.to_string()))?
        } else {
            toml::from_str(text).map_err(|e| {
                let text_before = &text[..e.span().map_or(0, |span| span.start)];
                params_error(format!("line {}: {}", 1 + text_before.matches('\n').count(), e.message()))
            })?
        };
        match value {
            Value::Object(map) => Self::from_map(&map, only),
            _ => Err(params_error("a table of parameters is needed".into())),
        }
    }

    /// Reads parameters as [`ParamOverlay::parse`] does, from a JSON object that is parsed already.
    pub fn from_map(map: &Map<String, Value>, only: Option<&str>) -> Result<Self, Error> {
        let mut this = Self::default();
        if let Some(id) = only {
            let def = scenarios::find(id)?;
            let long = map.len() == 1 && map.get(id).is_some_and(Value::is_object);
            if !long {
                this.add_params(def, map)?;
                return Ok(this);
            }
        }
        for (id, params) in map {
            let def = scenarios::find(id)?;
            let Value::Object(params) = params else {
                return Err(Error::BadParams { message: format!("{id}: a table of parameters is needed") });
            };
            this.add_params(def, params)?;
        }
        Ok(this)
    }

    fn add_params(&mut self, def: &'static ScenarioDef, params: &Map<String, Value>) -> Result<(), Error> {
        let mine = self.by_scenario.entry(def.id).or_default();
        for (name, value) in params {
            let param = def.param(name).ok_or_else(|| Error::UnknownParam {
                scenario: def.id,
                name: name.clone(),
                params: def.params.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            })?;
            if parse_param_value(param, value).is_none() {
                return Err(Error::BadParam {
                    scenario: def.id,
                    name: param.name,
                    expected: param.param_type.wanted(),
                    got: value.to_string(),
                });
            }
            mine.insert(param.name, value.clone());
        }
        Ok(())
    }
}

/// The scenarios to run, and their parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioSelection {
    /// Only these; all if it is empty. The order has no meaning.
    pub scenarios: Vec<String>,
    /// From the configuration: over the defaults, under the header and the case of an input.
    pub configuration: ParamOverlay,
    /// From the command line: over everything.
    pub command_line: ParamOverlay,
    /// Session dates by venue.
    pub calendar: WatchCalendar,
}

/// The rules of a watch. Equal rules give equal alerts of equal events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRules {
    /// Those of each scenario, by id.
    pub scenarios: Vec<ScenarioRules>,
    /// The hash of the calendar, if there is one.
    pub calendar_hash: Option<String>,
}

/// The rules that a scenario of a selection applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioRules {
    /// The scenario.
    pub id: &'static str,
    /// The version of its definition, see [`ScenarioDef::version`].
    pub version: String,
    /// The hash of its parameters: 16 hexadecimal digits of BLAKE3 over the values.
    pub params_hash: String,
}

impl ScenarioSelection {
    /// Selects these scenarios, with their default parameters.
    pub fn of(ids: &[&str]) -> Self {
        Self { scenarios: ids.iter().map(|id| (*id).to_owned()).collect(), ..Self::default() }
    }

    /// Returns the only scenario of the selection, if it names just one.
    pub fn single(&self) -> Option<&str> {
        match &self.scenarios[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the rules: of each selected scenario, by id, and of the calendar.
    ///
    /// # Errors
    /// Fails if a scenario is unknown.
    pub fn rules(&self) -> Result<WatchRules, Error> {
        let params = self.params_over(&[]);
        let rules = scenarios::selected(self)?.map(|entry| ScenarioRules {
            id: entry.id,
            version: entry.def().version(),
            params_hash: params(entry.def()).hash(),
        });
        Ok(WatchRules { scenarios: rules.collect(), calendar_hash: self.calendar.hash() })
    }

    /// Returns the parameters of any scenario: the defaults, overridden by the configuration, then by `input`, then by
    /// the command line.
    pub(crate) fn params_over<'a>(
        &'a self,
        input: &[&'a ParamOverlay],
    ) -> impl Fn(&'static ScenarioDef) -> ScenarioParams + use<'a> {
        let mut overlays = vec![&self.configuration];
        overlays.extend_from_slice(input);
        overlays.push(&self.command_line);
        move |def| ScenarioParams::resolve(def, &overlays)
    }
}

/// The parameters of one scenario, all of them.
#[derive(Clone, Debug)]
pub struct ScenarioParams {
    def: &'static ScenarioDef,
    values: BTreeMap<&'static str, Value>,
}

impl ScenarioParams {
    /// Lays `overlays` over the defaults of `def`. A later overlay overrides an earlier overlay.
    pub fn resolve(def: &'static ScenarioDef, overlays: &[&ParamOverlay]) -> Self {
        let mut values: BTreeMap<_, _> = def.params.iter().map(|p| (p.name, p.default.clone())).collect();
        for overlay in overlays {
            for (name, value) in overlay.by_scenario.get(def.id).into_iter().flatten() {
                values.insert(name, value.clone());
            }
        }
        Self { def, values }
    }

    /// Returns a parameter that is a whole number.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn uint(&self, name: &str) -> u64 {
        match self.param_value(name) {
            ParamValue::UInt(v) => v,
            _ => panic!("{name} is no whole number"),
        }
    }

    /// Returns a parameter in milliseconds, converted to nanoseconds.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn millis(&self, name: &str) -> i128 {
        i128::from(self.uint(name)) * 1_000_000
    }

    /// Returns a parameter in seconds, converted to nanoseconds.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn seconds(&self, name: &str) -> i128 {
        i128::from(self.uint(name)) * 1_000_000_000
    }

    /// Returns a tolerance in billionths of its unit.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn nano(&self, name: &str) -> u64 {
        match self.param_value(name) {
            ParamValue::Nano(v) => v,
            _ => panic!("{name} is no tolerance"),
        }
    }

    /// Returns a parameter that is an amount.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn amount(&self, name: &str) -> Decimal {
        match self.param_value(name) {
            ParamValue::Amount(v) => v,
            _ => panic!("{name} is no amount"),
        }
    }

    /// Returns a parameter that is yes or no.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn flag(&self, name: &str) -> bool {
        self.value(name).as_bool().expect("checked when laid over")
    }

    /// Returns a parameter that is a list of texts.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let list = self.value(name).as_array().expect("checked when laid over");
        list.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    }

    /// Returns a parameter that is a list of whole numbers.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn counts(&self, name: &str) -> Vec<u64> {
        let list = self.value(name).as_array().expect("checked when laid over");
        list.iter().filter_map(Value::as_u64).collect()
    }

    /// Returns the clock of the local day: by `zone` if it is given, else by `tz_offset_s`.
    ///
    /// # Panics
    /// Panics if the definition has no such parameters.
    pub fn local_clock(&self) -> LocalClock {
        let zone = self.value(ZONE).as_str().unwrap_or_default();
        let offset = || self.value(TZ_OFFSET).as_i64().and_then(|offset| i32::try_from(offset).ok());
        LocalClock::of_zone(zone).unwrap_or_else(|| LocalClock::with_offset(offset().unwrap_or_default()))
    }

    /// Returns any parameter as it was given.
    ///
    /// # Panics
    /// Panics if the definition has no such parameter.
    pub fn value(&self, name: &str) -> &Value {
        &self.values[name]
    }

    /// Returns all parameters by name, for people.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(n, v)| (*n, v))
    }

    /// Returns 16 hexadecimal digits of BLAKE3 over names and values, so that `2` and `"2.0"` of an amount are the same.
    fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for name in self.values.keys() {
            let text = match self.param_value(name) {
                ParamValue::UInt(number) => number.to_string(),
                ParamValue::Nano(billionths) => billionths.to_string(),
                ParamValue::Amount(amount) => amount.to_string(),
                ParamValue::Other => self.values[name].to_string(),
            };
            hasher.update(format!("{name}={text}\n").as_bytes());
        }
        hex_digits(&hasher.finalize())
    }

    fn param_value(&self, name: &str) -> ParamValue {
        let param = self.def.param(name).expect("a parameter of the definition");
        parse_param_value(param, &self.values[param.name]).expect("checked when laid over")
    }
}

/// Returns the first 16 hexadecimal digits of a hash.
pub(crate) fn hex_digits(hash: &blake3::Hash) -> String {
    hash.to_hex()[..16].to_owned()
}

enum ParamValue {
    UInt(u64),
    Nano(u64),
    Amount(Decimal),
    Other,
}

const TOLERANCE_MAX: i64 = 1_000_000_000;

fn parse_param_value(param: &ParamDef, value: &Value) -> Option<ParamValue> {
    let decimal = || match value {
        Value::String(s) => Decimal::parse(s.as_bytes()).ok(),
        _ => Some(Decimal::from_int(value.as_i64()?)),
    };
    match param.param_type {
        ParamType::Count => value.as_u64().filter(|v| *v <= COUNT_MAX).map(ParamValue::UInt),
        ParamType::Ratio => {
            // A price has the same nine places.
            let Price(nano) = Price::from_decimal(decimal()?).ok()?;
            (0..=TOLERANCE_MAX * 1_000_000_000).contains(&nano).then_some(ParamValue::Nano(nano as u64))
        }
        ParamType::Amount => decimal().filter(|d| !d.is_negative()).map(ParamValue::Amount),
        ParamType::Flag => value.as_bool().map(|_| ParamValue::Other),
        ParamType::Offset => {
            value.as_i64().filter(|offset| offset.unsigned_abs() <= 93_600).map(|_| ParamValue::Other)
        }
        ParamType::Zone => value
            .as_str()
            .filter(|name| name.is_empty() || LocalClock::of_zone(name).is_some())
            .map(|_| ParamValue::Other),
        ParamType::Word => value.as_str().map(|_| ParamValue::Other),
        ParamType::Texts => {
            value.as_array().filter(|list| list.iter().all(Value::is_string)).map(|_| ParamValue::Other)
        }
        ParamType::Counts => {
            value.as_array().filter(|list| list.iter().all(Value::is_u64)).map(|_| ParamValue::Other)
        }
        ParamType::Table => value.as_object().map(|_| ParamValue::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, only: Option<&str>) -> String {
        match ParamOverlay::parse(text, only) {
            Ok(o) => {
                let p = ScenarioParams::resolve(scenarios::find("wash_trade").unwrap(), &[&o]);
                format!("{} {} {}", p.uint("window_ms"), p.nano("px_tol_bps"), p.nano("qty_tol_pct"))
            }
            Err(e) => e.to_string(),
        }
    }

    /// Fails if a misspelt parameter is ignored, because a tuned scenario would run untuned.
    #[test]
    fn overlays_are_checked() {
        let defaults = "60000 5000000000 10000000000";
        for (text, only, want) in [
            ("", None, defaults),
            ("{}", None, defaults),
            (r#"{"wash_trade":{"window_ms":7}}"#, None, "7 5000000000 10000000000"),
            (r#"{"wash_trade":{"window_ms":7}}"#, Some("wash_trade"), "7 5000000000 10000000000"),
            (r#"{"window_ms":7,"px_tol_bps":"2.5"}"#, Some("wash_trade"), "7 2500000000 10000000000"),
            ("window_ms = 7\nqty_tol_pct = 0", Some("wash_trade"), "7 5000000000 0"),
            ("[wash_trade]\npx_tol_bps = '0.000000001'", None, "60000 1 10000000000"),
            (
                "[wash]\nx = 1",
                None,
                "no scenario is called `wash`; did you mean `wash_trade`?; see: unitape watch scenarios",
            ),
            (
                r#"{"window":7}"#,
                Some("wash_trade"),
                "scenario wash_trade has no parameter `window`; did you mean `window_ms`?; it has: window_ms, px_tol_bps, qty_tol_pct",
            ),
            (
                r#"{"window_ms":"7"}"#,
                Some("wash_trade"),
                "parameter wash_trade.window_ms: a whole number in range is needed, not \"7\"",
            ),
            (
                r#"{"px_tol_bps":2.5}"#,
                Some("wash_trade"),
                "parameter wash_trade.px_tol_bps: a whole number or a decimal as a string, from 0 to 1000000000 is needed, not 2.5",
            ),
            (
                r#"{"px_tol_bps":-1}"#,
                Some("wash_trade"),
                "parameter wash_trade.px_tol_bps: a whole number or a decimal as a string, from 0 to 1000000000 is needed, not -1",
            ),
            (r#"{"wash_trade":3}"#, None, "parameters: wash_trade: a table of parameters is needed"),
            ("{", None, "parameters: EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(parse(text, only), want, "{text}");
        }
        assert!(parse("a = ", None).starts_with("parameters: line 1: "));
    }

    #[test]
    fn later_overlays_win_one_by_one() {
        let a = ParamOverlay::parse("[wash_trade]\nwindow_ms = 1\nqty_tol_pct = 1", None).unwrap();
        let b = ParamOverlay::parse("[wash_trade]\nwindow_ms = 2", None).unwrap();
        let p = ScenarioParams::resolve(scenarios::find("wash_trade").unwrap(), &[&a, &b]);
        assert_eq!((p.uint("window_ms"), p.nano("qty_tol_pct")), (2, 1_000_000_000));
        assert_eq!(p.values().count(), 3);
    }
}
