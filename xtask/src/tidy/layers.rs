//! Imports go strictly down, and each heavy dependency lives in one crate, or in the two that the layers ask for. A
//! strategy links only light crates.
//!
//! - A normal or build dependency on a crate of ours lies in a strictly lower layer.
//! - A dev-dependency may lie in the same layer, never in a higher one: tests may use a neighbour, but a crate that
//!   can only be tested with crates above it is cut wrongly.

use std::collections::BTreeMap;

use super::TidyProblem;
use crate::cargo::Package;

/// Dependencies that are slow to build or that shape what uses them. A name that ends in `*` is a family: all of its
/// members belong to one crate.
const HEAVY: &[&str] = &[
    "aeron*",
    "argon2",
    "arrow",
    "arrow-array",
    "arrow-buffer",
    "arrow-flight",
    "arrow-ipc",
    "arrow-schema",
    "aws-lc-rs",
    "axum",
    "clap*",
    "comfy-table",
    "cranelift*",
    "datafusion*",
    "dbn",
    "etherparse",
    "fastlanes",
    "hyper*",
    "indicatif",
    "memmap2",
    "parquet",
    "pcap-file",
    "prost*",
    "pyo3*",
    "quick-xml",
    "ring",
    "rusqlite",
    "rusteron*",
    "rustls*",
    "socket2",
    "tokio*",
    "tonic*",
];

/// Heavy dependencies with two homes, because the layers ask for it: of two decoders neither knows the other, and a strategy
/// links the sockets of the market-data handler without the feeds. TLS has two ends.
const TWO_HOMES: &[(&str, [&str; 2])] = &[
    ("quick-xml", ["unitape-codec", "unitape-fast"]),
    ("rustls*", ["unitape-client", "unitape-server"]),
    ("socket2", ["unitape-feed", "unitape-marketdata"]),
];

/// The crate that a strategy links, and the dependencies that must not come with it.
const STRATEGY: (&str, &[&str]) = (
    "unitape-marketdata",
    &["unitape-codec", "unitape-feed", "unitape-tape", "unitape-ring", "zstd", "flate2", "blake3"],
);

/// The helpers of the tests.
const TESTKIT: &str = "unitape-testkit";

const LICENSE: &str = "Apache-2.0";

pub(crate) fn check(packages: &[Package]) -> Vec<TidyProblem> {
    let layers: BTreeMap<&str, i64> =
        packages.iter().filter_map(|package| Some((package.name.as_str(), package.layer?))).collect();
    let mut problems = Vec::new();
    for package in packages {
        let location = location_of(package);
        match package.layer {
            None => {
                problems.push(TidyProblem::new(&location, "[package.metadata.unitape] layer = N is missing"))
            }
            Some(layer) => problems.extend(upward(package, layer, &layers)),
        }
        if !package.publish_forbidden {
            problems.push(TidyProblem::new(&location, "publish = false is missing"));
        }
        if package.license.as_deref() != Some(LICENSE) {
            problems.push(TidyProblem::new(&location, format!("the licence is not {LICENSE}")));
        }
    }
    problems.extend(shared_weight(packages));
    problems.extend(of_strategy(packages));
    problems
}

/// The forbidden dependencies that a strategy gets by way of crates of ours.
fn of_strategy(packages: &[Package]) -> Vec<TidyProblem> {
    let (top, forbidden_names) = STRATEGY;
    let mut linked = vec![top];
    let mut problems = Vec::new();
    let mut next = 0;
    while let Some(&name) = linked.get(next) {
        next += 1;
        let Some(package) = packages.iter().find(|package| package.name == name) else { continue };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == "normal") {
            if forbidden_names.contains(&dependency.name.as_str()) {
                let message = format!("{} comes with {top}, which a strategy links", dependency.name);
                problems.push(TidyProblem::new(location_of(package), message));
            } else if !linked.contains(&dependency.name.as_str()) {
                linked.push(&dependency.name);
            }
        }
    }
    problems
}

fn upward(package: &Package, layer: i64, layers: &BTreeMap<&str, i64>) -> Vec<TidyProblem> {
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let Some(&theirs) = layers.get(dependency.name.as_str()) else { continue };
        let allowed = if dependency.kind == "dev" { theirs <= layer } else { theirs < layer };
        if !allowed {
            let message = format!(
                "layer {layer} must not depend ({}) on {} in layer {theirs}",
                dependency.kind, dependency.name
            );
            problems.push(TidyProblem::new(location_of(package), message));
        }
        if dependency.name == TESTKIT && dependency.kind != "dev" {
            let message = format!("{TESTKIT} is for tests: name it in [dev-dependencies]");
            problems.push(TidyProblem::new(location_of(package), message));
        }
    }
    problems
}

fn shared_weight(packages: &[Package]) -> Vec<TidyProblem> {
    let mut owners: BTreeMap<&str, &Package> = BTreeMap::new();
    let mut problems = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            let Some(heavy) = HEAVY.iter().find(|heavy| names(heavy, &dependency.name)) else { continue };
            if let Some((_, homes)) = TWO_HOMES.iter().find(|(name, _)| name == heavy) {
                if !homes.contains(&package.name.as_str()) {
                    let message = format!(
                        "{} is a heavy dependency and belongs to {} and {}",
                        dependency.name, homes[0], homes[1]
                    );
                    problems.push(TidyProblem::new(location_of(package), message));
                }
                continue;
            }
            let owner = owners.entry(heavy).or_insert(package);
            if owner.name != package.name {
                let message =
                    format!("{} is a heavy dependency and belongs to {}", dependency.name, owner.name);
                problems.push(TidyProblem::new(location_of(package), message));
            }
        }
    }
    problems
}

fn names(heavy: &str, dependency: &str) -> bool {
    match heavy.strip_suffix('*') {
        None => heavy == dependency,
        Some(family) => dependency
            .strip_prefix(family)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_'])),
    }
}

fn location_of(package: &Package) -> String {
    format!("{} (Cargo.toml)", package.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::Dependency;

    fn package(name: &str, layer: i64, dependencies: &[(&str, &str)]) -> Package {
        Package {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            layer: Some(layer),
            publish_forbidden: true,
            license: Some(LICENSE.to_owned()),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: (*kind).to_owned(),
                    is_optional: false,
                })
                .collect(),
            tests: vec!["kill".to_owned()],
        }
    }

    fn messages(packages: &[Package]) -> Vec<String> {
        check(packages).into_iter().map(|problem| problem.message).collect()
    }

    /// A cycle of ideas starts with one import that goes up or sideways.
    #[test]
    fn imports_go_strictly_down() {
        let low = package("low", 1, &[]);
        let is = |kind: &str, layer: i64| messages(&[low.clone(), package("us", layer, &[("low", kind)])]);
        let kit = package(TESTKIT, 1, &[]);
        let uses = |kind: &str| messages(&[kit.clone(), package("us", 2, &[(TESTKIT, kind)])]);
        assert!(uses("dev").is_empty());
        assert_eq!(uses("normal"), ["unitape-testkit is for tests: name it in [dev-dependencies]"]);
        assert!(is("normal", 2).is_empty() && is("build", 2).is_empty() && is("dev", 2).is_empty());
        assert_eq!(is("normal", 1), ["layer 1 must not depend (normal) on low in layer 1"]);
        assert_eq!(is("build", 1).len(), 1);
        assert!(is("dev", 1).is_empty());
        assert_eq!(is("dev", 0), ["layer 0 must not depend (dev) on low in layer 1"]);
    }

    #[test]
    fn a_strategy_links_neither_tape_nor_codecs() {
        let book = package("unitape-book", 2, &[("zstd", "normal"), ("blake3", "dev")]);
        let top = package("unitape-marketdata", 3, &[("unitape-book", "normal"), ("unitape-codec", "dev")]);
        assert_eq!(messages(&[top, book]), ["zstd comes with unitape-marketdata, which a strategy links"]);
    }

    /// A crate that forgot its layer would escape the rule above.
    #[test]
    fn every_crate_states_layer_licence_and_publish() {
        let mut bare = package("bare", 0, &[]);
        (bare.layer, bare.publish_forbidden, bare.license) = (None, false, Some("MIT".to_owned()));
        let got = messages(&[bare]);
        assert_eq!(got.len(), 3, "{got:?}");
    }

    #[test]
    fn heavy_dependencies_have_one_home() {
        let a = package("a", 0, &[("clap", "normal"), ("clap_complete", "normal"), ("serde", "normal")]);
        let b = package("b", 1, &[("clap_mangen", "dev"), ("serde", "normal"), ("clapper", "normal")]);
        assert!(messages(std::slice::from_ref(&a)).is_empty());
        assert_eq!(messages(&[a, b]), ["clap_mangen is a heavy dependency and belongs to a"]);
    }

    #[test]
    fn two_homes_are_named() {
        let home = |name: &str| package(name, 2, &[("quick-xml", "normal")]);
        assert!(messages(&[home("unitape-codec"), home("unitape-fast")]).is_empty());
        assert_eq!(
            messages(&[home("unitape-book"), home("unitape-codec")]),
            ["quick-xml is a heavy dependency and belongs to unitape-codec and unitape-fast"]
        );
    }
}
