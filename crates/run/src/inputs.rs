//! The inputs that a batch names: bare files, feeds by option, one configuration; and its reference data.

use crate::Error;
use crate::files::read_text;
use crate::layered::ValueOrigin;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_feed::{
    ChangedSourcePolicy, FileFeed, Format, InstrumentMaster, MasterLoader, feed_of_file, feed_of_option,
};

/// Inputs as they are named.
#[derive(Clone, Copy, Debug)]
pub struct InputArguments<'a> {
    /// Feeds, each as `name=format:mapping:path`.
    pub feeds: &'a [String],
    /// Files whose content decides their format. A file whose name ends in `.toml` is a configuration.
    pub files: &'a [PathBuf],
    /// Reference data, each as `file:mapping`.
    pub reference: &'a [String],
    /// Whether a message is quarantined if its instrument is missing from the reference data.
    pub reference_strict: bool,
    /// The rules for changed sources; a configuration may say more for a feed.
    pub rules: ChangedSourcePolicy,
}

/// Inputs that are ready to be read.
#[derive(Debug)]
pub struct LoadedInputs {
    /// The feeds, each with the reference data.
    pub feeds: Vec<FileFeed>,
    /// The rules of a configuration for changed sources, by feed.
    pub rules: BTreeMap<String, ChangedSourcePolicy>,
}

impl InputArguments<'_> {
    /// Recognises files, and reads mappings and reference data. `note` receives remarks for people.
    ///
    /// # Errors
    /// Fails if an input cannot be used, or if no input is named.
    pub fn read_inputs(&self, note: &mut dyn FnMut(&str)) -> Result<LoadedInputs, Error> {
        let mut loader = MasterLoader::default();
        let mut rules = BTreeMap::new();
        let mut feeds = input_feeds(self, &mut loader, &mut rules)?;
        match reference(self.reference, loader, note)? {
            Some(reference) => {
                let reference = Arc::new(reference.with_strictness(self.reference_strict));
                for feed in &mut feeds {
                    feed.format = feed.format.clone().with_reference(&reference);
                }
            }
            None if self.reference_strict => return Err(Error::NoReference),
            None => {}
        }
        Ok(LoadedInputs { feeds, rules })
    }
}

/// Loads the reference data of `options` into the loader and finishes it. Returns `None` if there is no reference data.
/// `note` receives remarks for people.
///
/// # Errors
/// Fails if an option or a file cannot be used.
pub fn reference(
    options: &[String],
    mut loader: MasterLoader,
    note: &mut dyn FnMut(&str),
) -> Result<Option<InstrumentMaster>, Error> {
    options.iter().try_for_each(|option| loader.add_option(option)).map_err(option_error)?;
    loader.notes().for_each(|text| note(&text));
    if loader.is_empty() {
        return Ok(None);
    }
    loader.finish().map(Some).map_err(|e| Error::Input(Box::new(e)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputsConfig {
    feed: Vec<ConfigFeed>,
    #[serde(default)]
    reference: Vec<ConfigReference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigReference {
    file: PathBuf,
    mapping: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFeed {
    name: String,
    format: String,
    #[serde(default)]
    mapping: String,
    files: Vec<PathBuf>,
    #[serde(default)]
    new_source: bool,
    #[serde(default)]
    again: bool,
}

fn input_feeds(
    named: &InputArguments<'_>,
    loader: &mut MasterLoader,
    rules: &mut BTreeMap<String, ChangedSourcePolicy>,
) -> Result<Vec<FileFeed>, Error> {
    let mut feeds: Vec<FileFeed> = Vec::new();
    for option in named.feeds {
        let feed = feed_of_option(option).map_err(option_error)?;
        // The same name again: one more file of the same feed.
        match feeds.iter_mut().find(|f| f.name == feed.name) {
            Some(first) if first.format.mapping_identity() == feed.format.mapping_identity() => {
                first.files.extend(feed.files)
            }
            Some(_) => {
                return Err(Error::OtherFormat { option: option.clone() });
            }
            None => feeds.push(feed),
        }
    }
    for path in named.files {
        if path.extension().is_some_and(|e| e == "toml") {
            feeds.extend(read_config(path, loader, named.rules, rules)?);
        } else if path.as_os_str() == "-" {
            return Err(Error::BareStdin);
        } else {
            feeds.push(feed_of_file(path).map_err(|e| Error::Input(Box::new(e)))?);
        }
    }
    if feeds.is_empty() {
        return Err(Error::NoInput);
    }
    let mut input_names = BTreeMap::new();
    for feed in &mut feeds {
        let n = input_names.entry(feed.name.clone()).and_modify(|n| *n += 1).or_insert(1);
        if *n > 1 {
            feed.name = format!("{}-{n}", feed.name);
        }
    }
    Ok(feeds)
}

fn read_config(
    path: &Path,
    loader: &mut MasterLoader,
    policy: ChangedSourcePolicy,
    rules: &mut BTreeMap<String, ChangedSourcePolicy>,
) -> Result<Vec<FileFeed>, Error> {
    let with_path = |e: unitape_feed::Error| Error::Configured { path: path.to_owned(), source: Box::new(e) };
    let text = read_text(path)?;
    let config: InputsConfig = toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        let origin = ValueOrigin::File { file: path.display().to_string(), line };
        Error::Origin { origin, reason: e.message().to_owned() }
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    for r in &config.reference {
        let added =
            MasterLoader::format(&r.mapping).and_then(|format| loader.add(&base.join(&r.file), &format));
        added.map_err(with_path)?;
    }
    let mut feed = |f: ConfigFeed| {
        let files = f.files.into_iter().map(|p| base.join(p)).collect();
        let feed_policy = ChangedSourcePolicy {
            new_source: policy.new_source || f.new_source,
            allows_same_content: policy.allows_same_content || f.again,
        };
        rules.insert(f.name.clone(), feed_policy);
        Ok(FileFeed {
            format: Format::from_names(&f.format, &f.mapping).map_err(with_path)?,
            name: f.name,
            files,
        })
    };
    config.feed.into_iter().map(&mut feed).collect()
}

/// Converts an error in an option. Invalid feeds or reference data in an option are usage errors.
fn option_error(source: unitape_feed::Error) -> Error {
    match source {
        unitape_feed::Error::Config { .. } => Error::Option(Box::new(source)),
        source => Error::Input(Box::new(source)),
    }
}
